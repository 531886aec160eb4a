"""What the client refuses, and the examples of the specification: `python3 test.py`. It needs no node."""

import pathlib
import struct
import tempfile
import unittest

import blake3
import parts
from cluster import Cluster
from parts import Wrong
from wire import Malformed, decode, encode

# The examples of docs/specification/shares.md: three parts of a keystream of five bytes, as nodes sent them.
PARTS = [bytes.fromhex(part) for part in (
    "05000000 dc62c7631a 25a7f3817407b769bc33d05a28ed358bbe5d03272f4af77dc47aa6a432709011",
    "05000000 e4e65fa413 076d3e359ad6ed75fc6cb03e874cacbf7b4a4f44da1d795497c0ffd5daf77e94",
    "05000000 4621763359 32e5f99171f9472458e4123766e286166dab7ea14bec811d76d5b1ce8228037f")]
VALUE = bytes.fromhex("7ea5eef450")


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

    def test_parts_that_are_cut_long_swapped_or_of_another_length_are_refused(self):
        first, second, third = PARTS
        for sent in ([first[:-1], second, third], [first + b"\0", second, third], [second, first, third],
                     [b"", second, third], [struct.pack("<I", 0) + first[9:], second, third],
                     [first[:4] + b"\0" + first[4:], second, third]):
            with self.assertRaises(Wrong):
                active(sent)
        for due in (4, 6):
            with self.assertRaises(Wrong):
                active(PARTS, due)
        for protocol in ("shamir", "replicated"):
            with self.assertRaises(Wrong):
                parts.combined(protocol, [0, 1, 2], [b"four", b"five5", b"four"], 4)

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


class ClusterFile(unittest.TestCase):
    def file(self, change=lambda text: text):
        node = lambda i: (f'[[node]]\nname = "n{i}"\naddress = "h:{i}"\nclient_address = "c:{i}"\n'
                          f'certificates = ["AAA{i}"]\n')
        text = f'id = "{"01" * 16}"\nprotocol = "shamir"\nthreshold = 1\n' + "".join(map(node, (4, 5, 6)))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cluster.toml"
            path.write_text(change(text))
            return Cluster(path)

    def test_a_change_of_anything_changes_the_fingerprint(self):
        usual = self.file().fingerprint()
        for old, new in [("0101", "0102"), ("shamir", "replicated"), ("n5", "n7"), ("h:5", "h:7"),
                         ("AAA5", "AAA7"), ("threshold = 1", "threshold = 1\nstandby = true")]:
            self.assertNotEqual(self.file(lambda text: text.replace(old, new)).fingerprint(), usual)

    def test_files_that_are_not_understood_are_refused(self):
        for old, new in [("threshold", "new_field = 1\nthreshold"), ("threshold", "version = 2\nthreshold"),
                         ("shamir", "spdz-tower"), ("threshold = 1", "threshold = 2"), ("n5", "n4"),
                         ("AAA5", "AAA4"), ("n5", "-n"), ("address = \"h:5\"", "address = \"h:5\"\nport = 1"),
                         ("0101", "01"), ("protocol", "protocoll")]:
            with self.assertRaises(Wrong, msg=new):
                self.file(lambda text: text.replace(old, new))


if __name__ == "__main__":
    unittest.main()
