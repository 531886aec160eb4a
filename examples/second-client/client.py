"""A client of Polyclave that was written from its specification alone. README.md says more."""

import argparse
import os
import pathlib
import sys
import time

import parts
from cluster import Cluster
from nodes import Conversation, Refused
from parts import Wrong, xor

MODES = {"gcm": "Gcm", "ecb": "Ecb"}
MAGIC = b"polyclave-seal-1"
CHUNK, TAG, HEAD = 262_144, 16, 64
MESSAGE = 4_096
BLOCKS = 131_072
AGAIN = ("Busy", "Disagreement", "Unavailable")


class Client:
    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder

    def generate(self, name, mode):
        """Makes a key of AES-128, and returns the id of its first version."""
        new = {
            "name": name,
            "cipher": "aes-128",
            "modes": [MODES[mode]],
            "budget_blocks": 1 << 32,
            "usage": ["Encrypt", "Decrypt"],
            "wrappable": False,
            "attributes": b"",
            "caller_nonces": False,
            "label": "",
            "expires": None,
            "lifetime": "Stored",
        }
        operation = ("Generate", {"new": new})
        with Conversation(self.cluster, self.folder, self.cluster.everyone(), operation) as asked:
            _, info = asked.same("Done", lambda info: info)
        if info is None or info["properties"]["name"] != name:
            raise Wrong("the nodes have made another key")
        return info["id"]

    def use(self, key, how, start, first=None, version=None, deal=None):
        """A conversation that the nodes have accepted, the key's id, `start` and parts of a mask.

        The first step is `first`, or what `deal` makes for each request with a mask of its own.
        """
        operation = ("Use", {"key": key, "id": version, "how": how})
        for pause in (0.05, 0.1, 0.2, 0.4, 0.8, None):
            dealt = deal() if deal else (first,)
            asked = Conversation(self.cluster, self.folder, self.cluster.quorum(), operation, *dealt)
            try:
                info, begin, mask = asked.accepted(start)
                if info["properties"]["name"] != key or version not in (None, info["id"]):
                    raise Wrong("the nodes use another key")
                return asked, info["id"], begin, mask
            except Refused as refusal:
                asked.close()
                if refusal.reason not in AGAIN or pause is None:
                    raise
                time.sleep(pause)
            except BaseException:
                asked.close()
                raise

    def use_with_input(self, key, how, start, data, step):
        """The same with secret input, which goes to the nodes under a mask, in a step that `step` makes."""
        if self.cluster.deals_masks():
            def deal():
                mask, commitments, seeds = parts.dealt(len(data))
                return step(xor(data, mask)), commitments, seeds

            return self.use(key, how, start, deal=deal)[:3]
        asked, version, begin, sent = self.use(key, how, start)
        try:
            asked.step(step(xor(data, asked.combined(sent, len(data)))))
        except BaseException:
            asked.close()
            raise
        return asked, version, begin

    def seal(self, key, data):
        """The sealed file with these data."""
        how = ("Seal", {"additional": None})
        if self.cluster.deals_masks() and 1 <= len(data) <= MESSAGE:
            return self.seal_at_once(key, how, data)
        pieces = [data[i:i + CHUNK] for i in range(0, len(data), CHUNK)] or [b""]
        asked, version, file, _ = self.use(key, how, 32, keystream(pieces[0]))
        with asked:
            sealed = MAGIC + version + file
            for i, piece in enumerate(pieces):
                if i > 0:
                    asked.step(keystream(piece))
                ciphertext = xor(piece, asked.bytes(len(piece)))
                asked.step(("Seal", {"ciphertext": ciphertext, "last": piece is pieces[-1]}))
                sealed += ciphertext + asked.element()
            asked.step("Finish")
        return sealed

    def seal_at_once(self, key, how, data):
        """A short file in one step, under a mask of the client. The nodes open the ciphertext themselves."""
        step = lambda masked: ("Message", {"masked": masked})
        asked, version, file = self.use_with_input(key, how, 32, data, step)
        with asked:
            replies, ciphertext = asked.same("Data", lambda reply: reply["opened"])
            if len(ciphertext) != len(data):
                raise Wrong("the ciphertext has not the length of the file")
            tag = asked.element([reply["data"] for reply in replies])
            asked.step("Finish")
        return MAGIC + version + file + ciphertext + tag

    def open(self, key, sealed):
        """The data of a sealed file, once all of its chunks were right."""
        if len(sealed) < HEAD + TAG or not sealed.startswith(MAGIC):
            raise Wrong("this is no sealed file, or one with additional data")
        version, file, rest = sealed[16:32], sealed[32:64], sealed[64:]
        chunks = [rest[i:i + CHUNK + TAG] for i in range(0, len(rest), CHUNK + TAG)]
        if len(chunks[-1]) < TAG:
            raise Wrong("the sealed file was cut")
        steps = [opening(chunk, chunk is chunks[-1]) for chunk in chunks]
        asked, _, _, _ = self.use(key, ("Open", {"file": file, "additional": None}), 0, steps[0], version)
        with asked:
            data = b""
            for i, chunk in enumerate(chunks):
                if i > 0:
                    asked.step(steps[i])
                data += xor(chunk[:-TAG], asked.bytes(len(chunk) - TAG))
            asked.step("Finish")
        return data

    def ecb(self, key, blocks):
        """Whole blocks of AES, encrypted one by one. The nodes see neither the blocks nor the result."""
        if not 16 <= len(blocks) <= BLOCKS or len(blocks) % 16:
            raise Wrong(f"ecb takes whole blocks of 16 bytes, up to {BLOCKS} bytes")
        how = ("EcbEncrypt", {"mask": len(blocks), "tweak": b""})
        step = lambda masked: ("Masked", {"data": masked, "next": 0, "end": "No"})
        asked, _, _ = self.use_with_input(key, how, 0, blocks, step)
        with asked:
            result = asked.bytes(len(blocks))
            asked.step("Finish")
        return result


