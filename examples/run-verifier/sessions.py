"""The hellos, announcements and comparisons of a recorded run (docs/specification/sessions.md,
node-requests.md, common-secrets.md)."""

import struct

from drawn import OfNodes
from fields import blake3
from keys import DIGEST, Key
from replay import NODES, require

PROTOCOLS = {
    "shamir": [("protocol", b"shamir"), ("threshold", struct.pack("<Q", 1)),
               ("inversion", b"carried-squares"), ("tables", b"polynomial or masked"),
               ("tables of two bits", b"product")],
    "replicated": [("protocol", b"replicated")],
    "replicated-active": [("protocol", b"replicated-active")],
}
SERVING, OFFER = struct.pack("<H", 7), bytes([5]) + bytes(8)


def of_text(text):
    return struct.pack("<Q", len(text)) + text


class Hello:
    """The settings of a hello, and what the nodes sent in it."""

    def __init__(self, run, phase, settings):
        self.run, self.phase = run, phase
        digests = [blake3.derive("polyclave 2026 session setting", value) for _, value in settings]
        names = [name.encode() for name, _ in settings]
        self.names = blake3.derive("polyclave 2026 setting names", b"\n".join(names))
        terms = b"".join(of_text(name) + digest for name, digest in zip(names, digests))
        self.terms = blake3.derive("polyclave 2026 session terms", terms)
        self.room = max(96, 32 * len(settings))

    def verify(self, drawn):
        """Returns the id of the session, from the nonces that the nodes drew."""
        nonces = drawn.nonces()
        committed = [blake3.derive("polyclave 2026 commitment to a session",
                                   bytes([i]) + SERVING + self.terms + nonces[i][0]) for i in NODES]
        seen = blake3.derive("polyclave 2026 commitments to a session",
                             b"".join(commitment + OFFER for commitment in committed))
        for i in NODES:
            said(self.run, self.phase, "hello", 0, i,
                 committed[i] + OFFER + SERVING + self.terms + self.names)
            following = blake3.derive("polyclave 2026 commitment to the next session",
                                      bytes([i]) + SERVING + OFFER + nonces[i][1])
            opening = (nonces[i][0] + seen + following).ljust(self.room, b"\0")
            said(self.run, self.phase, "hello", 1, i, b"\0" + opening)
        opened = b"".join(nonce for nonce, _ in nonces)
        id = blake3.derive("polyclave 2026 session id", SERVING + opened + self.terms + OFFER)
        require(id == self.run.found(f"session of the {self.phase}"), f"another session of the {self.phase}")
        return id


def said(run, phase, step, exchange, sender, message):
    """To both others."""
    for to in NODES:
        sent = run.messages.get((phase, step, exchange, sender, to))
        require(to == sender or sent == message, f"P_{sender} sent something else in {step} of the {phase}")


def agreed(run, phase, step, message):
    for i in NODES:
        said(run, phase, step, 0, i, message)


def compared_step(run, phase, step, encoding):
    """The comparison of a step of the client."""
    digest = blake3.derive("polyclave 2026 step of a request", encoding)
    agreed(run, phase, step, b"\1" + digest)


class Sessions:
    """All sessions of a run. After `verify` it has the common key, and the generators of dealers of `shamir`
    and the parts of the key that the nodes drew."""

    def __init__(self, run):
        self.run, self.drawn = run, OfNodes(run)
        self.protocol = PROTOCOLS[run.file["protocol"]]
        self.always = [("number of parties", struct.pack("<Q", 3)),
                       ("cluster", bytes.fromhex(run.file["digest of the cluster file"]))]

    def verify(self):
        """Raises `Wrong` unless all that nodes compared follows from what was asked and drawn."""
        run, drawn = self.run, self.drawn
        agreed(run, "common secrets", "meeting", b"\1")
        self.secrets = Hello(run, "common secrets", self.always + self.protocol).verify(drawn)
        agreed(run, "common secrets", "states", bytes(33))
        self.common_key = drawn.secrets()
        agreed(run, "common secrets", "stored", b"\1")
        session = self.begun("key", blake3.derive(DIGEST, b""))
        self.dealers, self.parts = drawn.begin(), drawn.parts()
        drawn.commitments("key", "expansion")
        said(run, "key", "time", 0, 0, struct.pack("<Q", run.file["time"]))
        key = Key(run, session, run.file["time"])
        for step in ("stored", "announced"):
            agreed(run, "key", step, b"\1" + key.digest())
        for phase in ("block", "message"):
            self.begun(phase, key.digest_in_use())
            drawn.begin()
            drawn.commitments(phase, "computation")
            compared_step(run, phase, "comparison of Finish", b"\x0a")

    def begun(self, phase, key):
        """The announcement and the hello of a request. Returns the id of the session."""
        run, encoding = self.run, bytes.fromhex(self.run.file["requests"][phase])
        certificate = bytes.fromhex(run.file["client"]["certificate"])
        ticket = blake3.derive("polyclave 2026 ticket of a request", encoding[1:17] + certificate)
        said(run, phase, "announcement", 0, 0, b"\2" + ticket)
        request = blake3.derive("polyclave 2026 request of a client", of_text(certificate) + encoding)
        epoch = bytes([0xE0] * 32) if run.file["protocol"] == "replicated-active" else bytes(32)
        return Hello(run, phase, self.always + [
            ("whether a refresh is under way", b"none"),
            ("acceptance of the request", b"accepted"),
            ("memory_per_request_mib (node.toml)", struct.pack("<Q", run.file["memory of a request"])),
            ("common secrets", self.secrets),
            ("epoch", epoch),
            *self.protocol,
            ("request", request),
            ("key", key),
        ]).verify(self.drawn)
