"""Certificates and keys: `docs/specification/identities.md`."""

import base64
import binascii
import datetime
import re

from parts import Wrong

UTC_TIME, VERSION = 0x17, 0xA0


def check(name, listed, shown, now=None):
    """Whether a node is the one that is listed. TLS has proved that it has the certificate's key."""
    if shown not in listed:
        raise Wrong(f"{name} shows a certificate that is not in the cluster file")
    begins, ends = dates(shown)
    if not begins <= (now or datetime.datetime.now(datetime.UTC)) <= ends:
        raise Wrong(f"the certificate of {name} is for the time from {begins} to {ends}")


def items(der):
    """The items of DER, one after the other: tag and content."""
    while der:
        tag, length, head = der[0], der[1], 2
        if length >= 0x80:
            head += length - 0x80
            length = int.from_bytes(der[2:head])
        yield tag, der[head:head + length]
        der = der[head + length:]


def dates(der):
    """From when to when a certificate is for: RFC 5280, section 4.1.2.5."""
    certificate = next(items(der))[1]
    inside = [item for item in items(next(items(certificate))[1]) if item[0] != VERSION]
    # After the serial number, the algorithm and the issuer.
    return [moment(tag, text.decode()) for tag, text in items(inside[3][1])]


def moment(tag, text):
    if tag == UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.UTC)


def older_form(pem):
    """The private key in the form that OpenSSL reads (PKCS #8, version 0): without the public key."""
    inside = re.search("-----BEGIN PRIVATE KEY-----(.*?)-----END PRIVATE KEY-----", pem, re.DOTALL)
    private = base64.b64decode(inside[1]).partition(bytes.fromhex("04220420"))[2][:32] if inside else b""
    if len(private) != 32:
        raise Wrong("identity.key has no Ed25519 key")
    older = bytes.fromhex("302e020100300506032b657004220420") + private
    return b"-----BEGIN PRIVATE KEY-----\n" + binascii.b2a_base64(older) + b"-----END PRIVATE KEY-----\n"
