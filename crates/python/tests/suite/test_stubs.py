"""The stubs say what is there, and aio has every method of the client."""

import ast
import inspect
import pathlib

import pytest

import polyclave
import polyclave.aio

PACKAGE = pathlib.Path(polyclave.__file__).parent


def stubbed(file):
    """The arguments of each method and property of the class Client in a stub."""
    module = ast.parse((PACKAGE / file).read_text())
    (client,) = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Client"]
    functions = [node for node in client.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return {
        function.name: [argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]][1:]
        for function in functions
        if not function.name.startswith("_")
    }


def found(client):
    members = {name: member for name, member in vars(client).items() if not name.startswith("_")}
    return {
        name: list(inspect.signature(member).parameters)[1:] if callable(member) else []
        for name, member in members.items()
    }


@pytest.mark.parametrize("file, client", [("_polyclave.pyi", polyclave.Client), ("aio.pyi", polyclave.aio.Client)])
def test_the_stub_has_the_methods_with_their_arguments(file, client):
    assert stubbed(file) == found(client)


def test_both_clients_have_the_same_methods():
    assert stubbed("_polyclave.pyi") == stubbed("aio.pyi")


def test_everything_that_is_exported_is_documented():
    for name in polyclave.__all__:
        assert getattr(polyclave, name).__doc__, name
    for name, member in vars(polyclave.Client).items():
        assert name.startswith("_") or member.__doc__, name
