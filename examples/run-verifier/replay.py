"""What three nodes computed in a recorded run of `replicated` or `replicated-active`, from their messages
alone: all shares of the key and of the block that they encrypted, and what they remember of products.

Nothing here is what a node does: a node has two of three shares. A recorded run has all messages, the common
secrets among them, so all three follow.
"""

import functools
import json
import operator
import struct

from fields import COORDINATES, ELEMENTS, MU, NU, Prg, affine, blake3, keyed, power, product, round_keys

NODES = range(3)


class Wrong(Exception):
    """Something in the run does not fit."""


def require(holds, what):
    if not holds:
        raise Wrong(what)


class Recorded:
    """The messages of a file, by phase, step, exchange and sender: what each has sent to whom."""

    def __init__(self, path):
        self.file = json.loads(path.read_text())
        self.messages = {}
        for step in self.file["steps"]:
            for message in step["messages"]:
                receivers = message["to"] if isinstance(message["to"], list) else [message["to"]]
                for to in receivers:
                    place = step["phase"], step["step"], message["exchange"], message["from"], to
                    require(place not in self.messages, f"{place} is there twice")
                    self.messages[place] = bytes.fromhex(message["bytes"])

    def found(self, name):
        return bytes.fromhex(self.file["found"][name])

    def keys(self):
        """k_0, k_1, k_2: the keys of the pairs."""
        sent = [("common secrets", "secrets", 0, *pair) for pair in ((0, 2), (0, 1), (1, 2))]
        return [self.messages[place] for place in sent]


class Stream:
    """The first stream of a session."""

    def __init__(self, run, phase):
        self.run, self.phase = run, phase
        # Under `replicated` nodes compare and prove nothing, and products are recomputed here.
        self.is_active = run.file["protocol"] == "replicated-active"
        self.label = run.found(f"session of the {phase}") + struct.pack("<Q", 1)
        self.exchange = 0

    def key(self, i, purpose):
        return keyed(self.run.keys()[i % 3], b"polyclave replicated 1" + bytes([purpose]) + self.label)

    def generator(self, i, purpose):
        return Prg(self.key(i, purpose)[:16])

    def sent(self, step, sender, to):
        place = self.phase, step, self.exchange, sender, to % 3
        require(place in self.run.messages, f"there is no message {place}")
        return self.run.messages[place]

    def at(self, step):
        self.exchange = 0
        self.step = step

    def heard(self, sender, to):
        return self.sent(self.step, sender, to)


def linear(planes, image, count=8):
    """The planes of a linear image. A plane is a number; `image` is the map on the bits of a cell."""
    out = [0] * count
    for i, plane in enumerate(planes):
        bits = image(1 << i)
        for p in range(count):
            out[p] ^= plane if bits >> p & 1 else 0
    return out


def multiplied(x, y, count):
    """Products of planes in coordinates."""
    out = [0] * count
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            bits = COORDINATES[product(ELEMENTS[1 << i], ELEMENTS[1 << j])]
            for p in range(count):
                out[p] ^= a & b if bits >> p & 1 else 0
    return out


def added(x, y):
    return [a ^ b for a, b in zip(x, y, strict=True)]


def of_elements(map):
    return lambda bits: COORDINATES[map(ELEMENTS[bits])]


TO_X = lambda bits: COORDINATES[bits]  # noqa: E731
OUT = lambda bits: affine(ELEMENTS[bits])  # noqa: E731
SQUARE = of_elements(lambda x: power(x, 2))
NU_SQUARE = of_elements(lambda x: product(NU, power(x, 2)))
FOURTH = of_elements(lambda x: power(x, 4))
MU_SQUARE_SQUARE = of_elements(lambda x: power(product(MU, power(x, 2)), 2))
SIXTEENTH = of_elements(lambda x: power(x, 16))


class Products:
    """What is remembered of products: planes of factors and of messages, for each of the three shares."""

    def __init__(self):
        # Triples in GF(4) and in GF(16), a layer at a time.
        self.groups = {2: [], 4: []}
        self.messages = 0


