"""What the client returns besides bytes."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timezone
from typing import Any, Mapping, Optional


@dataclasses.dataclass(frozen=True)
class Key:
    """A version of a key, as the nodes describe it. `dataclasses.asdict` makes a row for pandas of it."""

    name: str
    version: int
    #: `active`, `deactivated` or `compromised`.
    state: str
    cipher: str
    modes: tuple[str, ...]
    usage: tuple[str, ...]
    #: `generated`, `imported`, `unwrapped`, `derived`, `combined` or `copied`.
    origin: str
    #: The most blocks that may ever be computed under it.
    budget_blocks: int
    #: The first bytes of the CMAC of one block of zeros.
    check_value: bytes
    #: In hexadecimal, as in the nodes' audit logs.
    id: str
    label: str
    made: datetime
    #: From when on it only decrypts and verifies.
    expires: Optional[datetime]
    #: When a session key, or a component of a key, is gone.
    ends: Optional[datetime]
    #: Whether it may leave the nodes, wrapped under another key.
    wrappable: bool
    caller_nonces: bool
    deletable: bool
    #: The nodes that list it. None where they were not asked one by one.
    nodes: Optional[tuple[str, ...]] = None

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> Key:
        values = dict(fields)
        for name in ("made", "expires", "ends"):
            values[name] = _time(values[name])
        for name in ("modes", "usage", "nodes"):
            values[name] = None if values[name] is None else tuple(values[name])
        return cls(**values)


@dataclasses.dataclass(frozen=True)
class NodeStatus:
    """What a node says of itself, or `error` if it did not answer."""

    name: str
    answers: bool
    version: Optional[str] = None
    keys: Optional[int] = None
    #: Whether the nodes have agreed on their common secrets.
    set_up: Optional[bool] = None
    #: Whether the material that the nodes make anew after each start is there, or not needed.
    prepared: Optional[bool] = None
    quarantined: Optional[bool] = None
    #: The nodes it is connected with.
    connected: tuple[str, ...] = ()
    error: Optional[str] = None

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> NodeStatus:
        values = dict(fields)
        values["connected"] = tuple(values.get("connected", ()))
        return cls(**values)


def _time(seconds: Optional[int]) -> Optional[datetime]:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
