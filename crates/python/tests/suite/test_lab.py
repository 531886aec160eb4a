"""The laboratory, by its program."""

import pytest

from polyclave import lab

BLOCK = "00112233445566778899aabbccddeeff"
KEY = bytes(range(16))


def test_a_known_answer_under_a_protocol():
    """FIPS 197, appendix C.1; the operations of Damgard and Keller 2010 with views."""
    row = lab.evaluate("aes-128", key=KEY, inputs=BLOCK)
    assert row["output"] == "69c4e0d86a7b0430d8cdb78070b4c55a"
    assert (row["protocol"], row["operations_per_block"], row["preprocessing_rounds"]) == ("shamir", 800.0, 0)


def test_options_of_a_protocol_go_through():
    """160 S-boxes of two operations each."""
    row = lab.evaluate(key=KEY, inputs=[BLOCK, BLOCK], inversion="masked-powers", parties=5, threshold=2)
    assert row["blocks"] == 2
    assert row["operations_per_block"] == 320.0


def test_a_circuit_from_a_file_takes_its_inputs(tmp_path):
    """One AND gate, in Bristol Fashion."""
    (tmp_path / "and.txt").write_text("1 3\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n")
    row = lab.evaluate(None, circuit=str(tmp_path / "and.txt"), inputs=["01", "01"])
    assert row["outputs"] == ["01"]


def test_a_bench_is_a_row_without_nested_values():
    row = lab.bench("aes-128", blocks=16, repeats=1)
    assert row["online_blocks_per_s"] > 0
    assert not any(isinstance(value, (dict, list)) for value in row.values())


def test_a_refusal_has_the_laboratorys_own_words():
    with pytest.raises(lab.LabError, match="no cipher 'rot13'"):
        lab.evaluate("rot13", key="00", inputs="00")


def test_a_program_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("POLYCLAVE_LAB", "/nowhere/polyclave-lab")
    with pytest.raises(lab.LabError, match="/nowhere"):
        lab.bench()


def test_a_table_of_a_paper_is_rows():
    rows = lab.reproduce("keller-2017", "2", quick=True)
    openings = [row for row in rows if (row["row"], row["column"]) == ("AES-LT", "Openings")]
    assert [(row["table"], row["published"], row["ours"]) for row in openings] == [("Table 2", 160, 160)]
