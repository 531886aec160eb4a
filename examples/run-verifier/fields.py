"""The fields, generators and hashes of docs/specification: GF(2^8), its tower, GF(2^64), `prg`, `keyed`."""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "second-client"))
import blake3  # noqa: E402  It is that of the second client.

OMEGA, ZETA, MU, NU = 0x12, 0x5C, 0xBC, 0x0D
ROOT = 0x033CE8BEDDC8A656


def product(a, b):
    """In GF(2^8)."""
    result = 0
    while b:
        result ^= a if b & 1 else 0
        a, b = a << 1 ^ (0x11B if a & 0x80 else 0), b >> 1
    return result


def power(a, exponent):
    result = 1
    for bit in bin(exponent)[2:]:
        result = product(result, result)
        result = product(result, a) if bit == "1" else result
    return result


def element(bits):
    """The element with these coordinates: bit 4 i + 2 j + k is that of omega^i zeta^j mu^k."""
    result = 0
    for place in range(8):
        if bits >> place & 1:
            i, j, k = place >> 2, place >> 1 & 1, place & 1
            result ^= product(product(OMEGA if i else 1, ZETA if j else 1), MU if k else 1)
    return result


ELEMENTS = [element(bits) for bits in range(256)]
COORDINATES = {x: bits for bits, x in enumerate(ELEMENTS)}


def affine(x):
    """The linear part of the S-box."""
    return x ^ rotated(x, 1) ^ rotated(x, 2) ^ rotated(x, 3) ^ rotated(x, 4)


def rotated(x, places):
    return (x << places | x >> 8 - places) & 0xFF


S_BOX = [affine(power(x, 254)) ^ 0x63 for x in range(256)]
DOUBLED = [product(x, 2) for x in range(256)]


def round_keys(key):
    """Of AES-128."""
    words, constant = [key[4 * i:4 * i + 4] for i in range(4)], 1
    for i in range(4, 44):
        word = words[-1]
        if i % 4 == 0:
            word = bytes(S_BOX[x] for x in word[1:] + word[:1])
            word, constant = bytes([word[0] ^ constant]) + word[1:], DOUBLED[constant]
        words.append(bytes(a ^ b for a, b in zip(word, words[i - 4])))
    return [b"".join(words[i:i + 4]) for i in range(0, 44, 4)]


def encrypted(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number in range(1, 11):
        state = [S_BOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 10:
            state = [DOUBLED[state[i]] ^ (after := state[i & 12 | (i + 1) % 4]) ^ DOUBLED[after]
                     ^ state[i & 12 | (i + 2) % 4] ^ state[i & 12 | (i + 3) % 4] for i in range(16)]
        state = [a ^ b for a, b in zip(state, keys[number])]
    return bytes(state)


class Prg:
    """`prg(seed)`: AES-128 of counters."""

    def __init__(self, seed):
        self.keys, self.counter, self.rest = round_keys(seed), 0, b""

    def next(self, length):
        while len(self.rest) < length:
            self.rest += encrypted(self.keys, struct.pack("<QQ", 0, self.counter))
            self.counter += 1
        taken, self.rest = self.rest[:length], self.rest[length:]
        return taken

    def elements(self, count):
        return words(self.next(8 * count))


def words(data):
    """Elements of GF(2^64)."""
    return list(struct.unpack(f"<{len(data) // 8}Q", data))


def keyed(key, data):
    return blake3.digest(struct.unpack("<8I", key), data, 16, 32)


def times(a, b):
    """In GF(2^64)."""
    result = 0
    while b:
        low = b & -b
        result ^= a * low
        b ^= low
    for _ in range(2):
        high = result >> 64
        result = result & (1 << 64) - 1 ^ high ^ high << 1 ^ high << 3 ^ high << 4
    return result


def inner(a, b):
    result = 0
    for x, y in zip(a, b, strict=True):
        result ^= times(x, y)
    return result


POWERS = [1]
while len(POWERS) < 8:
    POWERS.append(times(POWERS[-1], ROOT))


def embedded(byte):
    """A byte of GF(2^8) in GF(2^64)."""
    result = 0
    for i, root in enumerate(POWERS):
        result ^= root if byte >> i & 1 else 0
    return result


def point(i):
    return embedded(ELEMENTS[i])


def coefficients(count, place):
    """What makes the value at a place from those at the first points, of a polynomial of a lower degree."""
    before, behind = [1], [1]
    for i in range(count):
        before.append(times(before[-1], place ^ point(i)))
        behind.append(times(behind[-1], place ^ point(count - 1 - i)))
    result = []
    for i in range(count):
        differences = 1
        for j in range(count):
            differences = product(differences, ELEMENTS[i] ^ ELEMENTS[j]) if j != i else differences
        result.append(times(times(before[i], behind[count - 1 - i]), embedded(power(differences, 254))))
    return result
