"""Sends the requests of OASIS's test cases for KMIP (XML) to a gateway, and compares the responses with those of the cases.

    python3 kmip-test-cases.py HOST PORT CERTIFICATE KEY AUTHORITY FILE..

It takes names of tags and enumerations from PyKMIP. For each step it prints what differs: a response has to have everything that the case has,
except the texts of messages; it may have more. `$NOW` may be 10 minutes off.
"""

import datetime
import pathlib
import socket
import ssl
import sys
import time
import xml.etree.ElementTree as ElementTree

from kmip.core import enums

KINDS = ["", "Structure", "Integer", "LongInteger", "BigInteger", "Enumeration", "Boolean", "TextString", "ByteString", "DateTime", "Interval"]
BYTES = {"Integer": 4, "LongInteger": 8, "Enumeration": 4, "Boolean": 8, "DateTime": 8, "Interval": 4}


def plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


TAGS = {plain(tag.name): tag.value for tag in enums.Tags}
NAMES = {tag.value: plain(tag.name) for tag in enums.Tags}
ENUMERATIONS = {plain(name): one for name, one in vars(enums).items() if isinstance(one, type) and issubclass(one, enums.enum.Enum)}
OTHER_NAMES = {"3des": "tripledes", "des3": "tripledes"}


class Unknown(Exception):
    """PyKMIP has no such name."""


def enumeration(tag: str, name: str) -> int:
    if name.startswith("0x"):
        return int(name, 16)
    if tag == "attributereference":
        return TAGS[plain(name)] if plain(name) in TAGS else unknown(name)
    members = {plain(one.name): one.value for one in ENUMERATIONS.get(tag, [])}
    value = members.get(OTHER_NAMES.get(plain(name), plain(name)))
    return value if value is not None else unknown(name)


def unknown(name: str):
    raise Unknown(name)


class Case:
    """The variables of a case: identifiers and other values of responses."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def value(self, element: ElementTree.Element):
        """The value of an element; `None` for a variable that no response had."""
        kind, text, tag = element.get("type"), element.get("value"), plain(element.tag)
        if text.startswith("$NOW"):
            return int(time.time()) + int(text[4:] or 0)
        if text.startswith("$"):
            return self.values.get(text)
        match kind:
            case "Integer" if tag.endswith("mask") and not text.lstrip("-").isdigit():
                names = {plain(one.name): one.value for one in ENUMERATIONS[tag]}
                return sum(names[plain(name)] for name in text.split())
            case "Integer" | "LongInteger" | "Interval":
                return int(text, 0)
            case "Enumeration":
                return enumeration(tag, text)
            case "Boolean":
                return int(text == "true")
            case "TextString":
                return text.encode()
            case "ByteString" | "BigInteger":
                return bytes.fromhex(text)
            case "DateTime":
                return int(datetime.datetime.fromisoformat(text).timestamp())

    def ttlv(self, element: ElementTree.Element) -> bytes:
        tag = TAGS[plain(element.tag)] if plain(element.tag) in TAGS else unknown(element.tag)
        kind = element.get("type", "Structure")
        if kind == "Structure":
            value = b"".join(self.ttlv(child) for child in element)
        else:
            value = self.value(element)
            if value is None:
                raise Unknown(element.get("value"))
            if isinstance(value, int):
                value = value.to_bytes(BYTES[kind], "big", signed=kind != "Enumeration")
        padding = bytes(-len(value) % 8)
        return tag.to_bytes(3, "big") + bytes([KINDS.index(kind)]) + len(value).to_bytes(4, "big") + value + padding

    def differences(self, expected: ElementTree.Element, items: list, where: str = "") -> list[str]:
        """What of the items in an element has no counterpart among those of a response."""
        found, left = [], list(items)
        for element in expected:
            name = plain(element.tag)
            if name in ["resultmessage", "timestamp", "responseheader"]:
                continue
            same = [one for one in left if one[0] == name]
            if not same:
                found.append(f"no {element.tag}")
                continue
            if element.get("type") is None:
                inner = [(one, self.differences(element, one[1], element.tag)) for one in same]
                one, least = min(inner, key=lambda pair: len(pair[1]))
                found += least
            else:
                one = next((one for one in same if self.fits(element, one[1])), None)
                if one is None:
                    found.append(f"{element.tag} {told(name, same[0][1])} instead of {element.get('value')}")
                    continue
            left.remove(one)
        return found

    def fits(self, element: ElementTree.Element, value) -> bool:
        text = element.get("value")
        if text.startswith("$") and not text.startswith("$NOW") and text not in self.values:
            self.values[text] = value
            return True
        try:
            wanted = self.value(element)
        except Unknown:
            return False
        return abs(value - wanted) < 600 if element.get("type") == "DateTime" else value == wanted


def told(name: str, value) -> str:
    if name in ENUMERATIONS and isinstance(value, int):
        return next((one.name for one in ENUMERATIONS[name] if one.value == value), hex(value))
    return value.hex() if isinstance(value, bytes) else str(value)


def read(data: bytes) -> list:
    """Items of TTLV as pairs of a name and a value; those of structures are lists."""
    items = []
    while data:
        tag, kind, length = int.from_bytes(data[:3], "big"), data[3], int.from_bytes(data[4:8], "big")
        value = data[8 : 8 + length]
        if KINDS[kind] == "Structure":
            value = read(value)
        elif KINDS[kind] in BYTES:
            value = int.from_bytes(value, "big", signed=KINDS[kind] != "Enumeration")
        items.append((NAMES.get(tag, hex(tag)), value))
        data = data[8 + length + -length % 8 :]
    return items


def main(host: str, port: str, certificate: str, key: str, authority: str, *files: str) -> None:
    context = ssl.create_default_context(cafile=authority)
    context.check_hostname = False
    context.load_cert_chain(certificate, key)
    for file in files:
        case, steps = Case(), list(ElementTree.parse(file).getroot())
        print(pathlib.Path(file).stem)
        good = 0
        for request, expected in zip(steps[::2], steps[1::2]):
            operations = ", ".join(one.get("value") for one in request.iter("Operation"))
            try:
                message = case.ttlv(request)
            except Unknown as name:
                print(f"  {operations}: not tried, since {name} is unknown")
                continue
            with socket.create_connection((host, int(port))) as plain_socket, context.wrap_socket(plain_socket) as stream:
                stream.sendall(message)
                answer = stream.makefile("rb")
                head = answer.read(8)
                items = read(answer.read(int.from_bytes(head[4:], "big")))
            differences = case.differences(expected, items)
            good += not differences
            print(f"  {operations}: {'; '.join(differences) or 'as expected'}")
        print(f"  {good} of {len(steps) // 2} steps as expected")


main(*sys.argv[1:])
