"""Recomputes what three nodes sent under `shamir` to expand a key, up to E(0), and to encrypt a block and a
message of GCM, and compares it with a recorded run (docs/specification/shamir.md)."""

import functools
import operator
import struct

from answers import counters
from elements import added, times
from fields import Prg, affine, keyed, power, product
from keys import of_bytes
from replay import NODES, require
from sessions import compared_step

SETS = {3: (0, 1), 5: (0, 2), 6: (1, 2)}
POINTS = [1, 2, 3]
# Of the element to which the byte 02 is embedded in GF(2^128).
ROOT = bytes.fromhex("56e809e4d195c929ec6e47b1264e1bf5")
POWERS = [bytes([0x80]) + bytes(15)]
while len(POWERS) < 8:
    POWERS.append(times(POWERS[-1], ROOT))


def weight(members, j):
    """f_A at the point of P_j."""
    result = 1
    for i in NODES:
        if i not in members:
            result = product(result, product(POINTS[j] ^ POINTS[i], power(POINTS[i], 254)))
    return result


WEIGHTS = {number: [weight(members, j) for j in NODES] for number, members in SETS.items()}


def recombined(shares):
    """The value at 0 of a polynomial of degree 2 at most."""
    result = 0
    for j in NODES:
        coefficient = 1
        for i in NODES:
            if i != j:
                coefficient = product(coefficient, product(POINTS[i], power(POINTS[i] ^ POINTS[j], 254)))
        result ^= product(coefficient, shares[j])
    return result


def recombined_element(shares):
    """The same of elements of GF(2^128)."""
    result = bytes(16)
    for j in NODES:
        coefficient = bytes(16)
        weight = recombined([int(i == j) for i in NODES])
        for bit, power_of_root in enumerate(POWERS):
            coefficient = added(coefficient, power_of_root) if weight >> bit & 1 else coefficient
        result = added(result, times(coefficient, shares[j]))
    return result


class Session:
    """The first stream of a session: generators, and what is sent."""

    def __init__(self, run, phase):
        self.run, self.phase, self.step, self.exchange = run, phase, None, 0
        label = run.found(f"session of the {phase}") + struct.pack("<Q", 1)

        def generator(number, d):
            sender, receiver = SETS[number]
            key = run.messages["common secrets", "secrets", 0, sender, receiver]
            hashed = b"polyclave shamir prss 1" + struct.pack("<HQ", number, d) + label
            return Prg(keyed(key, hashed)[:16])

        self.random = {number: generator(number, 0) for number in SETS}
        self.zero = {number: generator(number, 1) for number in SETS}

    def at(self, step):
        self.step, self.exchange = step, 0

    def parts(self, count):
        return {number: generator.next(count) for number, generator in self.random.items()}

    def zeros(self, count):
        """Shares of zeros, by node."""
        parts = {number: generator.next(count) for number, generator in self.zero.items()}
        return [[combined(of(parts, v), j, POINTS[j]) for v in range(count)] for j in NODES]

    def expect(self, sender, message, to=None):
        for receiver in NODES if to is None else [to]:
            if receiver != sender:
                sent = self.run.messages.get((self.phase, self.step, self.exchange, sender, receiver))
                place = f"{self.step}, {self.exchange}"
                require(sent == bytes(message), f"P_{sender} sent another message in {place}")

    def opened(self, products):
        """Opens products under masks. Each is the shares of two factors, by node. Returns for each the public
        value and the parts of its mask."""
        parts, zeros = self.parts(len(products)), self.zeros(len(products))
        messages = []
        for j in NODES:
            message = []
            for v, (a, b) in enumerate(products):
                mask = combined(of(parts, v), j)
                message.append(product(a[j], b[j]) ^ mask ^ zeros[j][v])
            messages.append(message)
            self.expect(j, message)
        self.exchange += 1
        public = [recombined([message[v] for message in messages]) for v in range(len(products))]
        return [(value, of(parts, v)) for v, value in enumerate(public)]


