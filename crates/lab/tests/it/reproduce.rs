//! `polyclave-lab reproduce` as a user runs it.

use std::io::Read;
use std::process::{Command, Output};

use serde_json::Value;

fn reproduce(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_polyclave-lab");
    Command::new(program).arg("reproduce").args(arguments).output().expect("the program starts")
}

fn document(arguments: &[&str]) -> Value {
    let output = reproduce(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// Standard output and standard error, in the order in which they were written.
#[test]
fn tables_come_one_by_one_and_how_long_it_takes_is_said_first() {
    let (mut read, write) = std::io::pipe().expect("a pipe");
    let mut command = Command::new(env!("CARGO_BIN_EXE_polyclave-lab"));
    command.args(["reproduce", "viff-2009", "--json"]);
    command.stdout(write.try_clone().expect("another end")).stderr(write);
    let mut child = command.spawn().expect("the program starts");
    // Its ends of the pipe would keep it open.
    drop(command);
    let mut all = String::new();
    read.read_to_string(&mut all).expect("text");
    assert!(child.wait().expect("it ends").success(), "{all}");
    let mut rest = all.as_str();
    for next in [
        "viff-2009: takes some seconds on two cores",
        "Section 1.1.1 (1 of 3)",
        "\"table\": \"Section 1.1.1\"",
        "Section 1.1.3 (2 of 3)",
        "\"table\": \"Section 1.1.3\"",
        "Section 2 (3 of 3)",
        "\"table\": \"Section 2\"",
    ] {
        rest = rest.split_once(next).unwrap_or_else(|| panic!("no '{next}' in its place in:\n{all}")).1;
    }
}

fn cells(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let tables = document["tables"].as_array().expect("a list of tables").iter();
    tables.flat_map(|table| {
        let cells = table["cells"].as_array().expect("a list of cells").iter();
        cells.map(|cell| (table["table"].as_str().expect("a name"), cell))
    })
}

fn number(cell: &Value, field: &str) -> f64 {
    cell[field].as_f64().unwrap_or_else(|| panic!("{field} of {cell} is no number"))
}

/// Checks every cell against what it promises; returns how many counts there were.
fn check(document: &Value, means_within: f64) -> usize {
    let mut counts = 0;
    for (table, cell) in cells(document) {
        assert!(cell["row"].is_string() && cell["column"].is_string(), "{cell}");
        let (expected, ours) = (number(cell, "expected"), number(cell, "ours"));
        if cell["exact"] == true {
            assert!((expected - ours).abs() < 1e-9, "{table}: {cell}");
            counts += 1;
        } else {
            assert!((ours / expected - 1.0).abs() < means_within, "{table}: {cell}");
        }
        if !cell["published"].is_null() && number(cell, "published") != expected {
            assert!(cell["note"].is_string(), "a correction says why: {cell}");
        }
    }
    counts
}

fn cell<'a>(document: &'a Value, table: &str, row: &str, column: &str) -> &'a Value {
    let found = cells(document).find(|(t, c)| *t == table && c["row"] == row && c["column"] == column);
    found.unwrap_or_else(|| panic!("no cell {table}, {row}, {column}")).1
}

#[test]
fn counts_of_damgard_and_keller_are_reproduced() {
    let shown = document(&["damgard-keller-2010"]);
    assert_eq!(shown["paper"], "damgard-keller-2010");
    assert!(check(&shown, 0.01) >= 40);
    let published = [
        ("Table 1", "192", "Key expansion", 32.0),
        ("Table 1", "256", "Block with k. e.", 276.0),
        ("Table 2", "S-a-m with shortest addition chain and least rounds", "Rounds", 10.0),
        ("Table 2", "Masked exponentiation", "Elementary operations", 15.0),
        ("Table 2", "Masked exponentiation", "Rounds", 5.7),
        (
            "Section 6",
            "S-a-m with shortest addition chain, block with k. e.",
            "Elementary operations",
            2400.0,
        ),
    ];
    for (table, row, column, value) in published {
        let cell = cell(&shown, table, row, column);
        assert_eq!((&cell["published"], number(cell, "expected")), (&cell["expected"], value), "{cell}");
    }
    for (row, operations, rounds) in
        [("Masked exponentiation, online", 8.0, 5.0), ("S-a-m with shortest addition chain", 12.0, 12.0)]
    {
        let of = |column: &str| number(cell(&shown, "Table 2, active", row, column), "ours");
        assert_eq!((of("Elementary operations"), of("Rounds")), (operations, rounds), "{row}");
    }
    for (row, right) in [("Masking, block without k. e.", 71.22), ("Masking, block with k. e.", 71.51)] {
        let rounds = cell(&shown, "Section 6", row, "Rounds");
        assert!((number(rounds, "expected") - right).abs() < 0.005, "{rounds}");
    }
    let views = cell(&shown, "Our variants", "Views, one S-box", "Elementary operations");
    assert_eq!((&views["published"], number(views, "ours")), (&Value::Null, 5.0));
}

