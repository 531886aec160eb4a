"""What nodes and the client draw, in the order of docs/specification/messages.md, and what follows from it:
nonces of hellos, keys of pairs, parts of the key, commitments and coins."""

from commitments import committed
from fields import Prg, blake3
from replay import NODES, Stream, require

# Much more than a node draws in a run.
ALL = 1 << 14


class Drawn:
    """What one of them draws: the next bytes of the extended output of its seed."""

    def __init__(self, run, name):
        self.rest, self.name = blake3.digest(blake3.IV, run.file["seeds"][name].encode(), 0, ALL), name

    def next(self, count):
        require(count <= len(self.rest), f"{self.name} draws more than a run has")
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def expect(self, value, what):
        require(self.next(len(value)) == value, f"{what} of {self.name} is not what it drew")


class OfNodes:
    """What all nodes draw in a run, in its order."""

    def __init__(self, run):
        self.run, self.nodes = run, [Drawn(run, f"node {i}") for i in NODES]
        self.is_shamir = run.file["protocol"] == "shamir"

    def nonces(self):
        """The nonce of a hello, and that of the next session, of each node."""
        return [(drawn.next(32), drawn.next(32)) for drawn in self.nodes]

    def secrets(self):
        """The keys of pairs. Returns the common key, where there is one."""
        for i, j in ((0, 1), (0, 2), (1, 2)):
            sent = self.run.messages["common secrets", "secrets", 0, i, j]
            self.nodes[i].expect(sent, f"the key for P_{j}")
        if self.is_shamir:
            return None
        stream = Stream(self.run, "common secrets")
        stream.at("secrets")
        stream.exchange = 1
        values = committed(stream, b"common key of replicated sharing")
        self.commitments("common secrets", "secrets")
        return blake3.derive("polyclave 2026 common key of replicated sharing", b"".join(values))

    def begin(self):
        """A node of `shamir` has a generator of its own in a session, for what it deals."""
        return [Prg(drawn.next(16)) if self.is_shamir else None for drawn in self.nodes]

    def parts(self):
        """The parts of a key."""
        return [drawn.next(16) for drawn in self.nodes]

    def commitments(self, phase, step):
        """Openings, 96 bytes: the nonce was drawn behind the message."""
        for i in NODES:
            sent = [(place[2], message) for place, message in self.run.messages.items()
                    if place[:2] == (phase, step) and place[3:] == (i, (i + 1) % 3) and len(message) == 96]
            for _, opening in sorted(sent):
                self.nodes[i].expect(opening[32:64] + opening[:32], "what it opens")
