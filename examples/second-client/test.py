"""What the client refuses, and the examples of the specification: `python3 test.py`. It needs no node."""

import base64
import contextlib
import datetime
import io
import itertools
import pathlib
import struct
import tempfile
import unittest
import unittest.mock

import blake3
import certificates
import parts
from client import MAGIC, Client
from cluster import Cluster
from nodes import Line, Refused
from parts import Wrong
from wire import Malformed, decode, encode

# The examples of docs/specification/shares.md: three parts of a keystream of five bytes, as nodes sent them.
PARTS = [bytes.fromhex(part) for part in (
    "05000000 dc62c7631a 25a7f3817407b769bc33d05a28ed358bbe5d03272f4af77dc47aa6a432709011",
    "05000000 e4e65fa413 076d3e359ad6ed75fc6cb03e874cacbf7b4a4f44da1d795497c0ffd5daf77e94",
    "05000000 4621763359 32e5f99171f9472458e4123766e286166dab7ea14bec811d76d5b1ce8228037f")]
VALUE = bytes.fromhex("7ea5eef450")


def shared(shares):
    """Parts under `replicated-active`."""
    heads = [struct.pack("<I", len(share)) + share for share in shares]
    return [heads[j] + blake3.hash(shares[(j + 1) % 3]) for j in range(3)]


def active(sent, length=5):
    return parts.combined("replicated-active", [0, 1, 2], sent, length)


class Blake3(unittest.TestCase):
    """Vectors that BLAKE3's authors published: input of 0, 1, .. 250, 0, 1, .."""

    VECTORS = [
        (0, "af1349b9f5f9a1a6a0404dea36dcc949", "2cc39783c223154fea8dfb7c1b1660f2"),
        (1, "2d3adedff11b61f14c886e35afa03673", "b3e2e340a117a499c6cf2398a19ee0d2"),
        (1024, "42214739f095a406f3fc83deb889744a", "7356cd7720d5b66b6d0697eb3177d9f8"),
        (1025, "d00278ae47eb27b34faecf67b4fe263f", "effaa245f065fbf82ac186839a249707"),
        (3073, "7124b49501012f81cc7f11ca069ec922", "72613c9ec9ff7e40f8f5c173784c532a"),
    ]
    CONTEXT = "BLAKE3 2019-12-27 16:29:52 test vectors context"

    def test_vectors(self):
        for length, of_hash, derived in self.VECTORS:
            data = bytes(i % 251 for i in range(length))
            self.assertEqual(blake3.hash(data)[:16].hex(), of_hash)
            self.assertEqual(blake3.derive(self.CONTEXT, data)[:16].hex(), derived)

    def test_output_that_is_longer_than_a_block(self):
        output = blake3.derive(self.CONTEXT, b"", 80)
        self.assertEqual(output[64:].hex(), "a3f746752c6b0ce6a83b0da81d596492")


