"""Block ciphers under a key that nobody holds: a client of Polyclave's nodes, and the laboratory.

>>> import polyclave
>>> with polyclave.Client("try/client") as client:
...     client.generate("payroll")
...     sealed = client.seal("payroll", b"a secret")
...     assert client.open("payroll", sealed) == b"a secret"

Errors are the classes of `polyclave.errors`, one for each reason. `polyclave.aio` has the same client for asyncio, and `polyclave.lab` runs the
laboratory. Remarks that a person should read although nothing failed go to the logger `polyclave`.
"""

from ._polyclave import Client, inspect
from ._polyclave import __VERSION__ as __version__
from .errors import (
    BudgetSpent,
    Busy,
    ConfigurationError,
    Denied,
    Disagreement,
    Ended,
    Error,
    KeyRefused,
    Malformed,
    Misuse,
    NodeFailed,
    NoSuchKey,
    NotAdmitted,
    NotForThis,
    OutOfMaterial,
    Quarantined,
    Unauthentic,
    Unavailable,
    WrongAnswers,
)
from .types import Key, NodeStatus

__all__ = [
    "BudgetSpent",
    "Busy",
    "Client",
    "ConfigurationError",
    "Denied",
    "Disagreement",
    "Ended",
    "Error",
    "Key",
    "KeyRefused",
    "Malformed",
    "Misuse",
    "NoSuchKey",
    "NodeFailed",
    "NodeStatus",
    "NotAdmitted",
    "NotForThis",
    "OutOfMaterial",
    "Quarantined",
    "Unauthentic",
    "Unavailable",
    "WrongAnswers",
    "__version__",
    "inspect",
]
