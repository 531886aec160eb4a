"""Connections to nodes, and a conversation with all that serve: `docs/specification/connections.md` and
`docs/specification/conversation.md`."""

import os
import pathlib
import socket
import ssl
import struct
import tempfile
import time

import blake3
import certificates
import parts
from parts import Wrong
from wire import Malformed, decode, encode

VERSION = 12
FRAME = 1 << 20
MESSAGE = 589_824
SECONDS_TO_CONNECT, SECONDS_OF_SILENCE, SECONDS_OF_A_REPLY = 3, 60, 900
# If several nodes refuse, these say least, the last one least of all.
SAY_LITTLE = ("Unavailable", "Disagreement")


class Refused(Exception):
    """A node refuses."""

    def __init__(self, node, refusal):
        super().__init__(f"{node} refuses ({refusal['reason'][0]}): {refusal['message']}")
        self.reason = refusal["reason"][0]

    def says_little(self):
        return SAY_LITTLE.index(self.reason) + 1 if self.reason in SAY_LITTLE else 0


def context(folder):
    """TLS 1.3 with the identity of a folder. The node's certificate is checked by `Line`, not here."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_3
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    # Python reads keys from files only.
    with tempfile.NamedTemporaryFile() as key:
        key.write(certificates.older_form((pathlib.Path(folder) / "identity.key").read_text()))
        key.flush()
        tls.load_cert_chain(pathlib.Path(folder) / "identity.crt", key.name)
    return tls


class Line:
    """A connection to one node."""

    def __init__(self, cluster, folder, number):
        node = cluster.nodes[number]
        self.name = node["name"]
        host, _, port = node["client_address"].rpartition(":")
        plain = socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT)
        try:
            self.socket = context(folder).wrap_socket(plain)
        except OSError:
            plain.close()
            raise
        try:
            certificates.check(self.name, node["der"], self.socket.getpeercert(binary_form=True))
            self.greet(cluster)
        except BaseException:
            self.close()
            raise

    def greet(self, cluster):
        terms = blake3.derive("polyclave transport 2026 clients of a cluster", cluster.id)
        stream = blake3.derive("polyclave transport 2025 root stream", b"")
        rest = struct.pack(">I", FRAME) + terms + stream
        self.socket.sendall(b"polyclav" + bytes([VERSION, VERSION]) + rest)
        greeting = self.take(78)
        if greeting[:8] != b"polyclav" or greeting[10:] != rest:
            raise Wrong(f"{self.name} is of another cluster")
        if not greeting[8] <= VERSION <= greeting[9]:
            raise Wrong(f"{self.name} speaks versions {greeting[8]} to {greeting[9]}, not {VERSION}")

    def take(self, count):
        data = bytearray()
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise Wrong(f"{self.name} has ended the connection")
            data += more
        return bytes(data)

    def send(self, message):
        for content in (struct.pack("<I", len(message)), message):
            self.socket.sendall(struct.pack(">I", len(content)) + content)

    def frame(self, length):
        if self.take(4) != struct.pack(">I", length):
            raise Wrong(f"{self.name} sends a frame of another length than is due")
        return self.take(length)

    def receive(self):
        length = struct.unpack("<I", self.frame(4))[0]
        if not 1 <= length <= MESSAGE:
            raise Wrong(f"{self.name} sends a message of {length} bytes")
        return self.frame(length)

    def reply(self, silence):
        """The next reply, after any number of `Working`."""
        until = time.monotonic() + SECONDS_OF_A_REPLY
        self.socket.settimeout(silence)
        while time.monotonic() < until:
            try:
                reply = decode("Reply", self.receive())
            except Malformed as e:
                raise Wrong(f"{self.name} sends what is no reply: {e}") from e
            if reply[0] == "Refused":
                raise Refused(self.name, reply[1])
            if reply[0] != "Working":
                return reply
        raise Wrong(f"{self.name} takes too long")

    def close(self):
        try:
            self.socket.settimeout(1)
            self.socket.unwrap()
        except (OSError, ValueError):
            pass  # The node has closed it before.
        self.socket.close()


class Conversation:
    """A request to nodes, and what follows it. `serving` has their numbers."""

    def __init__(self, cluster, folder, serving, operation, first=None, dealt=(), seeds=()):
        self.cluster, self.serving, self.lines = cluster, serving, []
        request = encode("Request", {
            "version": VERSION,
            "id": os.urandom(16),
            "serving": sum(1 << number for number in serving),
            "operation": operation,
            "first": first,
            "dealt": list(dealt),
            "approval": None,
            "on_behalf_of": "",
            "trace": None,
        })
        try:
            for number in serving:
                self.lines.append(Line(cluster, folder, number))
            self.send(request)
            for line, of_node in zip(self.lines, seeds):
                line.send(of_node)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for line in self.lines:
            line.close()

    def send(self, message):
        for line in self.lines:
            line.send(message)

    def step(self, step):
        self.send(encode("Step", step))

    def replies(self, kind):
        """What is in the reply of each node, which is of this kind."""
        refusals, inside = [], []
        for line in self.lines:
            try:
                name, value = line.reply(0.3 if refusals else SECONDS_OF_SILENCE)
                if name != kind:
                    raise Wrong(f"{line.name} replies with {name}, and {kind} is due")
                inside.append(value)
            except Refused as refusal:
                refusals.append(refusal)
            except (OSError, Wrong):
                if not refusals:
                    raise
        if refusals:
            raise min(refusals, key=lambda refusal: refusal.says_little())
        return inside

    def same(self, kind, what):
        """The replies of this kind, in which `what` gives the same of all nodes; and that."""
        replies = self.replies(kind)
        values = [what(reply) for reply in replies]
        if any(value != values[0] for value in values):
            raise Wrong(f"the nodes differ in what they say: {kind}")
        return replies, values[0]

    def accepted(self, start):
        """The key in use, the `start` of so many bytes, and the parts of a mask."""
        replies, (key, begin) = self.same("Accepted", lambda reply: (reply["key"], reply["start"]))
        if key is None or len(begin) != start:
            raise Wrong("the nodes accept something else than was asked for")
        return key, begin, [reply["mask"] for reply in replies]

    def bytes(self, length):
        return self.combined([reply["data"] for reply in self.replies("Data")], length)

    def combined(self, sent, length):
        return parts.combined(self.cluster.protocol, self.serving, sent, length)

    def element(self, sent=None):
        sent = sent or [reply["data"] for reply in self.replies("Data")]
        return parts.element(self.cluster.protocol, self.serving, sent)