class Parts(unittest.TestCase):
    def test_parts_that_nodes_sent_make_the_value(self):
        self.assertEqual(active(PARTS), VALUE)

    def test_every_flipped_bit_of_a_part_is_refused(self):
        for node, part in enumerate(PARTS):
            for bit in range(8 * len(part)):
                flipped = bytearray(part)
                flipped[bit // 8] ^= 1 << bit % 8
                with self.assertRaises(Wrong):
                    active(PARTS[:node] + [bytes(flipped)] + PARTS[node + 1:])

    def test_a_share_with_its_own_hash_is_refused(self):
        """A node that cheats makes a share and hashes it. The node before it has hashed the right one."""
        share = bytes(5)
        for node in range(3):
            sent = [bytearray(part) for part in PARTS]
            sent[node][4:9] = share
            sent[node][9:] = blake3.hash(share)
            with self.assertRaises(Wrong):
                active(sent)

    def test_parts_of_another_form_are_refused(self):
        first, second, third = PARTS
        for part in (first[:-1], first + b"\0", b"", first[:3], first[:4] + b"\0" + first[4:],
                     struct.pack("<I", 0) + blake3.hash(b"")):
            with self.assertRaisesRegex(Wrong, "length"):
                active([part, second, third])
        with self.assertRaises(Wrong):
            active([second, first, third])
        # Nothing else is wrong with these.
        for shares, due in [([b""] * 3, 0), ([b"five5", b"five5", b"four"], 5)]:
            with self.assertRaises(Wrong):
                active(shared(shares), due)

    def test_values_of_another_length_are_refused(self):
        for due in (4, 6):
            with self.assertRaises(Wrong):
                active(PARTS, due)
        for protocol in ("shamir", "replicated"):
            with self.assertRaises(Wrong):
                parts.combined(protocol, [0, 1, 2], [b"four", b"five5", b"four"], 4)
            with self.assertRaises(Wrong):
                parts.element(protocol, [0, 1, 2], [bytes(16), bytes(15), bytes(16)])

    def test_numbers_of_the_fields(self):
        self.assertEqual(parts.coefficients([0, 1, 2]), [1, 1, 1])
        self.assertEqual(parts.coefficients([1, 3, 4]), [0xD0, 0x03, 0xD2])
        self.assertEqual(parts.embedded(0x03).hex(), "d6e809e4d195c929ec6e47b1264e1bf5")
        self.assertEqual(parts.embedded(0xF6).hex(), "5193e1b4b6d9fb02f061880db6247de9")

    def test_a_mask_from_its_seeds(self):
        mask, commitments, seeds = parts.dealt_from([bytes([c]) * 32 for c in range(3)], 16)
        self.assertEqual(mask.hex(), "615e95f6659c6d78ad49536c1c519426")
        self.assertEqual(commitments[2].hex()[:32], "08da465d69f67b0195c60dea1bfe0ff5")
        self.assertEqual(seeds[2], bytes(32) + bytes([2]) * 32)


class Wire(unittest.TestCase):
    REFUSED = ("Refused", {"reason": ("Denied", {}), "message": "no", "blames": None})

    def test_the_reply_of_the_page(self):
        self.assertEqual(decode("Reply", bytes.fromhex("0601026e6f00")), self.REFUSED)
        self.assertEqual(encode("Reply", self.REFUSED).hex(), "0601026e6f00")

    def test_replies_that_are_cut_long_or_unknown_are_refused(self):
        for data in ("0601026e6f", "0601026e6f0000", "0601026e6f02", "ff", "060102ffff00", "060d026e6f00",
                     "808080808001"):
            with self.assertRaises(Malformed):
                decode("Reply", bytes.fromhex(data))

    def test_numbers_that_are_too_long_or_large_are_refused(self):
        self.assertEqual(decode("(u16, u8)", bytes.fromhex("ffff0301")), (65535, 1))
        for data in ("ffff0401", "ffff8301", "80808001"):
            with self.assertRaises(Malformed):
                decode("(u16, u8)", bytes.fromhex(data))


class Lines(unittest.TestCase):
    """Connections to a node that sends bytes that are written here."""

    def line(self, sent):
        line = Line.__new__(Line)
        line.name, line.socket = "node", unittest.mock.Mock()
        line.socket.recv = io.BytesIO(sent).read
        return line

    def greeted(self, greeting):
        cluster = Cluster.__new__(Cluster)
        cluster.id = bytes(range(16))
        self.line(greeting).greet(cluster)

    def test_only_the_greeting_of_this_cluster_and_version_is_taken(self):
        # docs/specification/connections.md
        right = b"polyclav" + bytes.fromhex(
            "0c0c 00100000 0db29f63c1347a42ca9b6cbf037ce2697074bce02cee2e854089c37ca362e7bd"
            "23a6de893f7a18e1d78689d7584980a28b5ee389f5f7c9c88b9634b20de95fe4")
        self.greeted(right)
        self.greeted(right[:8] + bytes([11, 13]) + right[10:])
        for byte in [*range(8), *range(10, 78)]:
            with self.assertRaises(Wrong):
                self.greeted(right[:byte] + bytes([right[byte] ^ 1]) + right[byte + 1:])
        for versions in ((11, 11), (13, 13)):
            with self.assertRaises(Wrong):
                self.greeted(right[:8] + bytes(versions) + right[10:])
        with self.assertRaisesRegex(Wrong, "ended"):
            self.greeted(right[:-1])

    def test_only_frames_of_the_length_that_is_due_are_taken(self):
        # The reply of docs/specification/encoding.md.
        right = bytes.fromhex("00000004 06000000 00000006 0601026e6f00")
        self.assertEqual(self.line(right).receive().hex(), "0601026e6f00")
        for wrong in ("00000005 06000000 00000006 0601026e6f00", "00000004 06000000 00000007 0601026e6f00",
                      "00000004 00000000 00000000"):
            with self.assertRaises(Wrong):
                self.line(bytes.fromhex(wrong)).receive()
        for length, taken in ((589_824, True), (589_825, False)):
            lengths = struct.pack(">I", 4) + struct.pack("<I", length) + struct.pack(">I", length)
            line = self.line(lengths + bytes(length))
            with contextlib.nullcontext() if taken else self.assertRaises(Wrong):
                line.receive()


class Certificates(unittest.TestCase):
    def test_a_certificate_is_right_within_its_dates_if_it_is_listed(self):
        """The dates are 2026-11-28 and 2050-01-02, which are written in two forms."""
        of = lambda serial: bytes.fromhex(
            f"3039 3037 a003020102 0201{serial:02x} 3000 3000 3020 170d" + b"261128000000Z".hex()
            + "180f" + b"20500102030405Z".hex())
        at = lambda *date: datetime.datetime(*date, tzinfo=datetime.UTC)
        for now in (at(2026, 11, 28), at(2050, 1, 2, 3, 4, 5)):
            certificates.check("node", [of(2), of(1)], of(1), now)
        for listed, now in [([of(2)], at(2027, 1, 1)), ([of(1)], at(2026, 11, 27, 23, 59, 59)),
                            ([of(1)], at(2050, 1, 2, 3, 4, 6))]:
            with self.assertRaises(Wrong):
                certificates.check("node", listed, of(1), now)

    def test_a_private_key_is_read(self):
        pem = lambda der: ("-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(der).decode()
                           + "\n-----END PRIVATE KEY-----\n")
        key = bytes(range(32))
        new = bytes.fromhex("3051020101300506032b657004220420") + key + bytes.fromhex("812100") + bytes(32)
        old = bytes.fromhex("302e020100300506032b657004220420") + key
        self.assertEqual(certificates.older_form(pem(new)).decode(), pem(old))
        for wrong in ("", pem(b"RSA")):
            with self.assertRaises(Wrong):
                certificates.older_form(wrong)


TAG = shared([bytes([j]) * 16 for j in (1, 2, 4)])


class FakeLine:
    """A node that says what a test has written."""

    def __init__(self, number, replies):
        self.name, self.replies, self.sent = f"node-{number}", list(replies), []

    def send(self, message):
        self.sent.append(message)

    def reply(self, _silence):
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self):
        pass


