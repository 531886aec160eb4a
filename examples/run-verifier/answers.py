"""What the client gets, as AES and GCM have it, and the parts of it that nodes of `replicated` and
`replicated-active` send (docs/specification/replicated.md, shares.md)."""

import struct

from elements import added, times
from fields import Prg, blake3, encrypted, keyed, round_keys
from replay import NODES, require

ZERO = bytes(16)


def blocks_of(data):
    """Filled up with zeros."""
    return [data[at:at + 16].ljust(16, b"\0") for at in range(0, len(data), 16)]


def counters(nonce, length):
    """The first one is for the tag."""
    return [nonce + struct.pack(">I", number) for number in range(1, 2 + -(-length // 16))]


def hashed(additional, ciphertext):
    """The blocks that GCM hashes."""
    lengths = struct.pack(">QQ", 8 * len(additional), 8 * len(ciphertext))
    return [*blocks_of(additional), *blocks_of(ciphertext), lengths]


def verify(run):
    """Raises `Wrong` unless all that was found is right. Needs nothing that nodes have sent."""
    def of_client(name):
        return bytes.fromhex(run.file["client"][name])

    keys = round_keys(run.found("key"))
    require(encrypted(keys, of_client("block")) == run.found("ciphertext of the block"), "another ciphertext")
    nonce = blake3.derive("polyclave 2026 gcm nonce", run.found("session of the message"))[:12]
    require(nonce == run.found("nonce"), "another nonce")
    message = of_client("message")
    cover, *keystream = [encrypted(keys, block) for block in counters(nonce, len(message))]
    ciphertext = bytes(a ^ b for a, b in zip(message, b"".join(keystream)))
    require(ciphertext == run.found("ciphertext of the message"), "another ciphertext of the message")
    h, tag = encrypted(keys, ZERO), ZERO
    for block in hashed(of_client("additional"), ciphertext):
        tag = times(added(tag, block), h)
    require(added(tag, cover) == run.found("tag"), "another tag")


def told(stream, step, common_key, shares):
    """Each node sends its first share, blinded by zeros that all nodes know and, under `replicated-active`,
    the hash of its second."""
    length = len(shares[0])
    zeros = Prg(keyed(common_key, b"polyclave replicated 1\5" + stream.label)[:16])
    m = [zeros.next(length), zeros.next(length)]
    blinded = [added(share, zero) for share, zero in zip(shares, [*m, added(*m)])]
    for i in NODES:
        due = blinded[i]
        if stream.is_active:
            due = struct.pack("<I", length) + due + blake3.hash(blinded[(i + 1) % 3])
        sent = stream.run.messages.get((stream.phase, step, 0, i, "client"))
        require(sent == due, f"P_{i} sent something else in {step} of the {stream.phase}")
