"""The proof of products (docs/specification/replicated-proof.md), as its two verifiers check it, for the
three proofs that nodes make at once."""

import struct

from commitments import coins, committed, openings
from fields import Prg, coefficients, element, embedded, inner, point, product, times, words
from replay import NODES, multiplied, require

ROWS, TILE_BYTES, PARTS, PLACES, DERIVED, WIDTH = 8, 64, 16, 81, 40, 64


class Coins:
    """Tosses of one proof."""

    def __init__(self, stream, products, count):
        self.stream, self.tosses = stream, 0
        self.context = b"polyclave replicated proof 2" + stream.label
        self.context += struct.pack("<QQ", count, products.messages)

    def next_context(self):
        self.tosses += 1
        return self.context + struct.pack("<Q", self.tosses - 1)

    def tossed(self):
        return coins(committed(self.stream, self.next_context()))

    def asked(self, length):
        """The messages of all provers to the nodes behind them, and the coins that follow."""
        messages, commitments = [], [[b""] * 3 for _ in NODES]
        for i in NODES:
            before, behind = self.stream.heard(i, i - 1), self.stream.heard(i, i + 1)
            lengths = len(before), len(behind)
            require(lengths == (32, length + 32), "a message of the proof has another length")
            messages.append(words(behind[:length]))
            commitments[(i - 1) % 3][i] = before
            commitments[(i + 1) % 3][i] = behind[length:]
            # Its own.
            commitments[i][i] = before
        self.stream.exchange += 1
        return messages, coins(openings(self.stream, self.next_context(), commitments))


