"""Products of elements of GF(2^128) under `replicated-active` (docs/specification/replicated-active.md): the
powers of the hash key of the key that the nodes made, their check, and the opening of its check value."""

import struct

from fields import blake3, keyed
from proof import tossed
from replay import NODES, Stream, cells_of, compared, doubled, joined, layer, repeated, require
from replay import round_keys_of, sums

GROUP = 128


def times(a, b):
    """In GF(2^128), with the bits as GCM has them."""
    x, v, result = int.from_bytes(a, "big"), int.from_bytes(b, "big"), 0
    for i in range(127, -1, -1):
        result ^= v if x >> i & 1 else 0
        v = v >> 1 ^ (0xE1 << 120 if v & 1 else 0)
    return result.to_bytes(16, "big")


def added(*parts):
    total = 0
    for part in parts:
        total ^= int.from_bytes(part, "big")
    return total.to_bytes(len(parts[0]), "big")


def twice(block):
    """As CMAC doubles blocks. Linear, so shares are doubled one by one."""
    value = int.from_bytes(block, "big") << 1
    return (value ^ (1 << 128 | 0x87 if value >> 128 else 0)).to_bytes(16, "big")


def encrypted(stream, state, keys, last=16):
    """The circuit *encrypt*, of which the last layer has so many lookups."""
    state = [sums(a, b) for a, b in zip(state, keys)]
    for number in range(1, 11):
        count = 16 if number < 10 else last
        state = layer(stream, [state[(i + 4 * (i % 4)) % 16] for i in range(count)], None, None)
        if number < 10:
            column = [[state[i & 12 | (i + k) % 4] for k in range(4)] for i in range(16)]
            state = [sums(doubled(a), doubled(b), b, c, d) for a, b, c, d in column]
        state = [sums(cell, key) for cell, key in zip(state, keys[16 * number:])]
    return joined(state)


def powers(stream, x, products):
    """x^1 .. x^128. Of a product the shares are what was sent."""
    result = [x]
    while len(result) < GROUP:
        count = min(len(result), GROUP - len(result))
        sent = [stream.heard(i, i - 1) for i in NODES]
        require(all(len(part) == 16 * count for part in sent), "products of elements have another length")
        stream.exchange += 1
        last = result[-1]
        for k in range(count):
            product = [part[16 * k:16 * k + 16] for part in sent]
            products.append((result[k], last, product))
            result.append(product)
    return result


def opened(stream, shares):
    """Each sends its first share to the node behind it, and a hash of the other to the node before it."""
    for i in NODES:
        require(stream.heard(i, i + 1) == shares[i], f"P_{i} opened another share")
        require(stream.heard(i, i - 1) == blake3.hash(shares[(i + 1) % 3]), f"P_{i} sent another hash")
    stream.exchange += 1
    return added(*shares)


def sacrificed(stream, products, comparisons):
    count = len(products)
    drawn = [stream.generator(i, 1) for i in NODES]
    # Random shares of the parts of the key came before.
    random = [(generator.next(32), generator.next(16 * count))[1] for generator in drawn]
    a, b = ([b"".join(product[factor][i] for product in products) for i in NODES] for factor in range(2))
    d = []
    for i in NODES:
        context = b"factors of elements"
        hashed = struct.pack("<QQ", comparisons, len(context)) + context
        hashed += b"".join(struct.pack("<Q", len(row[i])) + row[i] for row in (a, b))
        digest, sent = keyed(stream.key(i, 4), hashed), stream.heard(i, i - 1)
        theirs = stream.heard((i - 1) % 3, i)
        require(sent[16 * count:] == digest == theirs, f"another digest of share {i}")
        d.append(sent[:16 * count])
    stream.exchange += 1
    context = b"polyclave replicated sacrifice 1" + stream.label + struct.pack("<QQ", count, comparisons + 1)
    coins = tossed(stream, context)
    s, chi = coins[:16], coins[16:]
    places = [slice(16 * k, 16 * k + 16) for k in range(count)]
    e = [b"".join(added(times(s, a[i][at]), random[i][at]) for at in places) for i in NODES]
    e_opened = opened(stream, e)
    w = []
    for i in NODES:
        total, weight = bytes(16), chi
        for (_, _, c), at in zip(products, places):
            term = added(times(s, c[i]), d[i][at], times(e_opened[at], b[i][at]))
            total, weight = added(total, times(weight, term)), times(weight, chi)
        w.append(total)
    require(opened(stream, w) == bytes(16), "products of elements are wrong")


def verify(run):
    """Raises `Wrong` unless the check of the powers, and what is opened of the key, fits."""
    keys = round_keys_of(run)
    stream, products = Stream(run, "key"), []
    stream.at("expansion")
    # The comparison and the ten layers of the key schedule.
    stream.exchange = 41
    zero, expanded = [bytes(16)] * 3, [repeated(cell) for cell in cells_of(keys)]

    def circuit(name):
        return bytes.fromhex(run.file["circuits"][name]) + struct.pack("<Q", 1)

    compared(stream, 2, circuit("check value"), [zero, keys])
    e0 = encrypted(stream, cells_of(zero), expanded)
    code = encrypted(stream, cells_of([twice(share) for share in e0]), expanded, last=5)
    compared(stream, 3, circuit("subkeys"), [zero, keys])
    h = encrypted(stream, cells_of(zero), expanded)
    require(added(*h) == added(*e0), "two different values of E(0)")
    low = powers(stream, h, products)
    powers(stream, low[-1], products)
    # Behind the proof of the products before.
    while run.messages.get(("key", "expansion", stream.exchange - 1, 0, 1)) != b"\1":
        stream.exchange += 1
    sacrificed(stream, products, 4)
    require(opened(stream, code) == run.found("check value"), "another check value")
