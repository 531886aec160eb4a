"""The client itself: its keys, its life, its errors."""

import asyncio
import concurrent.futures
import dataclasses
import datetime
import gc
import io
import subprocess
import sys
import threading
import time
import weakref

import pytest

import polyclave
import polyclave.aio
from conftest import PATIENCE, program, running


def test_a_client_knows_itself_and_its_nodes(client):
    assert client.name
    assert client.protocol == "shamir"
    assert len(client.nodes) == 3
    assert client.name in repr(client)


def test_all_nodes_answer(client):
    status = client.status()
    assert [node.name for node in status] == client.nodes
    assert all(node.answers and not node.quarantined for node in status)
    assert {node.version for node in status} == {polyclave.__version__}


def test_a_closed_client_says_so(cluster):
    with polyclave.Client(cluster) as client:
        client.status()
    with pytest.raises(polyclave.Misuse, match="closed"):
        client.status()
    client.close()


def test_the_directory_can_come_from_the_environment(cluster, monkeypatch):
    monkeypatch.setenv("POLYCLAVE_CLIENT", str(cluster))
    with polyclave.Client() as client:
        assert client.nodes
    monkeypatch.delenv("POLYCLAVE_CLIENT")
    with pytest.raises(polyclave.Misuse, match="POLYCLAVE_CLIENT"):
        polyclave.Client()


def test_a_directory_that_is_none_is_refused(tmp_path):
    with pytest.raises(polyclave.ConfigurationError):
        polyclave.Client(tmp_path)


def test_a_key_has_the_properties_that_it_was_made_with(client):
    expires = datetime.datetime(2040, 1, 1, tzinfo=datetime.timezone.utc)
    key = client.generate(
        "described", cipher="aes-256", modes=["ctr"], budget=1000, label="for the tests", wrappable=True, expires=expires
    )
    assert (key.name, key.version, key.state, key.cipher) == ("described", 1, "active", "aes-256")
    assert (key.modes, key.usage, key.origin) == (("ctr",), ("encrypt", "decrypt"), "generated")
    assert (key.budget_blocks, key.label, key.wrappable, key.expires) == (1000, "for the tests", True, expires)
    assert key.made.tzinfo is datetime.timezone.utc
    assert client.key("described") == key
    listed = [known for known in client.keys() if known.name == "described"]
    assert listed == [dataclasses.replace(key, nodes=tuple(client.nodes))]


def test_the_usage_alone_says_what_a_key_is_for(client):
    assert client.generate("for-codes", usage=["mac"]).modes == ("cmac",)
    assert client.generate("for-keys", usage=["unwrap", "wrap"]).modes == ()


def test_an_imported_key_says_so(client):
    assert client.import_key("imported", bytes(16)).origin == "imported"
    with pytest.raises(polyclave.Misuse, match="15 bytes"):
        client.import_key("imported-too", bytes(15))


def test_check_values_are_those_of_other_programs(client):
    client.import_key("checked", bytes(range(16)), modes=["ctr"])
    assert client.check("checked") == client.key("checked").check_value == bytes.fromhex("be7ed6ae78")
    assert client.check("checked", version=1, by="zeros") == bytes.fromhex("c6a13b")
    with pytest.raises(polyclave.Misuse, match="not 'ecb'"):
        client.check("checked", by="ecb")
    client.generate("unchecked")
    with pytest.raises(polyclave.NotForThis, match="by CMAC"):
        client.check("unchecked", by="zeros")


def test_old_versions_open_what_they_sealed_until_they_are_deleted(client):
    client.generate("turning")
    sealed = client.seal("turning", b"a secret")
    assert client.rotate("turning").version == 2
    assert [key.version for key in client.versions("turning")] == [2, 1]
    assert client.open("turning", sealed) == b"a secret"
    client.delete("turning", version=1)
    with pytest.raises(polyclave.Error):
        client.open("turning", sealed)
    client.delete("turning")
    with pytest.raises(polyclave.NoSuchKey):
        client.key("turning")
    with pytest.raises(polyclave.NoSuchKey):
        client.delete("turning")


def test_refusals_are_told_apart(client, keys):
    with pytest.raises(polyclave.NoSuchKey) as raised:
        client.seal("nobody", b"")
    assert raised.value.node in client.nodes and not raised.value.may_pass
    with pytest.raises(polyclave.NotForThis):
        client.mac(keys("gcm"), b"")
    with pytest.raises(polyclave.KeyRefused):
        client.generate(keys("gcm"))
    client.generate("poor", modes=["ctr"], budget=2)
    with pytest.raises(polyclave.BudgetSpent):
        client.encrypt("poor", bytes(1000), mode="ctr")


def test_errors_do_not_name_options_of_the_command_line(client, keys):
    bound = client.seal(keys("gcm"), b"a secret", aad=b"row")
    for work in [
        lambda: client.open(keys("gcm"), bound),
        lambda: client.open(keys("gcm"), b"no sealed file at all"),
        lambda: client.encrypt(keys("gcm"), b"a secret", nonce=bytes(12)),
    ]:
        with pytest.raises(polyclave.Error) as raised:
            work()
        assert "--" not in str(raised.value)


@pytest.mark.parametrize("words", [{"modes": ["xts"]}, {"usage": ["dance"]}, {"cipher": "rot13"}], ids=str)
def test_unknown_words_are_refused_before_the_nodes_are_asked(client, words):
    with pytest.raises(polyclave.Misuse):
        client.generate("unknown", **words)


