"""docs/use/python.md as a reader uses it: what it shows of keys, bytes, files and streams runs as it is."""

import pathlib
import re

import pytest

import polyclave

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "use" / "python.md"


def programs(section):
    """The Python of a section."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    found = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, section
    return found


@pytest.fixture
def directory(cluster, tmp_path, monkeypatch):
    """Where a reader works: with the client's directory, and some files."""
    (tmp_path / "try").mkdir()
    (tmp_path / "try" / "client").symlink_to(cluster)
    (tmp_path / "report.pdf").write_bytes(b"a report")
    (tmp_path / "photos.tar").write_bytes(bytes(1000))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_five_minutes_and_what_follows_run(directory):
    (first,) = programs("Five minutes")
    exec(first, {})
    with polyclave.Client("try/client") as client:
        for program in programs("Bytes, files and streams"):
            exec(program, {"client": client, "polyclave": polyclave})
        (keys,) = programs("Keys")
        *of_keys, with_pandas = keys.splitlines()
        assert "pandas" in with_pandas
        exec("\n".join(of_keys), {"client": client})
    assert (directory / "report.copy.pdf").read_bytes() == b"a report"
