"""Verifies what three nodes sent to encrypt a block: `verify.py [FILE ..]`, with vectors of messages; by
default those of this repository. See README.md."""

import pathlib
import sys

import elements
import proof
import sessions
import shamir
from replay import Recorded, Wrong, encrypted_block, require

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors/messages"


def of_replicated(run):
    stream, products, shares = encrypted_block(run)
    if stream.is_active:
        proof.verify(stream, products)
        elements.verify(run)
    ciphertext = bytes(a ^ b ^ c for a, b, c in zip(*shares))
    require(ciphertext == run.found("ciphertext of the block"), "another ciphertext")


VERIFIERS = {"replicated-active": of_replicated, "replicated": of_replicated, "shamir": shamir.verify}


def verify(run):
    """Raises `Wrong` unless everything fits."""
    protocol = run.file["protocol"]
    require(protocol in VERIFIERS, f"runs of {protocol} are not verified here")
    sessions.verify(run)
    VERIFIERS[protocol](run)


def main():
    paths = [pathlib.Path(name) for name in sys.argv[1:]] or [VECTORS / f"{name}.json" for name in VERIFIERS]
    for path in paths:
        try:
            verify(Recorded(path))
        except (OSError, ValueError, KeyError) as error:
            sys.exit(f"{path} cannot be read as vectors of messages: {error}")
        except Wrong as wrong:
            sys.exit(f"{path.name}: rejected: {wrong}")
        print(f"{path.name}: accepted")


if __name__ == "__main__":
    main()
