"""BLAKE3 in plain Python: the hash and the key derivation mode, as the paper of 2020 defines them.

It is slow, some 1 MB a second. A client that moves much data takes a library.
"""

import struct

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
CHUNK, BLOCK = 1024, 64
CHUNK_START, CHUNK_END, PARENT, ROOT, CONTEXT, MATERIAL = 1, 2, 4, 8, 32, 64
# Columns, then diagonals.
LANES = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
         (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)


def schedules():
    """Which words of the message each of the seven rounds takes, in order."""
    order = tuple(range(16))
    for _ in range(7):
        yield order
        order = tuple(order[i] for i in PERMUTATION)


# For each quarter round of a compression: its four words of the state, and its two of the message.
QUARTERS = [(*lane, order[2 * i], order[2 * i + 1]) for order in schedules() for i, lane in enumerate(LANES)]


def compress(chaining, block, counter, flags):
    """All 16 words of output. A block of fewer than 64 bytes is filled up with zeros."""
    m = struct.unpack("<16I", block.ljust(BLOCK, b"\0"))
    v = [*chaining, *IV[:4], counter & 0xFFFFFFFF, counter >> 32, len(block), flags]
    for i, j, k, l, x, y in QUARTERS:
        a, b, c, d = v[i], v[j], v[k], v[l]
        a = (a + b + m[x]) & 0xFFFFFFFF
        d ^= a
        d = (d >> 16 | d << 16) & 0xFFFFFFFF
        c = (c + d) & 0xFFFFFFFF
        b ^= c
        b = (b >> 12 | b << 20) & 0xFFFFFFFF
        a = (a + b + m[y]) & 0xFFFFFFFF
        d ^= a
        d = (d >> 8 | d << 24) & 0xFFFFFFFF
        c = (c + d) & 0xFFFFFFFF
        b ^= c
        b = (b >> 7 | b << 25) & 0xFFFFFFFF
        v[i], v[j], v[k], v[l] = a, b, c, d
    return [v[i] ^ v[i + 8] for i in range(8)] + [v[i + 8] ^ chaining[i] for i in range(8)]


def chunk(key, data, number, flags):
    """The last compression of a chunk of 1 to 1,024 bytes, or of no bytes, before it runs."""
    blocks = [data[i:i + BLOCK] for i in range(0, len(data), BLOCK)] or [b""]
    chaining, start = key, CHUNK_START
    for block in blocks[:-1]:
        chaining = compress(chaining, block, number, flags | start)[:8]
        start = 0
    return chaining, blocks[-1], number, flags | start | CHUNK_END


def tree(key, data, number, flags):
    """The same of a tree. Its left part has as many chunks as the largest power of two that leaves some."""
    if len(data) <= CHUNK:
        return chunk(key, data, number, flags)
    chunks = (len(data) - 1) // CHUNK
    left = 1 << (chunks.bit_length() - 1)
    below = compress(*tree(key, data[:left * CHUNK], number, flags))[:8]
    below += compress(*tree(key, data[left * CHUNK:], number + left, flags))[:8]
    return key, struct.pack("<16I", *below), 0, flags | PARENT


def digest(key, data, flags, length):
    chaining, block, _, flags = tree(key, bytes(data), 0, flags)
    output = b""
    while len(output) < length:
        words = compress(chaining, block, len(output) // BLOCK, flags | ROOT)
        output += struct.pack("<16I", *words)
    return output[:length]


def hash(data):
    """`hash(x)` of the specification."""
    return digest(IV, data, 0, 32)


def derive(context, material, length=32):
    """`derive(context, x)` of the specification, with as many bytes of output as are asked for."""
    key = struct.unpack("<8I", digest(IV, context.encode(), CONTEXT, 32))
    return digest(key, material, MATERIAL, length)