def refusal(reason):
    return Refused("node", {"reason": (reason, {}), "message": ""})


def changed(of_three, node, change):
    """The same from all nodes, except for one node."""
    return [change(value) if i == node else value for i, value in enumerate(of_three)]


class Conversations(unittest.TestCase):
    """A client of `replicated-active` under nodes that are made up."""

    KEY = {"id": bytes(16), "properties": {"name": "key"}}
    ACCEPTED = [("Accepted", {"key": KEY, "start": bytes(32), "mask": b"", "blind": b""})] * 3
    # A ciphertext, and the parts of a tag.
    SEALED = [("Data", {"data": part, "mask": b"", "initial": b"", "opened": b"12345"}) for part in TAG]

    def told(self, do, *rounds):
        """What the client makes of the replies, each round from all nodes."""
        made = [FakeLine(number, replies) for number, replies in enumerate(zip(*rounds))] * 6
        cluster = Cluster.__new__(Cluster)
        cluster.protocol, cluster.nodes = "replicated-active", [{}, {}, {}]
        self.first_node, lines = made[0], iter(made)
        with unittest.mock.patch("nodes.Line", lambda *_: next(lines)):
            return do(Client(cluster, ""))

    def seal(self, *rounds):
        return self.told(lambda client: client.seal("key", b"input"), *rounds)

    def refused(self, *rounds):
        with self.assertRaises(Wrong):
            self.seal(*rounds)

    def test_a_file_is_made_of_right_replies(self):
        sealed = MAGIC + bytes(48) + b"12345" + b"\7" * 16
        self.assertEqual(self.seal(self.ACCEPTED, self.SEALED), sealed)

    def test_a_node_that_says_something_else_than_the_others_is_found(self):
        other = {"start": bytes([1]) * 32, "key": {**self.KEY, "id": bytes([1]) * 16}}
        for node in range(3):
            for field, value in other.items():
                change = lambda reply: (reply[0], {**reply[1], field: value})
                self.refused(changed(self.ACCEPTED, node, change), self.SEALED)
            change = lambda reply: (reply[0], {**reply[1], "opened": b"12346"})
            self.refused(self.ACCEPTED, changed(self.SEALED, node, change))
            change = lambda reply: (reply[0], {**reply[1], "data": reply[1]["data"][:-1] + b"?"})
            self.refused(self.ACCEPTED, changed(self.SEALED, node, change))
            self.refused(changed(self.ACCEPTED, node, lambda _: ("Done", None)), self.SEALED)
            self.refused(self.ACCEPTED, changed(self.SEALED, node, lambda _: self.ACCEPTED[0]))

    def test_what_all_nodes_say_has_to_be_what_was_asked_for(self):
        for field, value in [("start", bytes(31)), ("key", None),
                             ("key", {**self.KEY, "properties": {"name": "other"}})]:
            self.refused([("Accepted", {**self.ACCEPTED[0][1], field: value})] * 3, self.SEALED)
        self.refused(self.ACCEPTED, [("Data", {**data, "opened": b"1234"}) for _, data in self.SEALED])

    def test_a_new_key_is_the_same_at_all_nodes(self):
        made = [("Done", self.KEY)] * 3
        self.assertEqual(self.told(lambda client: client.generate("key", "gcm"), made), bytes(16))
        other = {**self.KEY, "id": bytes([1]) * 16}
        wrong = [changed(made, node, lambda _: ("Done", other)) for node in range(3)]
        for replies in [*wrong, [("Done", None)] * 3]:
            with self.assertRaises(Wrong):
                self.told(lambda client: client.generate("key", "gcm"), replies)

    def test_a_file_opens_with_its_own_key_only(self):
        sealed = MAGIC + bytes(48) + b"12345" + bytes(16)
        accepted = [("Accepted", {**self.ACCEPTED[0][1], "start": b""})] * 3
        keystream = [("Data", {**self.SEALED[0][1], "data": part}) for part in PARTS]
        opened = self.told(lambda client: client.open("key", sealed), accepted, keystream)
        self.assertEqual(opened, parts.xor(b"12345", VALUE))
        of_another = MAGIC + b"?" * 16 + sealed[32:]
        with self.assertRaises(Wrong):
            self.told(lambda client: client.open("key", of_another), accepted, keystream)

    def test_files_that_are_no_sealed_files_are_not_asked_for(self):
        for file, message in [(b"", "no sealed"), (MAGIC + bytes(63), "no sealed"),
                              (MAGIC + bytes(48), "no sealed"),
                              (b"polyclave-seal-2" + bytes(64), "no sealed"),
                              (MAGIC + bytes(48 + 262_160 + 15), "cut")]:
            with self.assertRaisesRegex(Wrong, message):
                self.told(lambda client: client.open("key", file), self.ACCEPTED)

    def test_the_reason_that_says_most_is_shown(self):
        replies = [refusal("Disagreement"), refusal("Denied"), refusal("Unavailable")]
        for order in itertools.permutations(replies):
            with self.assertRaises(Refused) as found:
                self.seal(order)
            self.assertEqual(found.exception.reason, "Denied")

    def test_busy_nodes_are_asked_again(self):
        busy = [refusal("Busy")] * 3
        self.assertEqual(len(self.seal(busy, self.ACCEPTED, self.SEALED)), 85)
        # With new seeds.
        _, seeds, _, others, _ = self.first_node.sent
        self.assertEqual(len(seeds), 64)
        self.assertNotEqual(seeds, others)
        with self.assertRaises(Refused), unittest.mock.patch("time.sleep"):
            self.seal(*[busy] * 6)


