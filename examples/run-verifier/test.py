"""Recorded runs are accepted, and rejected with a byte changed: `python3 test.py`. With `--all` in each
message, which takes an hour, and otherwise in some of each step."""

import sys
import unittest

from fields import S_BOX, encrypted, round_keys, times
from replay import Recorded, Wrong
from verify import VECTORS, verify

ALL = "--all" in sys.argv
# Exchanges of the expansion of a key under `shamir` that are not checked: the second block of the check
# value, the subkeys, and the powers of the hash key.
UNCHECKED = range(60, 135)


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

    def rejects_changes(self, protocol, some, is_checked=lambda place: True):
        """Of messages of every step: of all, or of the first and the last one and some between."""
        run = Recorded(VECTORS / f"{protocol}.json")
        verify(run)
        steps = {}
        for place in filter(is_checked, run.messages):
            steps.setdefault(place[:2], []).append(place)
        self.assertGreater(len(steps), 20)
        for places in steps.values():
            for number, place in enumerate(places if ALL else {*places[::some], places[-1]}):
                self.rejects(run, place, number)

    def test_every_message_of_replicated_active_is_checked(self):
        self.rejects_changes("replicated-active", 400)

    def test_every_message_of_replicated_is_checked(self):
        self.rejects_changes("replicated", 40)

    def test_every_message_of_shamir_is_checked_but_some_of_the_expansion(self):
        def is_checked(place):
            return place[:2] != ("key", "expansion") or place[2] not in UNCHECKED

        self.rejects_changes("shamir", 40, is_checked)
        run = Recorded(VECTORS / "shamir.json")
        exchanges = {place[2] for place in run.messages if place[:2] == ("key", "expansion")}
        self.assertEqual(exchanges - set(UNCHECKED), {*range(60), 135})

    def test_a_verdict_that_does_not_accept_is_rejected_at_all_six_places(self):
        run = Recorded(VECTORS / "replicated-active.json")
        verdicts = [place for place, sent in run.messages.items()
                    if place[:2] == ("key", "expansion") and len(sent) == 1]
        self.assertEqual(len(verdicts), 6)
        for place in verdicts:
            self.rejects(run, place, 0)

    def test_other_results_are_rejected(self):
        for protocol in ("shamir", "replicated", "replicated-active"):
            run = Recorded(VECTORS / f"{protocol}.json")
            for name, honest in run.file["found"].items():
                run.file["found"][name] = f"{int(honest[0], 16) ^ 1:x}{honest[1:]}"
                with self.subTest(protocol=protocol, name=name), self.assertRaises(Wrong):
                    verify(run)
                run.file["found"][name] = honest

    def test_other_inputs_are_rejected(self):
        for protocol in ("shamir", "replicated"):
            run = Recorded(VECTORS / f"{protocol}.json")
            for part in ("client", "requests"):
                for name, honest in run.file[part].items():
                    run.file[part][name] = f"{honest[:-1]}{int(honest[-1], 16) ^ 1:x}"
                    with self.subTest(protocol=protocol, name=name), self.assertRaises(Wrong):
                        verify(run)
                    run.file[part][name] = honest

    def test_a_message_that_is_missing_or_cut_off_is_rejected(self):
        run = Recorded(VECTORS / "shamir.json")
        for place in [("key", "sum of parts", 0, 1, 2), ("block", "computation", 4, 0, 1)]:
            for changed in (None, run.messages[place][:-1]):
                cut = Recorded(VECTORS / "shamir.json")
                cut.messages[place] = changed
                if changed is None:
                    del cut.messages[place]
                with self.subTest(place=place), self.assertRaises(Wrong):
                    verify(cut)
        run = Recorded(VECTORS / "replicated-active.json")
        for exchange in (43, 45, 47, 48, 51):
            place = "message", "computation", exchange, 1, 2
            honest = run.messages[place]
            run.messages[place] = honest[:-1]
            with self.subTest(place=place), self.assertRaises(Wrong):
                verify(run)
            run.messages[place] = honest

    def test_no_other_protocol_is_taken_for_one_of_these(self):
        run = Recorded(VECTORS / "shamir.json")
        run.file["protocol"] = "replicated-four"
        with self.assertRaises(Wrong):
            verify(run)


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--all"])
