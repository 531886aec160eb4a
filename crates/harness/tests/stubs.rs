//! The stubs of the Python client: modes are those of the code, and the client for asyncio has the methods of
//! the other one, which are awaited.

use std::fs;
use std::path::{Path, PathBuf};

use polyclave_api::{MessageOption, Mode};
use polyclave_harness::book;

const HEAD: &str = "\
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Optional, Union, overload

from typing_extensions import Buffer, Self

from ._polyclave import CheckKind, Mode, Path, PlainMode, Progress, Reader, SealMode, Usage, Writer
from .types import Key, NodeStatus

class Client:
    def __init__(self, dir: Optional[Path] = None) -> None: ...
";

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/python/polyclave")
}

/// A type of words: the modes of which something is true.
fn literal(name: &str, is_true: impl Fn(Mode) -> bool) -> String {
    let words: Vec<String> =
        Mode::ALL.into_iter().filter(|mode| is_true(*mode)).map(|mode| format!("\"{mode}\"")).collect();
    format!("{name} = Literal[{}]", words.join(", "))
}

#[test]
fn the_stub_has_the_modes_of_the_code() {
    let path = package().join("_polyclave.pyi");
    let stub = fs::read_to_string(&path).expect("the stub");
    let all = [literal("Mode", |_| true), literal("PlainMode", |mode| mode.takes(MessageOption::Plain))];
    let line = |line: &str| {
        let name = line.split_once(" = Literal").map_or(line, |(name, _)| name);
        let of_code = all.iter().find(|literal| literal.split_once(" = ").is_some_and(|(of, _)| of == name));
        of_code.map_or(line, String::as_str).to_owned() + "\n"
    };
    let wanted: String = stub.lines().map(line).collect();
    book::compare_file(&path, &wanted, "-p polyclave-harness --test stubs");
}

#[test]
fn the_stub_for_asyncio_has_the_methods_of_the_other_one() {
    let package = package();
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
