#!/usr/bin/env python3
"""Selects a few tests of NIST's sample vector sets, as they are in this folder.

    python3 vectors/acvp/select.py ACVP-SERVER/gen-val/json-files

It takes the first group of each kind: with another direction, length of key, alphabet and so on. Of a group it
takes the first test of each kind of answer (`testPassed` true, false, or data), with whole bytes and without,
whose input has at most 32 bytes.
Monte Carlo tests are left out: their answers are long.
"""

import json
import pathlib
import sys

SETS = ["ACVP-AES-ECB", "ACVP-AES-CBC", "ACVP-AES-CTR", "ACVP-AES-GCM", "ACVP-AES-KW", "ACVP-AES-KWP", "ACVP-AES-FF1"]
SETS += ["ACVP-TDES-ECB", "ACVP-TDES-CBC", "CMAC-AES", "CMAC-TDES"]
KIND = ["testType", "direction", "kwCipher", "keyingOption", "alphabet", "tagLen"]
INPUTS = ["pt", "ct", "message"]


def main(source: str) -> None:
    for name in SETS:
        prompt, expected = (load(source, name, file) for file in ["prompt", "expectedResults"])
        answers = {test["tcId"]: test for group in expected["testGroups"] for test in group["tests"]}
        kinds, groups = set(), []
        for group in prompt["testGroups"]:
            kind = tuple(group.get(part) for part in KIND + ["keyLen"] * (name != "ACVP-AES-FF1"))
            tests = selected(group["tests"], answers)
            if group["testType"] != "MCT" and kind not in kinds and tests:
                kinds.add(kind)
                groups.append({**group, "tests": tests})
        write(name, "prompt", {**prompt, "testGroups": groups})
        answered = [{"tgId": group["tgId"], "tests": [answers[test["tcId"]] for test in group["tests"]]} for group in groups]
        write(name, "expectedResults", {**expected, "testGroups": answered})


def selected(tests: list, answers: dict) -> list:
    kinds, chosen = set(), []
    for test in tests:
        answer = answers[test["tcId"]]
        kind = (tuple(answer), answer.get("testPassed"), test.get("payloadLen", 0) % 8 == 0)
        if kind not in kinds and sum(len(test.get(name, "")) for name in INPUTS) <= 64:
            kinds.add(kind)
            chosen.append(test)
    return chosen


def load(source: str, name: str, file: str) -> dict:
    return json.loads((pathlib.Path(source) / f"{name}-1.0" / f"{file}.json").read_text())


def write(name: str, file: str, content: dict) -> None:
    folder = pathlib.Path(__file__).parent / f"{name}-1.0"
    folder.mkdir(exist_ok=True)
    (folder / f"{file}.json").write_text(json.dumps(content, indent=1) + "\n")


main(*sys.argv[1:])
