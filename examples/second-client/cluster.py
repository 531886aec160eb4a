"""The cluster file, and its fingerprint: `docs/specification/identities.md`."""

import base64
import pathlib
import re
import struct
import tomllib

import blake3
from parts import Wrong

PROTOCOLS = ("shamir", "replicated", "replicated-active")
FIELDS = {"version", "release", "id", "protocol", "threshold", "replaces", "workers", "standby", "node"}
NODE_FIELDS = {"name", "address", "client_address", "certificates", "worker"}
WORKER_FIELDS = {"address", "client_address"}
NAME = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"


def number(x):
    return struct.pack("<Q", x)


def text(x):
    return number(len(x)) + x


def known(table, fields):
    if unknown := set(table) - fields:
        raise Wrong(f"the cluster file has fields that this client does not know: {sorted(unknown)}")


class Cluster:
    """The cluster file."""

    def __init__(self, path):
        try:
            self.read(tomllib.loads(pathlib.Path(path).read_text()))
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise Wrong(f"{path} is no cluster file: {e!r}") from e

    def read(self, file):
        known(file, FIELDS)
        self.file, self.id, self.nodes = file, bytes.fromhex(file["id"]), file["node"]
        self.protocol, self.threshold = file["protocol"], file["threshold"]
        for node in self.nodes:
            known(node, NODE_FIELDS)
            for worker in node.get("worker", []):
                known(worker, WORKER_FIELDS)
            node["der"] = [base64.b64decode(one, validate=True) for one in node["certificates"]]
        known(file.get("replaces", {}), {"id", "fingerprint", "lost"})
        known(file.get("workers", {}), {"serve_only", "make_only"})
        count = len(self.nodes)
        named = [node[field] for node in self.nodes for field in ("name", "address", "client_address")]
        shown = [der for node in self.nodes for der in node["der"]]
        fits = {
            "its version is 1": file.get("version", 1) == 1,
            "its protocol is one of those that the specification has": self.protocol in PROTOCOLS,
            "its id has 16 bytes": len(self.id) == 16,
            "its protocol takes so many nodes": count == 3 or self.protocol == "shamir" and 3 < count <= 9,
            "its threshold fits": 1 <= self.threshold < count / 2,
            "names are names": all(re.fullmatch(NAME, node["name"]) for node in self.nodes),
            "nodes have 1 to 4 certificates": all(1 <= len(node["der"]) <= 4 for node in self.nodes),
            "no two nodes have anything in common": len({*named, *shown}) == len(named) + len(shown),
        }
        for condition, holds in fits.items():
            if not holds:
                raise Wrong(f"the cluster file is refused, because it is not so that {condition}")

    def quorum(self):
        """The nodes that serve a use of a key: the first ones, so many as are needed."""
        return list(range(2 * self.threshold + 1 if self.protocol == "shamir" else 3))

    def everyone(self):
        return list(range(len(self.nodes)))

    def deals_masks(self):
        return self.protocol != "shamir"

    def fingerprint(self):
        """What people compare: 64 hexadecimal digits."""
        out = text(self.id) + text(self.protocol.encode()) + number(self.threshold) + number(len(self.nodes))
        for node in self.nodes:
            out += b"".join(text(node[field].encode()) for field in ("name", "address", "client_address"))
            out += number(len(node["der"])) + b"".join(map(text, node["der"]))
        if replaces := self.file.get("replaces"):
            lost = replaces.get("lost", [])
            out += text(bytes.fromhex(replaces["id"])) + text(replaces["fingerprint"].encode())
            out += number(len(lost)) + b"".join(text(name.encode()) for name in lost)
        workers = [node.get("worker", []) for node in self.nodes]
        if any(workers):
            out += text(b"workers")
            for of_node in workers:
                out += number(len(of_node))
                for worker in of_node:
                    out += text(worker["address"].encode()) + text(worker["client_address"].encode())
        duties = self.file.get("workers", {})
        duties = [duties.get("serve_only", []), duties.get("make_only", [])]
        if any(duties):
            out += text(b"duties") + b"".join(number(len(d)) + b"".join(map(number, d)) for d in duties)
        if self.file.get("standby"):
            out += text(b"standby pairs")
        return blake3.derive("polyclave 2026 fingerprint of a cluster file", out).hex()
