"""What nodes send of a value, put together, and masks that a client deals: `docs/specification/shares.md`."""

import hmac
import os
import struct

import blake3

# By node: the seeds that it gets.
SEEDS = {0: (0, 1), 1: (1, 2), 2: (0, 2)}
COMMITMENT = "polyclave 2026 commitment to a seed of a client's mask"
COMPONENT = "polyclave 2026 component of a client's mask"
ROOT = bytes.fromhex("56e809e4d195c929ec6e47b1264e1bf5")


class Wrong(Exception):
    """What the nodes sent does not fit together, or is not what is due. Nothing of it may be used."""


def xor(a, b):
    assert len(a) == len(b)
    return (int.from_bytes(a) ^ int.from_bytes(b)).to_bytes(len(a))


def combined(protocol, serving, parts, length):
    """The value of `length` bytes of which the nodes in `serving` sent these parts, in this order."""
    if protocol == "shamir":
        value = at_zero(serving, parts)
    else:
        value = verified(parts) if protocol == "replicated-active" else added(parts)
    if len(value) != length:
        raise Wrong(f"the nodes sent a value of {len(value)} bytes, and {length} are due")
    return value


def element(protocol, serving, parts):
    """The same for an element of GF(2^128)."""
    if protocol != "shamir":
        return combined(protocol, serving, parts, 16)
    check_lengths(parts, 16)
    products = [times(embedded(c), part) for c, part in zip(coefficients(serving), parts)]
    return added(products)


def check_lengths(parts, length):
    if any(len(part) != length for part in parts):
        raise Wrong(f"parts of {[len(part) for part in parts]} bytes do not belong together")


def added(parts):
    check_lengths(parts, len(parts[0]))
    value = bytes(len(parts[0]))
    for part in parts:
        value = xor(value, part)
    return value


def at_zero(serving, parts):
    tables = [bytes(times_byte(c, x) for x in range(256)) for c in coefficients(serving)]
    return added([part.translate(table) for table, part in zip(tables, parts)])


def verified(parts):
    """Each node sends a share, and the hash of the share of the node after it."""
    if not any(parts):
        return b""
    shares, digests = [], []
    for part in parts:
        length = struct.unpack("<I", part[:4])[0] if len(part) >= 4 else 0
        if length == 0 or len(part) != 4 + length + 32:
            raise Wrong("a part has not the length that it says")
        shares.append(part[4:4 + length])
        digests.append(part[4 + length:])
    for j in range(3):
        if not hmac.compare_digest(digests[j], blake3.hash(shares[(j + 1) % 3])):
            raise Wrong(f"a share has another digest: node {j} or node {(j + 1) % 3} cheats")
    return added(shares)


def dealt(length):
    """A new mask of so many bytes, the commitments to its three seeds, and what each node gets."""
    seeds = [os.urandom(32) for _ in range(3)]
    return dealt_from(seeds, length)


def dealt_from(seeds, length):
    numbered = [struct.pack("<Q", c) + seed for c, seed in enumerate(seeds)]
    commitments = [blake3.derive(COMMITMENT, x) for x in numbered]
    parts = [blake3.derive(COMPONENT, x, length) for x in numbered]
    return added(parts), commitments, [b"".join(seeds[c] for c in SEEDS[node]) for node in range(3)]


def times_byte(a, b):
    """In GF(2^8)."""
    product = 0
    for i in range(8):
        if b >> i & 1:
            product ^= a << i
    for i in range(14, 7, -1):
        if product >> i & 1:
            product ^= 0x11B << (i - 8)
    return product


def inverse(a):
    return next(b for b in range(256) if times_byte(a, b) == 1)


def coefficients(serving):
    """With these, values at the points j + 1 make the value at 0."""
    result = []
    for j in serving:
        c = 1
        for i in serving:
            if i != j:
                c = times_byte(c, times_byte(i + 1, inverse((i + 1) ^ (j + 1))))
        result.append(c)
    return result


def times(a, b):
    """In GF(2^128), with the bits as GCM has them: the first one is the coefficient of x^0."""
    a, b, product = int.from_bytes(a), int.from_bytes(b), 0
    for i in range(127, -1, -1):
        if b >> i & 1:
            product ^= a
        a = a >> 1 ^ (0xE1 << 120 if a & 1 else 0)
    return product.to_bytes(16)


def embedded(byte):
    result, power = bytes(16), b"\x80" + bytes(15)
    for i in range(8):
        if byte >> i & 1:
            result = xor(result, power)
        power = times(power, ROOT)
    return result
