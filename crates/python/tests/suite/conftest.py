"""Real clusters of three nodes on this machine, made and run by the program `polyclave`, which POLYCLAVE_BIN names."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

import pytest

import polyclave

#: Much longer than nodes take to find each other.
PATIENCE = 120


def program() -> str:
    return os.environ.get("POLYCLAVE_BIN", "polyclave")


@contextlib.contextmanager
def running(directory: pathlib.Path, *options: str):
    """A new cluster in a directory. Yields its client's directory."""
    subprocess.run([program(), "cluster", "new", directory, *options], check=True, capture_output=True)
    log = open(directory / "log", "wb")
    nodes = subprocess.Popen([program(), "cluster", "run", directory], stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until_ready(directory / "client", nodes, directory / "log")
        yield directory / "client"
    finally:
        nodes.send_signal(signal.SIGINT)
        try:
            nodes.wait(PATIENCE)
        finally:
            # Whatever is left of the nodes: only what this started is in its session.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(nodes.pid, signal.SIGKILL)


def wait_until_ready(client: pathlib.Path, nodes: subprocess.Popen, log: pathlib.Path) -> None:
    until = time.monotonic() + PATIENCE
    with polyclave.Client(client) as asking:
        while True:
            answers = asking.status()
            if all(node.set_up and node.prepared and len(node.connected) >= len(answers) - 1 for node in answers):
                return
            assert nodes.poll() is None and time.monotonic() < until, (answers, log.read_text())
            time.sleep(0.2)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The directory of a client that may do everything, while its nodes run."""
    with running(tmp_path_factory.mktemp("clusters") / "try") as client:
        yield client


@pytest.fixture(scope="session")
def verifying(tmp_path_factory):
    """The same under a protocol that verifies, as envelopes need it."""
    with running(tmp_path_factory.mktemp("clusters") / "active", "--protocol", "replicated-active") as client:
        yield client


@pytest.fixture
def client(cluster):
    with polyclave.Client(cluster) as opened:
        yield opened


@pytest.fixture(scope="session")
def keys(cluster):
    """Keys by their modes, made once."""
    with polyclave.Client(cluster) as client:
        for mode in ("gcm", "siv", "ccm", "gcm-siv", "ctr", "cbc", "ecb", "cmac"):
            client.generate(f"of-{mode}", modes=[mode])
        client.generate("of-xaes", cipher="aes-256", modes=["xaes"])
    return lambda mode: f"of-{mode}"
