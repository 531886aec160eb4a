"""Commitments of all nodes, their openings, and coins (docs/specification/sessions.md)."""

import struct

from fields import blake3
from replay import NODES, require


def openings(stream, context, commitments):
    """What nodes open, from the commitments that each of them has."""
    context = struct.pack("<Q", len(context)) + context
    values = []
    for i in NODES:
        sent = [stream.heard(i, to) for to in NODES if to != i]
        require(sent[0] == sent[1] and len(sent[0]) == 96, f"P_{i} opened in two ways")
        opening, seen = sent[0][:64], sent[0][64:]
        for j in NODES:
            had = b"".join(commitments[j])
            require(blake3.derive("polyclave 2026 commitments of all", context + had) == seen,
                    f"P_{i} and P_{j} have seen different commitments")
            require(blake3.derive("polyclave 2026 commitment", bytes([i]) + context + opening)
                    == commitments[j][i], f"P_{i} did not open what it had committed to")
        values.append(opening[32:])
    stream.exchange += 1
    return values


def committed(stream, context):
    """What nodes commit to and open, in two exchanges."""
    commitments = [[stream.heard(i, j if j != i else i + 1) for i in NODES] for j in NODES]
    stream.exchange += 1
    return openings(stream, context, commitments)


def coins(values):
    return blake3.derive("polyclave 2026 coins", b"".join(values))
