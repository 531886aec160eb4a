"""Messages to bytes and back: `docs/specification/encoding.md`. The types are not written here. They are read
from the tables of `requests.md`, `replies.md` and `keys.md` beside that page.

A struct is a dict with its fields. A variant of an enum is a pair: its name, and a dict of its fields, or the
value of its only field if that has no name. `encode` also takes the name alone if there is no field.
"""

import pathlib
import re

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs/specification"
UNSIGNED = {"u16": 16, "nodes": 16, "u32": 32, "u64": 64}


class Malformed(Exception):
    """Bytes that are no message of the type that is due."""


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def types():
    """The types by their names: `("struct", [(field, type)])`, `("enum", [(variant, [(field, type)])])`."""
    found = {}
    for page in ("requests.md", "replies.md", "keys.md"):
        name = rows = kind = None
        for line in (PAGES / page).read_text().splitlines():
            if line.startswith("#"):
                name = line.removeprefix("### ") if line.startswith("### ") else None
            elif line.startswith(("| field |", "| tag |")) and name:
                kind, rows = ("struct" if line.startswith("| field |") else "enum"), []
                found[name] = (kind, rows)
            elif not line.startswith("|"):
                rows = None
            elif rows is not None and not line.startswith("|--"):
                row = cells(line)
                if kind == "struct":
                    rows.append((row[0].strip("`"), row[1].strip("`")))
                else:
                    assert int(row[0]) == len(rows), f"{page}: {line}"
                    parts = [field.rpartition(": ") for field in re.findall("`(.*?)`", row[2])]
                    rows.append((row[1].strip("`"), [(field, of) for field, _, of in parts]))
    return found


TYPES = types()


def varint(number):
    output = bytearray()
    while number >= 0x80:
        output.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(output) + bytes([number])


def encode(kind, value):
    if kind in ("u8", "node", "bool"):
        return bytes([value])
    if kind in UNSIGNED:
        return varint(value)
    if kind == "string":
        kind, value = "bytes", value.encode()
    if kind == "bytes":
        return varint(len(value)) + value
    if kind.startswith("["):
        assert len(value) == int(kind[1:-1]), f"{len(value)} bytes for {kind}"
        return bytes(value)
    if kind.startswith("option "):
        return b"\0" if value is None else b"\1" + encode(kind.removeprefix("option "), value)
    if kind.startswith("list "):
        return varint(len(value)) + b"".join(encode(kind.removeprefix("list "), item) for item in value)
    if kind.startswith("("):
        return b"".join(map(encode, kind[1:-1].split(", "), value))
    form, rows = TYPES[kind]
    if form == "struct":
        return fields(rows, value)
    name, inner = (value, {}) if isinstance(value, str) else value
    tag = [variant for variant, _ in rows].index(name)
    rows = rows[tag][1]
    return varint(tag) + fields(rows, {"": inner} if is_unnamed(rows) else inner)


def fields(rows, value):
    assert set(value) == {field for field, _ in rows}, f"{set(value)} for {rows}"
    return b"".join(encode(of, value[field]) for field, of in rows)


def is_unnamed(rows):
    return bool(rows) and rows[0][0] == ""


def decode(kind, data):
    """The message that these bytes are, all of them."""
    reader = Reader(data)
    value = reader.read(kind)
    if reader.at != len(data):
        raise Malformed("bytes are left over")
    return value


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Malformed("it ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self, bits):
        number = 0
        for place in range(0, bits, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << place
            if byte < 0x80:
                break
        else:
            raise Malformed("a number is too long")
        if number >> bits:
            raise Malformed("a number is too large")
        return number

    def choice(self):
        byte = self.take(1)[0]
        if byte > 1:
            raise Malformed(f"{byte} is neither false nor true")
        return byte == 1

    def read(self, kind):
        if kind in ("u8", "node"):
            return self.take(1)[0]
        if kind in UNSIGNED:
            return self.varint(UNSIGNED[kind])
        if kind == "bool":
            return self.choice()
        if kind == "bytes":
            return self.take(self.varint(64))
        if kind == "string":
            try:
                return self.read("bytes").decode()
            except UnicodeDecodeError as e:
                raise Malformed("a text is not UTF-8") from e
        if kind.startswith("["):
            return self.take(int(kind[1:-1]))
        if kind.startswith("option "):
            return self.read(kind.removeprefix("option ")) if self.choice() else None
        if kind.startswith("list "):
            return [self.read(kind.removeprefix("list ")) for _ in range(self.varint(64))]
        if kind.startswith("("):
            return tuple(self.read(of) for of in kind[1:-1].split(", "))
        form, rows = TYPES[kind]
        if form == "struct":
            return {field: self.read(of) for field, of in rows}
        tag = self.varint(32)
        if tag >= len(rows):
            raise Malformed(f"{kind} has no variant {tag}")
        name, rows = rows[tag]
        inner = {field: self.read(of) for field, of in rows}
        return name, inner[""] if is_unnamed(rows) else inner
