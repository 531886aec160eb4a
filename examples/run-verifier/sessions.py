"""The hellos, announcements and comparisons of a recorded run (docs/specification/sessions.md,
node-requests.md, common-secrets.md)."""

import struct

from fields import blake3
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

    def sent(self, exchange, i):
        both = [self.run.messages[self.phase, "hello", exchange, i, to] for to in NODES if to != i]
        require(both[0] == both[1], f"P_{i} said different things in the hello of the {self.phase}")
        return both[0]

    def verify(self):
        """Returns the id of the session."""
        first, second = [self.sent(0, i) for i in NODES], [self.sent(1, i) for i in NODES]
        seen = blake3.derive("polyclave 2026 commitments to a session", b"".join(told[:41] for told in first))
        nonces = b""
        for i in NODES:
            require(len(second[i]) == 1 + self.room, f"P_{i} opened in another length")
            nonce = second[i][1:33]
            commitment = blake3.derive("polyclave 2026 commitment to a session",
                                       bytes([i]) + SERVING + self.terms + nonce)
            due = commitment + OFFER + SERVING + self.terms + self.names
            require(first[i] == due, f"another hello of P_{i}")
            require(second[i][:1] == b"\0" and second[i][33:65] == seen, f"P_{i} has seen something else")
            # Behind a nonce each node draws that of the next session.
            drawn = blake3.digest(blake3.IV, self.run.file["seeds"][f"node {i}"].encode(), 0, 4096)
            at = drawn.find(nonce)
            require(at >= 0, f"the nonce of P_{i} is not what it drew")
            committed = bytes([i]) + SERVING + OFFER + drawn[at + 32:at + 64]
            due = blake3.derive("polyclave 2026 commitment to the next session", committed)
            require(second[i][65:97] == due, f"P_{i} commits to another nonce for the next session")
            require(not any(second[i][97:]), f"the opening of P_{i} is not filled up with zeros")
            nonces += nonce
        id = blake3.derive("polyclave 2026 session id", SERVING + nonces + self.terms + OFFER)
        require(id == self.run.found(f"session of the {self.phase}"), f"another session of the {self.phase}")
        return id


def agreed(run, phase, step, message):
    for i in NODES:
        for to in NODES:
            sent = run.messages.get((phase, step, 0, i, to))
            require(to == i or sent == message, f"P_{i} sent something else in {step} of the {phase}")


def verify(run):
    """Raises `Wrong` unless all that nodes compared follows from what was asked. Keys in use are not compared
    here: their encoding has more than the file says."""
    protocol = PROTOCOLS[run.file["protocol"]]
    always = [("number of parties", struct.pack("<Q", 3)),
              ("cluster", bytes.fromhex(run.file["digest of the cluster file"]))]
    secrets = Hello(run, "common secrets", always + protocol).verify()
    agreed(run, "common secrets", "states", bytes(33))
    epoch = bytes([0xE0] * 32) if run.file["protocol"] == "replicated-active" else bytes(32)
    certificate = bytes.fromhex(run.file["client"]["certificate"])
    encoding = bytes.fromhex(run.file["requests"]["key"])
    ticket = blake3.derive("polyclave 2026 ticket of a request", encoding[1:17] + certificate)
    for to in (1, 2):
        require(run.messages["key", "announcement", 0, 0, to] == b"\2" + ticket, "another announcement")
    settings = always + [
        ("whether a refresh is under way", b"none"),
        ("acceptance of the request", b"accepted"),
        ("memory_per_request_mib (node.toml)", struct.pack("<Q", run.file["memory of a request"])),
        ("common secrets", secrets),
        ("epoch", epoch),
        *protocol,
        ("request", blake3.derive("polyclave 2026 request of a client", of_text(certificate) + encoding)),
        ("key", blake3.derive("polyclave 2026 properties of a key", b"")),
    ]
    Hello(run, "key", settings).verify()
    finish = blake3.derive("polyclave 2026 step of a request", b"\x0a")
    for phase in ("block", "message"):
        agreed(run, phase, "comparison of Finish", b"\1" + finish)