def keystream(piece):
    return ("Keystream", {"bytes": len(piece)})


def opening(chunk, last):
    return ("Open", {"ciphertext": chunk[:-TAG], "tag": chunk[-TAG:], "last": last})


def write(path, data):
    """The whole file or nothing, and nobody else reads it."""
    unfinished = f"{path}.unfinished"
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    os.replace(unfinished, path)


def main():
    arguments = argparse.ArgumentParser(description="A second client of Polyclave, from its specification.")
    arguments.add_argument("cluster", help="the cluster's file, whose fingerprint you have compared")
    arguments.add_argument("identity", help="a folder with identity.crt and identity.key")
    commands = arguments.add_subparsers(dest="command", required=True)
    commands.add_parser("fingerprint", help="print the fingerprint of the cluster's file")
    generate = commands.add_parser("generate", help="make a key")
    generate.add_argument("key")
    generate.add_argument("--mode", choices=MODES, default="gcm")
    for command, what in [("seal", "seal a file"), ("open", "open a sealed file"), ("ecb", "encrypt blocks")]:
        on_file = commands.add_parser(command, help=what)
        for name in ("key", "input", "output"):
            on_file.add_argument(name)
    given = arguments.parse_args()
    try:
        client = Client(Cluster(given.cluster), given.identity)
        if given.command == "fingerprint":
            print(client.cluster.fingerprint())
        elif given.command == "generate":
            print(f"{given.key} {client.generate(given.key, given.mode).hex()}")
        else:
            make = {"seal": client.seal, "open": client.open, "ecb": client.ecb}[given.command]
            write(given.output, make(given.key, pathlib.Path(given.input).read_bytes()))
    except (Wrong, Refused, OSError) as error:
        sys.exit(f"client.py: {error}")


if __name__ == "__main__":
    main()
