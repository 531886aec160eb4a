"""What nodes of `replicated` and `replicated-active` compute of the key that they made, behind its key
schedule: the check value, the powers of the hash key, which are products of elements of GF(2^128), the check
of all products, and the opening of the check value (docs/specification/node-requests.md,
replicated-active.md)."""

import struct

import proof
from commitments import coins, committed
from fields import blake3, keyed
from replay import NODES, cells_of, circuit, compared, encrypted, joined, repeated, require

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


def twice(cells):
    """As CMAC doubles blocks, lane by lane. Linear, so each share is doubled alone."""
    def bit(j, p, i):
        if p > 0:
            return cells[j][i][p - 1]
        return cells[j + 1][i][7] if j < 15 else 0

    doubled = [[[bit(j, p, i) for p in range(8)] for i in NODES] for j in range(16)]
    for i in NODES:
        doubled[15][i] = [plane ^ (cells[0][i][7] if 0x87 >> p & 1 else 0)
                          for p, plane in enumerate(doubled[15][i])]
    return doubled


def powers(stream, x, products, zeros):
    """x^1 .. x^128. Of a product the shares are what was sent. Under `replicated` no check follows, and they
    are computed here."""
    result = [x]
    while len(result) < GROUP:
        count = min(len(result), GROUP - len(result))
        sent = [stream.heard(i, i - 1) for i in NODES]
        require(all(len(part) == 16 * count for part in sent), "products of elements have another length")
        stream.exchange += 1
        last, masks = result[-1], [generator.next(16 * count) for generator in zeros]
        for k in range(count):
            at = slice(16 * k, 16 * k + 16)
            product, (a, b) = [part[at] for part in sent], (result[k], last)
            for i in () if stream.is_active else NODES:
                masked = added(masks[i][at], masks[i - 2][at])
                due = added(times(a[i], added(b[i], b[i - 2])), times(a[i - 2], b[i]), masked)
                require(product[i] == due, f"P_{i} sent other products of elements")
            products.append((a, b, product))
            result.append(product)
    return result


def opened(stream, shares):
    """Each sends its first share to the node behind it and, under `replicated-active`, a hash of the other
    to the node before it."""
    for i in NODES:
        require(stream.heard(i, i + 1) == shares[i], f"P_{i} opened another share")
        if stream.is_active:
            digest = blake3.hash(shares[(i + 1) % 3])
            require(stream.heard(i, i - 1) == digest, f"P_{i} sent another hash")
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
    tossed = coins(committed(stream, context))
    s, chi = tossed[:16], tossed[16:]
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


def verify(run, expansion):
    """Raises `Wrong` unless the products behind the key schedule, the check of all products of the key, and
    what is opened of it, fit. Returns the shares of the first powers of the hash key."""
    stream, products, zeros = expansion.stream, expansion.products, expansion.zeros
    keys, zero = expansion.shares, [bytes(16)] * 3
    expanded = [repeated(cell) for cell in cells_of(keys)]

    def encrypt(state, last=16):
        return encrypted(stream, state, expanded, products, zeros, last)

    compared(stream, 2, circuit(run, "check value"), [zero, keys])
    code = joined(encrypt(twice(encrypt(cells_of(zero))), last=5))
    compared(stream, 3, circuit(run, "subkeys"), [zero, keys])
    h = joined(encrypt(cells_of(zero)))
    made = []
    low = powers(stream, h, made, zeros)
    powers(stream, low[-1], made, zeros)
    if stream.is_active:
        proof.verify(stream, products)
        sacrificed(stream, made, 4)
    require(opened(stream, code) == run.found("check value"), "another check value")
    return low