#[test]
fn counts_of_the_viff_note_are_reproduced_and_corrected() {
    let shown = document(&["viff-2009"]);
    // The note opens a product at once, which takes one operation and one round less.
    assert!(check(&shown, 0.21) >= 15);
    let corrected = [
        ("Key size 128", "AES rounds", 8.0, 10.0),
        ("One AES round", "Elementary operations", 176.0, 192.0),
        ("One block, key size 192", "Elementary operations", 2112.0, 2304.0),
        ("Key expansion, key size 192", "S-boxes", 31.0, 32.0),
        ("One block with key expansion, key size 192", "Elementary operations", 2453.0, 2688.0),
    ];
    for (row, column, published, right) in corrected {
        let cell = cell(&shown, "Section 2", row, column);
        assert_eq!((number(cell, "published"), number(cell, "ours")), (published, right), "{cell}");
    }
}

#[test]
fn one_table_can_be_asked_for_by_its_number_or_name() {
    for wanted in ["1", "table-1", "Table 1"] {
        let shown = document(&["damgard-keller-2010", wanted]);
        assert!(cells(&shown).all(|(table, _)| table == "Table 1"));
        assert_eq!(cells(&shown).count(), 12);
    }
    assert!(cells(&document(&["viff-2009", "1.1.3"])).all(|(table, _)| table == "Section 1.1.3"));
}

#[test]
fn text_sets_the_published_value_beside_ours() {
    let output = reproduce(&["viff-2009", "2"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Section 2"));
    let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(header, ["published", "expected", "ours", "ratio", "note"]);
    let rounds: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(rounds, ["Key", "size", "128", "AES", "rounds", "8", "10", "10", "1.000", "(1)"]);
    assert!(text.contains("(1) AES with 128-bit keys has 10 rounds"), "{text}");
}

#[test]
fn unknown_papers_and_tables_are_refused_with_those_there_are() {
    let cases = [
        (
            &["keller-2050"][..],
            "choose one of damgard-2016, damgard-keller-2010, keller-2017, pohle-2022, viff-2009",
        ),
        (&["viff-2009", "9"], "choose one of Section 1.1.1, Section 1.1.3, Section 2"),
    ];
    for (arguments, message) in cases {
        let output = reproduce(arguments);
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1));
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(reproduce(&[]).status.code(), Some(2));
}

/// One repeat of the figure that waits for no slow network.
#[test]
fn a_figure_is_measured_drawn_and_judged() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("a path in Unicode");
    let shown = document(&["damgard-keller-2010", "figure-2", "--figures", path, "--repeats", "1"]);
    let file = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("a file");
    let figure = &shown["figures"][0];
    assert_eq!(figure["figure"], "Figure 2");
    assert_eq!(serde_json::from_str::<Value>(&file("figure-2.json")).expect("JSON"), *figure);
    let svg = file("figure-2.svg");
    let curves = figure["curves"].as_array().expect("curves");
    assert!(curves.len() >= 10);
    for curve in curves {
        let name = curve["inversion"].as_str().expect("a name");
        assert!(svg.contains(name), "{name}");
        let points = curve["points"].as_array().expect("points");
        let blocks: Vec<&Value> = points.iter().map(|point| &point["blocks"]).collect();
        assert_eq!(blocks, (1..=10).collect::<Vec<_>>());
        for (blocks, point) in (1..).zip(points) {
            let s_boxes = 160.0 + 40.0 / f64::from(blocks);
            let per_s_box = number(point, "operations_per_block") / s_boxes;
            let counted = match name {
                "standard" | "least-rounds" => 14.0,
                "masked-exponentiation" => 15.0,
                "views" => 5.0,
                _ => continue,
            };
            assert!((per_s_box - counted).abs() < 1e-9, "{name}: {point}");
            assert!(number(&point["total_ms_per_block"], "median") > 0.0);
        }
    }
    let sentence = figure["sentence"].as_str().expect("a sentence");
    for finding in figure["findings"].as_array().expect("findings") {
        assert!(sentence.contains(finding["text"].as_str().expect("a text")), "{sentence}");
    }
}

#[test]
fn figures_that_cannot_be_made_are_refused_before_they_are_measured() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let in_the_way = file.path().to_str().expect("a path in Unicode");
    let cases = [
        (&["damgard-keller-2010", "4", "--figures", in_the_way][..], "cannot make the directory"),
        (&["damgard-keller-2010", "9", "--figures", in_the_way], "choose one of Figure 2, Figure 3"),
        (&["damgard-keller-2010", "figure-4"], "Figure 4 is measured: add --figures"),
        (&["viff-2009", "--figures", in_the_way], "none of viff-2009"),
        (&["damgard-keller-2010", "--repeats", "2"], "--figures"),
    ];
    for (arguments, reason) in cases {
        let output = reproduce(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(reason), "{arguments:?}: {error}");
    }
}
