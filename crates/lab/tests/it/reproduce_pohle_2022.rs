//! `polyclave-lab reproduce pohle-2022` as a user runs it: counts are those of the poster where the circuit
//! is, and its timed part runs.

use std::process::Command;

use serde_json::Value;

/// The cells of one table.
fn cells(arguments: &[&str]) -> Vec<Value> {
    let program = env!("CARGO_BIN_EXE_polyclave-lab");
    let command = ["reproduce", "pohle-2022", "--json"];
    let output = Command::new(program).args(command).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["paper"], "pohle-2022");
    let tables = document["tables"].as_array().expect("a list of tables");
    assert_eq!(tables.len(), 1);
    let cells = tables[0]["cells"].as_array().expect("a list of cells").clone();
    for cell in &cells {
        if cell["exact"] == true {
            assert_eq!(cell["expected"], cell["ours"], "{cell}");
        }
        if cell["ours"].is_null() {
            assert!(cell["note"].is_string(), "it says why: {cell}");
        }
    }
    cells
}

fn cell<'a>(cells: &'a [Value], row: &str, column: &str) -> &'a Value {
    let found = cells.iter().find(|c| c["row"] == row && c["column"] == column);
    found.unwrap_or_else(|| panic!("no cell {row}, {column}"))
}

fn has_note(cell: &Value, part: &str) -> bool {
    cell["note"].as_str().is_some_and(|note| note.contains(part))
}

#[test]
fn gates_are_counted_by_the_running_parties() {
    let cells = cells(&["I"]);
    assert_eq!(cells.len(), 9 * 10);
    let published = cells.iter().filter(|cell| !cell["published"].is_null());
    assert_eq!(published.count(), 48);
    // ANDs; calls to garble, ciphertexts and calls to evaluate.
    let counts = [
        ("TWINE-128", [1955, 16 * 391 + 256, 15 * 391 + 128, 391 + 128]),
        ("WAGE", [17_997, 128 * 772 + 518, 127 * 772 + 259, 772 + 259]),
        ("MANTIS", [896, 16 * 224 + 384, 15 * 224 + 192, 224 + 192]),
        ("MANTIS, 7 rounds", [1024, 16 * 256 + 384, 15 * 256 + 192, 256 + 192]),
        ("Midori64", [1024, 16 * 256 + 256, 15 * 256 + 128, 256 + 128]),
        ("CRAFT", [1984, 16 * 496 + 384, 15 * 496 + 192, 496 + 192]),
        ("SKINNY-64-128", [2304, 16 * 800 + 256, 15 * 800 + 128, 800 + 128]),
        ("Piccolo-128", [1984, 16 * 744 + 256, 15 * 744 + 128, 744 + 128]),
    ];
    for (row, counts) in counts {
        for (column, count) in ["ANDs", "calls, garble", "ciphertexts", "calls, eval"].into_iter().zip(counts)
        {
            assert_eq!(cell(&cells, row, column)["ours"], count, "{row}, {column}");
        }
    }
    for row in ["MANTIS", "Midori64", "Piccolo-128"] {
        let ratios = cells.iter().filter(|cell| cell["row"] == row && !cell["published"].is_null());
        for cell in ratios {
            assert_eq!((&cell["exact"], &cell["ours"]), (&true.into(), &cell["published"]), "{cell}");
        }
    }
}

#[test]
fn what_differs_from_the_poster_says_why() {
    let cells = cells(&["table-i"]);
    let craft = cell(&cells, "CRAFT", "ZRE15, Eval");
    assert_eq!(craft["exact"], true);
    assert_ne!(craft["published"], craft["ours"]);
    assert!(has_note(craft, "31 layers"), "{craft}");
    for (row, why) in [("TWINE-128", "5 ANDs"), ("WAGE", "37,746"), ("SKINNY-64-128", "order 15")] {
        assert!(has_note(cell(&cells, row, "ZRE15, Garble"), why));
    }
    for cell in cells.iter().filter(|cell| cell["row"] == "Fides-96") {
        assert!(cell["ours"].is_null() && has_note(cell, "not run"), "{cell}");
    }
    let is_of_halves = |cell: &&Value| has_note(cell, "three ciphertexts of half a label");
    assert_eq!(cells.iter().filter(is_of_halves).count(), 8 * 3);
}

#[test]
fn times_are_of_one_party_alone_and_bytes_are_exact() {
    let cells = cells(&["II", "--blocks", "2"]);
    assert_eq!(cells.len(), 2 * (3 * 6 + 2 * 4));
    let bytes = [
        ("SKINNY-64-128, AND", 73_728),
        ("SKINNY-64-128, Bit", 73_728),
        ("SKINNY-64-128, Proj", 139_264),
        ("SKINNY-128-128, AND", 163_840),
        ("SKINNY-128-128, Bit", 163_840),
        ("SKINNY-128-128, Proj", 2_613_248),
    ];
    for (row, bytes) in bytes {
        assert_eq!(cell(&cells, row, "Comm. (bytes)")["ours"], bytes);
        let kilobytes = cell(&cells, row, "Comm. (kB)");
        assert_eq!(kilobytes["ours"], kilobytes["published"]);
        for column in ["Garble (ms)", "Eval (ms)", "Eval, uncopied (ms)"] {
            let time = cell(&cells, row, column);
            assert!(time["ours"].as_f64().is_some_and(|ms| ms > 0.0), "{time}");
            assert!(has_note(time, "2 blocks with one key, one party alone"), "{time}");
        }
    }
    let gain = cell(&cells, "SKINNY-64-128, Proj over Bit", "Eval, times quicker");
    assert!(gain["exact"] == false && has_note(gain, "2.4 to 27.5"), "{gain}");
}