def of(parts, v):
    """The parts of one of many values."""
    return {number: part[v] for number, part in parts.items()}


def combined(parts, j, factor=1):
    """Of P_j: the sum of r_A f_A, times a factor."""
    result = 0
    for number, part in parts.items():
        result ^= product(part, product(WEIGHTS[number][j], factor))
    return result


def image(opened, map, constant=0):
    """Shares of an image of what was opened under a mask."""
    public, parts = opened
    mapped = {number: map(part) for number, part in parts.items()}
    return [map(public) ^ combined(mapped, j) ^ constant for j in NODES]


def lookups(session, cells):
    """Of a layer. A cell is shares of x and of x^2, and so is what comes out."""
    cubes = session.opened([(x, x2) for x, x2 in cells])
    x3 = [image(cube, lambda c: c) for cube in cubes]
    x12 = [image(cube, lambda c: power(c, 4)) for cube in cubes]
    second = session.opened([*zip(x12, (x2 for _, x2 in cells)), *zip(x12, x3)])
    x14 = [image(value, lambda c: c) for value in second[:len(cells)]]
    x240 = [image(value, lambda c: power(c, 16)) for value in second[len(cells):]]
    last = session.opened(list(zip(x240, x14)))
    return [(image(value, affine, 0x63), image(value, lambda c: power(affine(c), 2), power(0x63, 2)))
            for value in last]


def plus(*cells, constant=0):
    total = ([0] * 3, [0] * 3)
    for cell in cells:
        total = tuple([a ^ b for a, b in zip(*pair)] for pair in zip(total, cell))
    return tuple([a ^ power(constant, square) for a in part] for part, square in zip(total, (1, 2)))


def scaled(cell, factor):
    return tuple([product(a, power(factor, square)) for a in part] for part, square in zip(cell, (1, 2)))


