"""A client in children of `fork`. Relays before the nodes see who sends on which connection."""

import concurrent.futures
import contextlib
import io
import multiprocessing
import os
import shutil
import socket
import threading
import time

import pytest

import polyclave


class Relay:
    """Counts what clients send on each connection."""

    def __init__(self, node):
        host, port = node.rsplit(":", 1)
        self.node = (host, int(port))
        self.sent = []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            self.sent.append(0)
            node = socket.create_connection(self.node)
            for ends in ((client, node, len(self.sent) - 1), (node, client, None)):
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, target, number):
        try:
            while data := source.recv(1 << 16):
                if number is not None:
                    self.sent[number] += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture
def relayed(cluster, tmp_path):
    """A client's directory, and the relays that it goes through."""
    own = tmp_path / "client"
    shutil.copytree(cluster, own)
    file = own / "cluster.toml"
    lines, relays = file.read_text().splitlines(), []
    for at, line in enumerate(lines):
        if line.startswith("client_address"):
            relays.append(Relay(line.split('"')[1]))
            lines[at] = f'client_address = "{relays[-1].address}"'
    assert len(relays) == 3
    file.write_text("\n".join(lines) + "\n")
    yield own, relays
    for relay in relays:
        relay.server.close()


def sent(relays):
    """What was sent on each connection, once nothing is on its way any more."""
    last = None
    while True:
        now = [list(relay.sent) for relay in relays]
        if now == last:
            return now
        last = now
        time.sleep(0.3)


def is_untouched(relays, before):
    """Whether nothing was sent since then on the connections that were there."""
    return all(now[: len(known)] == known for now, known in zip(sent(relays), before))


def in_child(work):
    """The exit code of a child that does this."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_dials_anew_and_its_parent_goes_on(relayed, keys):
    directory, relays = relayed
    with polyclave.Client(directory) as client:
        sealed = client.seal(keys("gcm"), b"a secret")
        before = sent(relays)
        assert in_child(lambda: client.open(keys("gcm"), sealed) == b"a secret") == 0
        assert in_child(lambda: client.close() is None) == 0
        assert is_untouched(relays, before)
        after = sent(relays)
        assert all(len(new) > len(old) for new, old in zip(after, before)), "the child has connections of its own"
        assert client.open(keys("gcm"), sealed) == b"a secret"
        assert [len(known) for known in sent(relays)] == [len(known) for known in after], "the parent keeps its own"
        assert not is_untouched(relays, before)


def sockets():
    """How many sockets this process has open."""
    targets = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            targets.append(os.readlink(f"/proc/self/fd/{number}"))
    return sum(target.startswith("socket:") for target in targets)


def test_a_child_closes_its_copies_of_connections_that_its_parent_keeps(relayed, keys):
    """Otherwise a node would not see that the parent has closed one."""
    directory, relays = relayed
    with polyclave.Client(directory) as client:
        # The parent keeps two connections with each node, or more.
        while not all(len(relay.sent) > 1 for relay in relays):
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: client.seal(keys("gcm"), b"a secret"), range(8)))

        def closes():
            before = sockets()
            client.seal(keys("gcm"), b"a secret")
            # It has made one with each node.
            return sockets() < before

        assert in_child(closes) == 0


def of_worker(client, key, sealed, results):
    results.put(client.open(key, sealed))


def test_workers_of_multiprocessing_share_a_client_that_their_parent_made(relayed, keys):
    directory, relays = relayed
    context = multiprocessing.get_context("fork")
    with polyclave.Client(directory) as client:
        sealed = client.seal(keys("gcm"), b"a secret")
        before, results = sent(relays), context.Queue()
        given = (client, keys("gcm"), sealed, results)
        workers = [context.Process(target=of_worker, args=given) for _ in range(3)]
        for worker in workers:
            worker.start()
        assert [results.get(timeout=120) for _ in workers] == [b"a secret"] * 3
        for worker in workers:
            worker.join(120)
            assert worker.exitcode == 0
        assert is_untouched(relays, before)
        assert client.open(keys("gcm"), sealed) == b"a secret"


def test_a_child_does_not_go_on_with_a_request_of_its_parent(relayed, keys):
    directory, relays = relayed
    chunk = 1 << 18
    data = bytes(6 * chunk)

    class Forks(io.BytesIO):
        child = None

        def read(self, size=-1):
            # Two pieces are read before the nodes are asked.
            if self.child is None and self.tell() >= 3 * chunk:
                before = sent(relays)
                self.child = os.fork()
                if self.child:
                    assert os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1]) == 0
                    assert is_untouched(relays, before)
            return super().read(size)

    reader, sealed = Forks(data), io.BytesIO()
    client = polyclave.Client(directory)
    code = 1
    try:
        client.seal_stream(keys("gcm"), reader, sealed)
    except polyclave.Unavailable:
        code = 0
    finally:
        if reader.child == 0:
            os._exit(code)
    assert code == 1, "the parent goes on"
    assert client.open(keys("gcm"), sealed.getvalue()) == data
