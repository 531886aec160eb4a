"""Errors, a class for each reason. What went wrong with a file of yours is an OSError with its number and the
file's name. What your stream or your function for the progress raised comes through."""

from __future__ import annotations

from typing import Optional


class Error(Exception):
    """The nodes, or the client, did not do what was asked.

    `node` is the node that refused or was not reached, if it is one of them. `may_pass` says whether the same request may succeed later.
    """

    def __init__(self, told: str, *, node: Optional[str] = None, may_pass: bool = False) -> None:
        super().__init__(told)
        self.node = node
        self.may_pass = may_pass


class Misuse(Error, ValueError):
    """The caller asked for something impossible."""


class Ended(Error):
    """The client was closed, or the call cancelled, while the request was under way. A key that it was to make or change may be made or changed."""


class ConfigurationError(Error):
    """The client's directory is not there, or something in it cannot be used."""


class Denied(Error):
    """A node's policy does not allow this to this client."""


class NotAdmitted(Denied):
    """The operator of a node has not allowed this client anything yet."""


class NoSuchKey(Error):
    """There is no such key, or no such version of it."""


class NotForThis(Error):
    """The key, or this version of it, is not for this use."""


class KeyRefused(Error):
    """The key cannot be made or changed like that, or is there already."""


class BudgetSpent(Error):
    """The key's budget of blocks is spent."""


class Unauthentic(Error):
    """What was to be decrypted or verified was altered, or belongs to another key or other additional data."""


class Busy(Error):
    """The nodes have too much to do: try again later."""


class OutOfMaterial(Error):
    """The nodes have not made enough material yet: try again later."""


class Unavailable(Error):
    """Too few nodes can be reached, or the connection with them failed."""


class Disagreement(Error):
    """The nodes were told, or hold, different things."""


class WrongAnswers(Error):
    """The nodes' answers do not fit together: one of them may cheat."""


class Quarantined(Error):
    """A check failed at the nodes. They serve nothing before their operators have acted."""


class NodeFailed(Error):
    """A node itself failed: its log says why."""


class Malformed(Error):
    """A node does not understand the request, or does not take it."""