class Group:
    """Triples in GF(4) or in GF(16), in rows."""

    def __init__(self, bits, remembered):
        self.bits = bits
        self.length = sum(width for *_, width in remembered)
        self.factors = [[[b"".join(self.plane(factors[k][i][p], width) for factors, _, width in remembered)
                          for p in range(bits)] for i in NODES] for k in range(3)]
        # By product and node: z + x y of its own share + F(k_i), and F(k_(i+1)).
        self.known = [[[[b"".join(self.plane(*part) for part in self.parts(remembered, k, i, p, which))
                         for p in range(bits)] for which in range(2)] for i in NODES] for k in range(3)]
        self.tiles = -(-self.length // (ROWS * TILE_BYTES))
        self.row = -(-self.length // (ROWS * self.tiles))

    @staticmethod
    def plane(number, width):
        return number.to_bytes(width, "little")

    def parts(self, remembered, k, i, p, which):
        for factors, known, width in remembered:
            results, masks, own = known[k]
            if which == 0:
                yield results[i][p] ^ own[i][p] ^ masks[i][p], width
            else:
                yield masks[(i + 1) % 3][p], width

    def column(self, planes, tile, place):
        """The elements of a column, one a row, as bytes of GF(2^8)."""
        elements = []
        for row in range(ROWS):
            at = (tile * ROWS + row) * self.row + place // 8
            bits = [planes[p][at] >> place % 8 & 1 if at < self.length else 0 for p in range(self.bits)]
            elements.append(element(sum(bit << p for p, bit in enumerate(bits))))
        return elements

    def columns(self):
        return [(tile, place) for tile in range(self.tiles) for place in range(8 * self.row)]


def at(elements, weights):
    """The value of the polynomial through these points."""
    result = 0
    for x, weight in zip(elements, weights, strict=True):
        result ^= times(embedded(x), weight) if x else 0
    return result


def places_of(r):
    """The weights of the values at all places."""
    result = [1]
    for x in r:
        result = [times(weight, part) for weight in result for part in (1 ^ x, x, times(x, 1 ^ x))]
    return result


def parts_of(r):
    result = [1]
    for x in r:
        result = [times(weight, part) for weight in result for part in (1 ^ x, x)]
    return result


def is_summand(place):
    return all(place // digit % 3 < 2 for digit in (1, 3, 9, 27))


def verify(stream, products):
    """Raises `Wrong` if a proof is not accepted, or anything in its messages does not fit."""
    groups = [Group(bits, products.groups[bits]) for bits in (2, 4) if products.groups[bits]]
    tosses = Coins(stream, products, sum(16 * group.length for group in groups))
    first, last = ([stream.generator(i, purpose) for i in NODES] for purpose in (2, 3))

    drawn = Prg(tosses.tossed()[:16])
    betas = drawn.elements(8 * TILE_BYTES)
    alphas = [drawn.elements(-(-group.tiles // 5)) for group in groups]
    sent, tossed = tosses.asked(56)
    r = words(tossed)[0]
    of_points, of_rows = coefficients(15, r), coefficients(ROWS, r)
    # By prover: the shares of its claim. By node: the vectors of its first share.
    at_others = of_points[ROWS:]
    claims = [[inner(at_others, first[i].elements(7)), inner(at_others, sent[i])] for i in NODES]
    vectors = [[[], []] for _ in NODES]
    g = 1 << 2
    for group, alpha in zip(groups, alphas):
        for tile, place in group.columns():
            phi = times(times(alpha[tile // 5], betas[place]), 1 << 3 * (tile % 5))
            theta = times(phi, phi)
            for i in NODES:
                a, b, c = (at(group.column(group.factors[k][i], tile, place), of_rows) for k in range(3))
                vectors[i][0].append(times(phi, a ^ times(times(g, g), c)))
                vectors[i][1].append(times(phi, b ^ times(g, c)))
                for which in range(2):
                    ab, ac, both = (at(group.column(group.known[k][i][which], tile, place), of_points[:ROWS])
                                    for k in range(3))
                    weighted = ab ^ times(g, ac) ^ times(times(g, g), ac ^ both)
                    claims[i][which] ^= times(theta, weighted)

    while len(vectors[0][0]) > WIDTH // 2:
        sent, tossed = tosses.asked(8 * (PLACES - 1))
        r = words(tossed)
        weights, of_parts = places_of(r), parts_of(r)
        for i in NODES:
            for which, shares in enumerate((first[i].elements(PLACES - 1), sent[i])):
                derived = claims[i][which]
                all_shares = shares[:DERIVED] + [0] + shares[DERIVED:]
                for number, share in enumerate(all_shares):
                    derived ^= share if is_summand(number) else 0
                all_shares[DERIVED] = derived
                claims[i][which] = inner(weights, all_shares)
            for side in range(2):
                vector = vectors[i][side]
                size = -(-len(vector) // PARTS)
                vector += [0] * (size * PARTS - len(vector))
                vectors[i][side] = [inner(of_parts, vector[k::size]) for k in range(size)]

    for vector in (side for both in vectors for side in both):
        vector += [0] * (WIDTH // 2 - len(vector))
    u = [first[i].elements(1)[0] for i in NODES]
    w = [last[(i + 1) % 3].elements(1)[0] for i in NODES]
    sent, tossed = tosses.asked(8 * 2 * WIDTH)
    points, drawn = {point(i) for i in range(2 * WIDTH + 1)}, Prg(tossed[:16])
    r = next(x for x in iter(lambda: drawn.elements(1)[0], None) if x not in points)
    of_factor, of_product = coefficients(WIDTH + 1, r), coefficients(2 * WIDTH + 1, r)
    for i in NODES:
        at_r = []
        for which, shares in enumerate((first[i].elements(2 * WIDTH), sent[i])):
            derived = claims[i][which]
            for share in shares[1:WIDTH]:
                derived ^= share
            at_r.append(inner(of_product, [shares[0], derived, *shares[1:]]))
        a, b = vectors[i]
        next_a, next_b = vectors[(i + 1) % 3]
        u_at_r = inner(of_factor, [u[i], *a, *b])
        w_at_r = inner(of_factor, [w[i], *next_b, *next_a])
        # V1 is the node before, V2 the node behind.
        told = words(stream.heard((i - 1) % 3, i + 1))
        require(told == [u_at_r, at_r[0]], f"V1 of P_{i} sent something else than U(r) and its share")
        require(times(u_at_r, w_at_r) == at_r[0] ^ at_r[1], f"the proof of P_{i} is wrong")
    stream.exchange += 1
    for i in NODES:
        for to in NODES:
            require(to == i or stream.heard(i, to) == b"\1", f"the verdict of P_{i}")
    stream.exchange += 1
