"""Verifies what three nodes sent to make a key, and to encrypt a block and a message of GCM:
`verify.py [FILE ..]`, with vectors of messages; by default those of this repository. See README.md."""

import pathlib
import struct
import sys

import answers
import elements
import message
import proof
import shamir
from replay import Expansion, Recorded, Wrong, encrypted_block, require
from sessions import Sessions

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors/messages"


def of_replicated(run, sessions):
    expansion = Expansion(run, sessions.parts)
    keys, powers = expansion.shares, elements.verify(run, expansion)
    stream, products, shares = encrypted_block(run, keys)
    if stream.is_active:
        proof.verify(stream, products)
    answers.told(stream, "answer to the client", sessions.common_key, shares)
    message.verify(run, keys, powers, sessions.common_key)


VERIFIERS = {"replicated-active": of_replicated, "replicated": of_replicated, "shamir": shamir.verify}


def verify(run):
    """Raises `Wrong` unless everything fits."""
    protocol = run.file["protocol"]
    require(protocol in VERIFIERS, f"runs of {protocol} are not verified here")
    try:
        sessions = Sessions(run)
        sessions.verify()
        answers.verify(run)
        VERIFIERS[protocol](run, sessions)
    except (ValueError, LookupError, struct.error) as error:
        raise Wrong(f"something is missing, or has another length: {error!r}") from error


def main():
    paths = [pathlib.Path(name) for name in sys.argv[1:]] or [VECTORS / f"{name}.json" for name in VERIFIERS]
    for path in paths:
        try:
            run = Recorded(path)
        except (OSError, ValueError, LookupError, TypeError) as error:
            sys.exit(f"{path} cannot be read as vectors of messages: {error!r}")
        try:
            verify(run)
        except Wrong as wrong:
            sys.exit(f"{path.name}: rejected: {wrong}")
        print(f"{path.name}: accepted")


if __name__ == "__main__":
    main()
