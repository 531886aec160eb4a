"""The key that the nodes made, as they compare it (docs/specification/keys.md)."""

import struct

from fields import blake3
from replay import require

DIGEST = "polyclave 2026 properties of a key"


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def of_bytes(data):
    return varint(len(data)) + data


def fields_of(new):
    """The encodings of the first six fields of a NewKey, and of the others."""
    at, fields = 0, []

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            require(at < len(new), "the request for the key ends early")
            value, shift, at = value | (new[at] & 127) << shift, shift + 7, at + 1
            if not new[at - 1] & 128:
                return value

    # Name, cipher, modes and usages are counted; the budget is a number.
    for is_counted in (True, True, True, False, True):
        begin, count = at, number()
        at += count if is_counted else 0
        fields.append(new[begin:at])
    return [*fields, new[at:at + 1]], new[at + 1:]


class Key:
    """Its two encodings."""

    def __init__(self, run, session, time):
        # Between the head of a request and its five empty fields.
        new = bytes.fromhex(run.file["requests"]["key"])[19:-5]
        first, last = fields_of(new)
        # No attributes, nonces of the nodes, no label, no end, stored.
        require(last == bytes(5), "the key has properties that are not read here")
        id = blake3.derive("polyclave 2026 id of a key", session)[:16]
        # Generated at this time; version 1, active, the oldest one, deletable, revision 0, no component.
        rest = id + b"\0" + varint(time) + of_bytes(run.found("check value")) + bytes([1, 0, 1, 1, 0, 0]) + id
        # In use, no usages are named, and it is not wrappable.
        self.whole, self.in_use = new + rest, b"".join(first[:4]) + bytes(2) + last + rest

    def digest(self):
        return blake3.derive(DIGEST, framed(self.whole))

    def digest_in_use(self):
        return blake3.derive(DIGEST, framed(self.in_use))


def framed(encoding):
    return struct.pack("<I", len(encoding)) + encoding
