"""What nodes of `replicated` and `replicated-active` sent to encrypt a message of GCM in one step
(docs/specification/node-requests.md)."""

import proof
from answers import counters, hashed, told
from elements import added, opened, times
from replay import NODES, Products, Stream, cells_of, circuit, compared, encrypted, joined, mask_of
from replay import masked, repeated, require


def of_lanes(blocks):
    """The cells of public blocks, one a lane. Share 0 has the value."""
    planes = [[sum((block[j] >> p & 1) << lane for lane, block in enumerate(blocks)) for p in range(8)]
              for j in range(16)]
    return [[cell, [0] * 8, [0] * 8] for cell in planes]


def verify(run, keys, powers, common_key):
    """Raises `Wrong` unless the nodes sent what follows from the shares of the round keys, the powers of the
    hash key, and what the client sent."""
    message, additional = (bytes.fromhex(run.file["client"][name]) for name in ("message", "additional"))
    stream, products = Stream(run, "message"), Products()
    blocks = counters(run.found("nonce"), len(message))
    stream.at("computation")
    # Cell by cell, all lanes of a cell.
    rows = bytes(block[j] for j in range(16) for block in blocks)
    public = [rows, bytes(len(rows)), bytes(len(rows))]
    compared(stream, 0, circuit(run, "encrypt", len(blocks)), [public, keys])
    zeros = [stream.generator(i, 0) for i in NODES]
    expanded = [repeated(cell) for cell in cells_of(keys)]
    state = encrypted(stream, of_lanes(blocks), expanded, products, zeros)
    cover, *keystream = [joined(state, lane) for lane in range(len(blocks))]
    if stream.is_active:
        proof.verify(stream, products)

    # The mask has whole blocks. What the client sent is filled up with zeros.
    mask = mask_of(run, 1, 16 * len(keystream))
    sent = masked(run, "message", mask).ljust(16 * len(keystream), b"\0")
    summed = [added(b"".join(block[i] for block in keystream), mask[i]) for i in NODES]
    summed[0] = added(summed[0], sent)
    ciphertext = opened(stream, summed)[:len(message)]
    require(ciphertext == run.found("ciphertext of the message"), "another ciphertext of the message")

    tag = list(cover)
    for block, power in zip(hashed(additional, ciphertext)[::-1], powers):
        tag = [added(share, times(block, factor)) for share, factor in zip(tag, power)]
    told(stream, "tag to the client", common_key, tag)