def dealt(session, owner, part, dealer):
    """The shares of an owner's part of the key, which it drew: its own one follows from those that it sent.
    The coefficients of its polynomials are what its dealer gives."""
    session.at("sum of parts")
    kinds = bytes.fromhex(session.run.file["circuits"]["images of a key"])
    kinds = [list(kinds[i:i + 8]) for i in range(0, len(kinds), 8)]
    wanted = [kinds.index([power(1 << bit, exponent) for bit in range(8)]) for exponent in (1, 2)]
    others = [j for j in NODES if j != owner]
    sent = [session.run.messages[session.phase, session.step, 0, owner, j] for j in others]
    require([len(part) for part in sent] == [16 * len(kinds)] * 2, "an input has another length")
    slope = power(POINTS[others[0]] ^ POINTS[others[1]], 254)
    images, coefficients = [], dealer.next(16 * len(kinds))
    for number, (first, second) in enumerate(zip(*sent)):
        rise = product(first ^ second, slope)
        value = first ^ product(rise, POINTS[others[0]])
        kind, byte = kinds[number % len(kinds)], part[number // len(kinds)]
        due = functools.reduce(operator.xor, [x for bit, x in enumerate(kind) if byte >> bit & 1], 0)
        require(value == due, f"P_{owner} sent another part of the key than it drew")
        require(rise == coefficients[number], f"P_{owner} dealt with another polynomial than it drew")
        images.append([value ^ product(rise, POINTS[j]) for j in NODES])
    return [tuple(images[byte * len(kinds) + kind] for kind in wanted) for byte in range(16)]


def encrypted(session, blocks, keys):
    """The circuit *encrypt*, of the blocks of some lanes."""
    lanes = range(len(blocks))
    blocks = [[plus(a, b) for a, b in zip(state, keys)] for state in blocks]
    for number in range(1, 11):
        # First all lanes of the first lookup.
        found = lookups(session, [state[(i + 4 * (i % 4)) % 16] for i in range(16) for state in blocks])
        blocks = [found[lane::len(blocks)] for lane in lanes]
        for lane, state in enumerate(blocks):
            if number < 10:
                column = [[state[i & 12 | (i + k) % 4] for k in range(4)] for i in range(16)]
                state = [plus(scaled(a, 2), scaled(b, 2), b, c, d) for a, b, c, d in column]
            blocks[lane] = [plus(cell, key) for cell, key in zip(state, keys[16 * number:])]
    return blocks


def public(block):
    return [([x] * 3, [power(x, 2)] * 3) for x in block]


def answered(session, step, cells):
    """The parts of bytes for the client."""
    session.at(step)
    zeros = session.zeros(len(cells))
    for j in NODES:
        session.expect(j, [x[j] ^ zero for (x, _), zero in zip(cells, zeros[j], strict=True)], "client")


def made_key(run, sessions):
    """The cells of the round keys."""
    session = Session(run, "key")
    parts = [dealt(session, owner, sessions.parts[owner], sessions.dealers[owner]) for owner in NODES]
    cells = [plus(*of_all) for of_all in zip(*parts)]
    require(bytes(recombined(x) for x, _ in cells) == run.found("key"), "another key")
    session.at("expansion")
    constant = 1
    for i in range(4, 44):
        word = cells[4 * i - 4:4 * i]
        if i % 4 == 0:
            word = lookups(session, word[1:] + word[:1])
            word[0], constant = plus(word[0], constant=constant), product(constant, 2)
        cells += [plus(a, b) for a, b in zip(word, cells[4 * i - 16:4 * i - 12])]
    # The first block of the check value: E(0).
    encrypted(session, [public(bytes(16))], cells)
    # The check value is opened last.
    session.exchange = max(place[2] for place in run.messages if place[:2] == ("key", "expansion"))
    sent = [run.messages["key", "expansion", session.exchange, j, (j + 1) % 3] for j in NODES]
    opened = bytes(map(recombined, zip(*sent, strict=True)))
    require(opened == run.found("check value"), "another check value")
    for j in NODES:
        session.expect(j, sent[j])
    return cells


def encrypted_block(run, cells):
    session = Session(run, "block")
    session.at("mask to the client")
    mask, zeros = session.parts(16), session.zeros(16)
    masks = [[combined(of(mask, v), j) for v in range(16)] for j in NODES]
    for j in NODES:
        session.expect(j, [m ^ z for m, z in zip(masks[j], zeros[j])], "client")
    block = bytes.fromhex(run.file["client"]["block"])
    masked = []
    for v in range(16):
        parts = of(mask, v)
        masked.append((block[v] ^ parts[3] ^ parts[5] ^ parts[6], parts))
    state = [(image(opened, lambda c: c), image(opened, lambda c: power(c, 2))) for opened in masked]
    step = bytes(public for public, _ in masked)
    compared_step(run, "block", "comparison of the step", b"\6" + of_bytes(step) + bytes(2))
    session.at("computation")
    [state] = encrypted(session, [state], cells)
    ciphertext = bytes(recombined(x) for x, _ in state)
    require(ciphertext == run.found("ciphertext of the block"), "another ciphertext")
    answered(session, "answer to the client", state)


def encrypted_message(run, cells):
    session, length = Session(run, "message"), len(run.found("ciphertext of the message"))
    session.at("computation")
    cover, *keystream = encrypted(session, list(map(public, counters(run.found("nonce"), length))), cells)
    # E(J0) becomes an element.
    parts = session.parts(16)
    for j in NODES:
        session.expect(j, [x[j] ^ combined(of(parts, v), j) for v, (x, _) in enumerate(cover)])
    answered(session, "keystream to the client", [cell for block in keystream for cell in block][:length])
    step = b"\1" + of_bytes(run.found("ciphertext of the message")) + b"\1"
    compared_step(run, "message", "comparison of the step", step)
    sent = [run.messages["message", "tag to the client", 0, j, "client"] for j in NODES]
    require(recombined_element(sent) == run.found("tag"), "another tag")


def verify(run, sessions):
    """Raises `Wrong` unless the nodes sent what follows from the secrets and the inputs."""
    cells = made_key(run, sessions)
    encrypted_block(run, cells)
    encrypted_message(run, cells)