class ClusterFile(unittest.TestCase):
    def node(self, i):
        return (f'[[node]]\nname = "n{i}"\naddress = "h:{i}"\nclient_address = "c:{i}"\n'
                f'certificates = ["AAA{i}"]\n')

    def file(self, change=lambda text: text):
        text = f'id = "{"01" * 16}"\nprotocol = "shamir"\nthreshold = 1\n'
        text += "".join(map(self.node, (4, 5, 6)))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cluster.toml"
            path.write_text(change(text))
            return Cluster(path)

    def test_a_change_of_anything_changes_the_fingerprint(self):
        usual = self.file().fingerprint()
        for old, new in [("0101", "0102"), ("shamir", "replicated"), ("n5", "n7"), ("h:5", "h:7"),
                         ("AAA5", "AAA7"), ("threshold = 1", "threshold = 1\nstandby = true")]:
            self.assertNotEqual(self.file(lambda text: text.replace(old, new)).fingerprint(), usual)

    def test_a_protocol_takes_its_number_of_nodes(self):
        one_more = self.node(7)
        one_fewer = self.node(6)
        self.assertEqual(len(self.file(lambda text: text + one_more).nodes), 4)
        for change in (lambda text: text.replace(one_fewer, ""),
                       lambda text: text.replace("shamir", "replicated-active") + one_more,
                       lambda text: text + "".join(map(self.node, (1, 2, 3, 7, 8, 9, 0)))):
            with self.assertRaises(Wrong):
                self.file(change)

    def test_files_that_are_not_understood_are_refused(self):
        for old, new in [("threshold", "new_field = 1\nthreshold"), ("threshold", "version = 2\nthreshold"),
                         ("shamir", "spdz-tower"), ("threshold = 1", "threshold = 2"), ("n5", "n4"),
                         ("AAA5", "AAA4"), ("n5", "-n"), ('"AAA5"', ""),
                         ('"AAA5"', '"AAA0", "AAA1", "AAA2", "AAA3", "AAA5"'),
                         ("address = \"h:5\"", "address = \"h:5\"\nport = 1"),
                         ("0101", "01"), ("protocol", "protocoll")]:
            with self.assertRaises(Wrong, msg=new):
                self.file(lambda text: text.replace(old, new))


if __name__ == "__main__":
    unittest.main()
