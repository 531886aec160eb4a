"""Recorded runs are accepted, and rejected with a byte changed: `python3 test.py`. With `--all` in each
message, which takes minutes, and otherwise in some."""

import sys
import unittest

from fields import S_BOX, encrypted, round_keys, times
from replay import Recorded, Wrong
from verify import VECTORS, verify

ALL = "--all" in sys.argv


class Fields(unittest.TestCase):
    def test_aes_is_that_of_the_standard(self):
        key, block = bytes(range(16)), bytes.fromhex("00112233445566778899aabbccddeeff")
        self.assertEqual(encrypted(round_keys(key), block).hex(), "69c4e0d86a7b0430d8cdb78070b4c55a")
        self.assertEqual(S_BOX[0x53], 0xED)

    def test_squaring_as_often_as_the_field_has_bits_is_the_identity(self):
        x = power = 0x0123456789ABCDEF
        for _ in range(64):
            power = times(power, power)
        self.assertEqual(power, x)


class Runs(unittest.TestCase):
    def rejects(self, run, place, number):
        """A changed byte of one message."""
        honest = run.messages[place]
        changed = bytearray(honest)
        changed[number * 31 % len(honest)] ^= 1 << number % 8
        run.messages[place] = bytes(changed)
        with self.subTest(place=place), self.assertRaises(Wrong):
            verify(run)
        run.messages[place] = honest

    def of_block(self, protocol, step, some):
        run = Recorded(VECTORS / f"{protocol}.json")
        verify(run)
        places = [place for place in run.messages if place[:2] == ("block", step)]
        self.assertGreater(len(places), 100)
        for number, place in enumerate(places if ALL else places[::some]):
            self.rejects(run, place, number)
        return run

    def test_products_and_proofs_of_a_block_are_accepted_and_no_others(self):
        run = self.of_block("replicated-active", "computation", 23)
        for place in [("common secrets", "secrets", 0, 0, 1), ("key", "sum of parts", 0, 0, 1)]:
            self.rejects(run, place, 0)

    def test_products_of_a_block_without_proofs_are_accepted_and_no_others(self):
        self.of_block("replicated", "computation", 23)

    def test_openings_of_a_block_are_accepted_and_no_others(self):
        run = self.of_block("shamir", "computation", 23)
        for place in [("common secrets", "secrets", 0, 0, 1), ("key", "sum of parts", 0, 0, 1),
                      ("block", "mask to the client", 0, 1, "client"),
                      ("block", "answer to the client", 0, 2, "client")]:
            self.rejects(run, place, 0)

    def test_products_of_elements_are_accepted_and_no_others(self):
        run = Recorded(VECTORS / "replicated-active.json")
        # Behind the verdicts of the proof: the check of the powers of the hash key, and the check value.
        verdicts = [place for place, sent in run.messages.items()
                    if place[:2] == ("key", "expansion") and len(sent) == 1]
        behind = [place for place in run.messages
                  if place[:2] == ("key", "expansion") and place[2] > verdicts[0][2]]
        self.assertGreater(len(behind), 30)
        for number, place in enumerate(behind if ALL else behind[::6]):
            self.rejects(run, place, number)

    def test_hellos_and_comparisons_are_accepted_and_no_others(self):
        run = Recorded(VECTORS / "shamir.json")
        phases = "common secrets", "key"
        places = [place for place in run.messages if place[0] in phases and place[1] == "hello"]
        places += [("key", "announcement", 0, 0, 1), ("common secrets", "states", 0, 2, 0),
                   ("block", "comparison of Finish", 0, 1, 2)]
        for number, place in enumerate(places):
            self.rejects(run, place, number)

    def test_no_other_protocol_is_taken_for_one_of_these(self):
        run = Recorded(VECTORS / "shamir.json")
        run.file["protocol"] = "replicated-four"
        with self.assertRaises(Wrong):
            verify(run)


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--all"])
