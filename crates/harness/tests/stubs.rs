//! The stub of the Python client for asyncio is that of the other client, with methods that are awaited.

use std::fs;
use std::path::Path;

use polyclave_harness::book;

const HEAD: &str = "\
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Optional, Union, overload

from typing_extensions import Buffer, Self

from ._polyclave import CheckKind, Mode, Path, PlainMode, Progress, Reader, SealMode, Usage, Writer
from .types import Key, NodeStatus

class Client:
    def __init__(self, dir: Optional[Path] = None) -> None: ...
";

#[test]
fn the_stub_for_asyncio_has_the_methods_of_the_other_one() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/python/polyclave");
    let stub = fs::read_to_string(package.join("_polyclave.pyi")).expect("the stub");
    let (_, methods) = stub.split_once("    def __enter__").expect("the methods of the client");
    let mut awaited = String::from(HEAD);
    let mut is_property = false;
    for line in ["    def __enter__", methods].concat().lines() {
        awaited += &match line.strip_prefix("    def ") {
            Some(method) if !is_property => format!("    async def {}", method.replacen("__e", "__ae", 1)),
            _ => line.into(),
        };
        awaited.push('\n');
        is_property = line == "    @property";
    }
    book::compare_file(&package.join("aio.pyi"), &awaited, "-p polyclave-harness --test stubs");
}