def layer(stream, cells, products, zeros):
    """Lookups of a layer. Each cell has, for each share, eight planes of one byte; so have the results."""
    width = len(cells)

    def planes_of(data, count):
        require(len(data) == count * width, "a message of products has another length")
        return [int.from_bytes(data[p * width:(p + 1) * width], "little") for p in range(count)]

    def multiply(factors, count):
        """One exchange: the shares of the products are what was sent."""
        results, known = [], []
        for i in NODES:
            sent = stream.heard(i, i - 1)
            results.append(planes_of(sent, count))
            known.append(planes_of(zeros[i].next(len(sent)), count) if zeros else [0] * count)
        stream.exchange += 1
        if products:
            products.messages += 1
            own = [multiplied(x, y, count) for x, y in factors]
            remembered.append((results, known, own))
        if zeros and not stream.is_active:
            for i in NODES:
                (x, y), (next_x, next_y) = factors[i], factors[(i + 1) % 3]
                due = added(multiplied(x, added(y, next_y), count), multiplied(next_x, y, count))
                due = added(due, added(known[i], known[(i + 1) % 3]))
                require(results[i] == due, f"P_{i} sent other products")
        return results

    remembered = []
    def gathered(i):
        return [int.from_bytes(bytes(cell[i][p] for cell in cells), "little") for p in range(8)]

    x = [linear(gathered(i), TO_X) for i in NODES]
    high, low = [share[4:] for share in x], [share[:4] for share in x]
    both = multiply(list(zip(high, low)), 4)
    n = [added(added(linear(low[i], SQUARE, 4), linear(high[i], NU_SQUARE, 4)), both[i]) for i in NODES]
    n1, n0 = [share[2:] for share in n], [share[:2] for share in n]
    both = multiply(list(zip(n1, n0)), 2)
    n4 = [linear(share, FOURTH, 4) for share in n]
    m2 = [added(added(linear(n0[i], FOURTH, 2), linear(n1[i], MU_SQUARE_SQUARE, 2)),
                linear(both[i], SQUARE, 2)) for i in NODES]
    v = multiply(list(zip(n4, m2)), 4)
    x16 = [linear(share, SIXTEENTH) for share in x]
    inverse = multiply(list(zip(x16, v)), 8)
    out = [linear(share, OUT) for share in inverse]
    if products:
        remember(products, 2, (n1, n0, m2), remembered[1], remembered[2], width)
        remember(products, 4, (high, low, v), remembered[0], remembered[3], width)
    ones = (1 << 8 * width) - 1
    out[0] = [plane ^ (ones if 0x63 >> p & 1 else 0) for p, plane in enumerate(out[0])]
    rows = [[plane.to_bytes(width, "little") for plane in share] for share in out]
    return [[[rows[i][p][cell] for p in range(8)] for i in NODES] for cell in range(width)]


def remember(products, bits, factors, first, second, width):
    """A b of the first message; a c in the upper and (a + b) c in the lower half of the second."""
    halves = [[[share[:bits] for share in part], [share[bits:] for share in part]] for part in second]
    known = [first, [half[1] for half in halves], [half[0] for half in halves]]
    products.groups[bits].append((factors, known, width))


def compared(stream, number, context, values):
    """Each two nodes have sent each other the digest of the share that both have."""
    if not stream.is_active:
        return
    for i in NODES:
        hashed = struct.pack("<QQ", number, len(context)) + context
        for shares in values:
            hashed += struct.pack("<Q", len(shares[i])) + bytes(shares[i])
        digest = keyed(stream.key(i, 4), hashed)
        for sender, to in ((i, i - 1), (i - 1, i)):
            sender %= 3
            require(stream.heard(sender, to) == digest, f"another digest of share {i} at P_{sender}")
    stream.exchange += 1


def split(share):
    """The planes of cells of one lane."""
    return [[cell >> p & 1 for p in range(8)] for cell in share]


def cells_of(shares):
    return [list(cell) for cell in zip(*[split(share) for share in shares])]


def joined(cells, lane=0):
    """The shares of cells of one lane, a byte each."""
    return [bytes(sum((cell[i][p] >> lane & 1) << p for p in range(8)) for cell in cells) for i in NODES]


def sums(*cells):
    return [[functools.reduce(operator.xor, planes) for planes in zip(*[cell[i] for cell in cells])]
            for i in NODES]


def doubled(cell):
    return [linear(share, lambda x: product(x, 2)) for share in cell]


def repeated(cell):
    """A cell that is the same for all lanes, in every place of a byte."""
    return [[-(plane & 1) & 0xFF for plane in share] for share in cell]