def test_one_string_is_no_list_of_modes(client):
    with pytest.raises(TypeError):
        client.generate("unknown", modes="gcm")


def test_a_stranger_is_not_admitted(cluster, tmp_path):
    stranger = tmp_path / "stranger"
    made = [program(), "client", "init", stranger, "--name", "stranger", "--cluster", cluster / "cluster.toml"]
    subprocess.run(made, check=True, capture_output=True)
    with polyclave.Client(stranger) as client, pytest.raises(polyclave.NotAdmitted) as raised:
        client.keys()
    assert isinstance(raised.value, polyclave.Denied)


def test_random_bytes_are_as_many_as_were_asked_for(client):
    assert len(client.random(32)) == 32
    assert client.random(32) != client.random(32)
    with pytest.raises(polyclave.Misuse):
        client.random(0)


def test_other_threads_go_on_while_the_nodes_work(client, keys):
    stop, counted = threading.Event(), []

    def count():
        while not stop.is_set():
            counted.append(None)
            time.sleep(0)

    interval = sys.getswitchinterval()
    # From now on a thread runs until it gives the interpreter's lock away: the other one in sleep, this one only during the request.
    sys.setswitchinterval(1000)
    try:
        counting = threading.Thread(target=count)
        counting.start()
        before = len(counted)
        # On a busy machine the other thread may sleep through a short request, but not through all of them.
        for _ in range(500):
            client.seal(keys("gcm"), b"a secret", mode="gcm")
            if len(counted) > before:
                break
        assert len(counted) > before
        stop.set()
        counting.join()
    finally:
        stop.set()
        sys.setswitchinterval(interval)


def test_threads_share_a_client(client, keys):
    messages = [bytes([i]) * 100 for i in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        sealed = list(pool.map(lambda message: client.seal(keys("gcm"), message), messages))
        assert list(pool.map(lambda data: client.open(keys("gcm"), data), sealed)) == messages


def test_requests_of_asyncio_run_side_by_side(cluster, keys):
    async def work():
        async with polyclave.aio.Client(cluster) as client:
            assert client.protocol == "shamir"
            messages = [b"one", b"two", b"three"]
            sealed = await asyncio.gather(*(client.seal(keys("gcm"), message) for message in messages))
            assert await asyncio.gather(*(client.open(keys("gcm"), data) for data in sealed)) == messages
            with pytest.raises(polyclave.NoSuchKey):
                await client.seal("nobody", b"")
        with pytest.raises(polyclave.Misuse, match="closed"):
            await client.status()

    asyncio.run(work())


class Endless(io.RawIOBase):
    """Zeros without end. Says when the first have been taken."""

    def __init__(self):
        self.begun = threading.Event()

    def read(self, size=-1):
        self.begun.set()
        return bytes(size)


@pytest.mark.parametrize("ends", ["cancelled", "out of time"])
def test_a_call_of_asyncio_that_is_cancelled_or_out_of_time_ends_in_its_thread(cluster, keys, ends):
    async def give_up(client, reader):
        call = client.seal_stream("endless-" + ends.split()[0], reader, io.BytesIO())
        if ends == "cancelled":
            task = asyncio.ensure_future(call)
            while not reader.begun.is_set():
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(call, 0.5)

    async def work():
        # Whatever is left under way ends with the client. So all of this happens before.
        async with polyclave.aio.Client(cluster) as client:
            await client.generate("endless-" + ends.split()[0], budget=1 << 32)
            reader = Endless()
            await give_up(client, reader)
            # The call in the thread holds it.
            read = weakref.ref(reader)
            del reader
            until = time.monotonic() + PATIENCE
            while read() is not None:
                assert time.monotonic() < until, "the call goes on"
                gc.collect()
                await asyncio.sleep(0.05)
            # Others of the same client go on.
            assert await client.open(keys("gcm"), await client.seal(keys("gcm"), b"a secret")) == b"a secret"

    asyncio.run(work())


class Slow(Endless):
    """Says little, and slowly."""

    def read(self, size=-1):
        self.begun.set()
        time.sleep(0.01)
        return bytes(1)


# What an envelope gets is read to its end before the nodes are asked.
@pytest.mark.parametrize("mode, reader", [("gcm", Endless()), ("envelope", Slow())], ids=["gcm", "envelope"])
def test_closing_a_client_ends_its_calls_under_way(verifying, mode, reader):
    client = polyclave.Client(verifying)
    key, outcome = f"closing-{mode}", []
    client.generate(key, modes=[mode], budget=1 << 32)

    def seal():
        try:
            client.seal_stream(key, reader, io.BytesIO())
        except polyclave.Error as error:
            outcome.append(error)

    sealing = threading.Thread(target=seal)
    sealing.start()
    reader.begun.wait(120)
    client.close()
    sealing.join(120)
    assert not sealing.is_alive()
    assert isinstance(outcome[0], polyclave.Ended)


def test_nodes_that_are_gone_are_unavailable(tmp_path):
    with running(tmp_path / "short") as directory:
        client = polyclave.Client(directory)
        client.generate("short")
    with pytest.raises(polyclave.Unavailable) as raised:
        client.seal("short", b"")
    assert raised.value.may_pass
    assert not any(node.answers for node in client.status())
