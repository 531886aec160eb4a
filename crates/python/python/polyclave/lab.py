"""The laboratory: every protocol without a cluster, measured and compared with the papers.

The functions run the program `polyclave-lab` and return its results as flat dictionaries, so that `pandas.DataFrame([lab.bench(..), ..])` is a
table. `program()` says which program that is: the one that the variable POLYCLAVE_LAB names, the one that was installed with this package, or
the first in PATH. It is a program and not a part of this package's library because `bench` starts it once for each party, and because it holds
code that cheats and deals insecure material, which a client must not contain.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import warnings
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional, Union

from .errors import Error

#: A row of a table.
Row = dict[str, Any]

_NAME = "polyclave-lab"


class LabError(Error):
    """The laboratory refused, or failed. The message is its own."""


def program() -> Path:
    """The program that is run."""
    named = os.environ.get("POLYCLAVE_LAB")
    if named:
        return Path(named)
    installed = Path(sysconfig.get_path("scripts")) / _NAME
    if installed.exists():
        return installed
    found = shutil.which(_NAME)
    if found is None:
        raise LabError(
            "polyclave-lab is not installed with this package and not in PATH; build it with"
            " `cargo build --release -p polyclave-lab`, and set POLYCLAVE_LAB to it"
        )
    return Path(found)


def evaluate(
    cipher: Optional[str] = "aes-128",
    *,
    key: Union[bytes, str, None] = None,
    inputs: Union[bytes, str, Iterable[Union[bytes, str]]],
    protocol: str = "shamir",
    parties: Optional[int] = None,
    threshold: Optional[int] = None,
    circuit: Optional[str] = None,
    tweak: Union[bytes, str, None] = None,
    decrypt: bool = False,
    key_schedule: bool = False,
    **options: str,
) -> Row:
    """Encrypts blocks under a protocol, with all parties in one process, and counts what that costs.

    Key and blocks are bytes, or hexadecimal. `options` are those of the protocol, such as `inversion="masked-powers"`. The output is in
    hexadecimal, as `output`. With None as the cipher, `circuit` is a file of a circuit, and `inputs` are its inputs.
    """
    given = [_hex(data) for data in ([inputs] if isinstance(inputs, (bytes, str)) else inputs)]
    arguments = ["eval"]
    if cipher is not None:
        # The blocks are one argument.
        arguments += ["--cipher", cipher]
        given = ["".join(given)]
    if key is not None:
        arguments += ["--key", _hex(key)]
    for data in given:
        arguments += ["--input", data]
    if tweak is not None:
        arguments += ["--tweak", _hex(tweak)]
    arguments += _protocol(protocol, parties, threshold, circuit, decrypt, key_schedule, options)
    return _flat(_document(arguments))


def bench(
    cipher: str = "aes-128",
    *,
    blocks: int = 1000,
    protocol: str = "shamir",
    parties: Optional[int] = None,
    threshold: Optional[int] = None,
    circuit: Optional[str] = None,
    network: str = "loopback",
    threads: int = 1,
    repeats: int = 5,
    decrypt: bool = False,
    key_schedule: bool = False,
    timeout: Optional[int] = None,
    **options: str,
) -> Row:
    """Measures a cipher with each party as a process of its own, over TLS on this machine.

    `network` is `loopback`, `lan`, `wan`, or a round trip and a rate such as `10ms,100Mbit`.
    """
    arguments = ["bench", "--cipher", cipher, "--blocks", str(blocks), "--network", network]
    arguments += ["--threads", str(threads), "--repeats", str(repeats)]
    if timeout is not None:
        arguments += ["--timeout", str(timeout)]
    arguments += _protocol(protocol, parties, threshold, circuit, decrypt, key_schedule, options)
    return _flat(_document(arguments))


def reproduce(paper: str, table: Optional[str] = None, *, quick: bool = False) -> list[Row]:
    """Recomputes the tables of a paper, or one of them: a row for each value, with the published and our own.

    Papers are `damgard-2016`, `damgard-keller-2010`, `keller-2017`, `pohle-2022` and `viff-2009`. A value that differs from what is expected
    gives a warning.
    """
    arguments = ["reproduce", paper] + ([] if table is None else [table]) + (["--quick"] if quick else [])
    document = _document(arguments, may_differ=True)
    return [{"table": part["table"], **cell} for part in document["tables"] for cell in part["cells"]]


def _protocol(
    protocol: str,
    parties: Optional[int],
    threshold: Optional[int],
    circuit: Optional[str],
    decrypt: bool,
    key_schedule: bool,
    options: dict[str, str],
) -> list[str]:
    arguments = ["--protocol", protocol]
    for name, value in [("parties", parties), ("threshold", threshold), ("circuit", circuit), *options.items()]:
        if value is not None:
            arguments += ["--" + name.replace("_", "-"), str(value)]
    return arguments + ["--decrypt"] * decrypt + ["--key-schedule"] * key_schedule


def _document(arguments: list[str], may_differ: bool = False) -> Row:
    """The JSON document that the program prints."""
    try:
        ended = subprocess.run([program(), *arguments, "--json"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise LabError(f"{program()} cannot be run: {error}") from error
    told = ended.stderr.strip()
    if ended.returncode != 0 and not (may_differ and ended.stdout):
        raise LabError(told or f"{_NAME} ended with status {ended.returncode}")
    try:
        document: Row = json.loads(ended.stdout)
    except ValueError as error:
        raise LabError(told or f"{_NAME} printed no JSON: {error}") from error
    if ended.returncode != 0:
        warnings.warn(told, stacklevel=3)
    return document


def _flat(document: Row) -> Row:
    """Nested values under joined names, such as `online_rounds`."""
    return dict(_leaves("", document))


def _leaves(prefix: str, value: Row) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(f"{prefix}{name}_", inner)
        else:
            yield f"{prefix}{name}", inner


def _hex(data: Union[bytes, str]) -> str:
    return data if isinstance(data, str) else data.hex()