class Expansion:
    """The key that the nodes made of the parts that they drew, and its round keys. The stream stands behind
    the key schedule."""

    def __init__(self, run, parts):
        self.stream, self.products = Stream(run, "key"), Products()
        self.zeros = [self.stream.generator(i, 0) for i in NODES]
        key = self.summed(run, parts)
        self.stream.at("expansion")
        compared(self.stream, 1, circuit(run, "key schedule"), [key])
        cells, constant = cells_of(key), 1
        for i in range(4, 44):
            word = cells[4 * i - 4:4 * i]
            if i % 4 == 0:
                word = layer(self.stream, word[1:] + word[:1], self.products, self.zeros)
                word[0][0] = [p ^ (0xFF if constant >> bit & 1 else 0) for bit, p in enumerate(word[0][0])]
                constant = product(constant, 2)
            cells += [sums(new, before) for new, before in zip(word, cells[4 * i - 16:4 * i - 12])]
        self.shares = joined(cells)
        due = b"".join(round_keys(run.found("key")))
        require(opened_of(self.shares) == due, "other round keys than those of the key")

    def summed(self, run, parts):
        """The shares of the key."""
        stream = self.stream
        stream.at("sum of parts")
        random = [stream.generator(i, 1) for i in NODES]
        inputs = []
        for owner in NODES:
            behind, last = (owner + 1) % 3, (owner + 2) % 3
            shares = {owner: random[owner].next(16), behind: random[behind].next(16)}
            shares[last] = stream.heard(owner, behind)
            require(shares[last] == stream.heard(owner, last), f"P_{owner} sent two different shares")
            inputs.append([shares[i] for i in NODES])
            require(opened_of(inputs[-1]) == parts[owner], f"P_{owner} sent a part that it did not draw")
        stream.exchange += 1
        compared(stream, 0, circuit(run, "sum of keys"), inputs)
        return [opened_of([shares[i] for shares in inputs]) for i in NODES]


def circuit(run, name, lanes=1):
    """The context of the comparison of a circuit's inputs."""
    return bytes.fromhex(run.file["circuits"][name]) + struct.pack("<Q", lanes)


def opened_of(shares):
    return bytes(a ^ b ^ c for a, b, c in zip(*shares, strict=True))


def mask_of(run, number, length):
    """The shares of a mask of the client: what its seeds expand to. It drew three for each request."""
    drawn = blake3.digest(blake3.IV, run.file["seeds"]["client"].encode(), 0, 96 * (number + 1))
    seeds = [struct.pack("<Q", c) + drawn[96 * number + 32 * c:][:32] for c in NODES]
    context = "polyclave 2026 commitment to a seed of a client's mask"
    committed = [blake3.derive(context, seed) for seed in seeds]
    request = bytes.fromhex(run.file["requests"][("block", "message")[number]])
    require(b"".join(committed) in request, "the client committed to other seeds")
    return [blake3.derive("polyclave 2026 component of a client's mask", seed, length) for seed in seeds]


def masked(run, name, mask):
    """What the client sent under a mask, which its request has."""
    data = bytes.fromhex(run.file["client"][name])
    sent = bytes(a ^ b for a, b in zip(data, opened_of(mask)))
    require(sent in bytes.fromhex(run.file["requests"][name]), "the client sent something else")
    return sent


def encrypted_block(run, keys):
    """The nodes' products of the encrypted block, from the shares of the round keys, after all that comes
    before its proof was compared."""
    mask = mask_of(run, 0, 16)
    given = [bytes(a ^ b for a, b in zip(mask[0], masked(run, "block", mask))), *mask[1:]]
    stream, products = Stream(run, "block"), Products()
    stream.at("computation")
    compared(stream, 0, circuit(run, "encrypt"), [given, keys])
    zeros = [stream.generator(i, 0) for i in NODES]
    keys = [repeated(cell) for cell in cells_of(keys)]
    return stream, products, joined(encrypted(stream, cells_of(given), keys, products, zeros))


def encrypted(stream, state, keys, products, zeros, last=16):
    """The circuit *encrypt*. Its last layer has so many lookups."""
    state = [sums(a, b) for a, b in zip(state, keys)]
    for number in range(1, 11):
        count = 16 if number < 10 else last
        state = layer(stream, [state[(i + 4 * (i % 4)) % 16] for i in range(count)], products, zeros)
        if number < 10:
            column = [[state[i & 12 | (i + k) % 4] for k in range(4)] for i in range(16)]
            state = [sums(doubled(a), doubled(b), b, c, d) for a, b, c, d in column]
        state = [sums(cell, key) for cell, key in zip(state, keys[16 * number:])]
    return state
