//! `polyclave-lab reproduce damgard-2016` as a user runs it: sizes and counts are those of the paper, and its
//! timed parts run.

use std::process::Command;

use serde_json::Value;

const ROWS: [&str; 4] = ["Linear-64", "Lookup-64", "Lookup-32", "Passive"];

/// The cells of one table.
fn cells(arguments: &[&str]) -> Vec<Value> {
    let program = env!("CARGO_BIN_EXE_polyclave-lab");
    let command = ["reproduce", "damgard-2016", "--json"];
    let output = Command::new(program).args(command).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["paper"], "damgard-2016");
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

fn is_exact(cell: &Value) -> bool {
    cell["exact"] == true
}

fn has_note(cell: &Value, part: &str) -> bool {
    cell["note"].as_str().is_some_and(|note| note.contains(part))
}

#[test]
fn tables_that_a_party_holds_have_the_sizes_of_table_1() {
    let cells = cells(&["1"]);
    assert_eq!(cells.len(), 16);
    assert!(cells.iter().all(is_exact));
    let sizes = [
        ("Linear-64", [("Optimized (KiB)", 760.0, 778_240), ("Binary (KiB)", 342.7, 350_880)]),
        ("Lookup-64", [("Optimized (MiB)", 80.4, 84_254_720), ("Binary (KiB)", 512.7, 524_960)]),
        ("Lookup-32", [("Optimized (MiB)", 40.2, 42_147_840), ("Binary (KiB)", 257.7, 263_840)]),
        ("Passive", [("Optimized (KiB)", 40.0, 40_960), ("Binary (KiB)", 2.7, 2720)]),
    ];
    for (row, sizes) in sizes {
        for (column, published, bytes) in sizes {
            let printed = cell(&cells, row, column);
            assert_eq!(printed["published"].as_f64(), Some(published), "{printed}");
            assert_eq!(printed["ours"], printed["published"]);
            let (version, _) = column.split_once(' ').expect("a unit");
            assert_eq!(cell(&cells, row, &format!("{version} (bytes)"))["ours"], bytes);
        }
    }
    assert!(has_note(cell(&cells, "Linear-64", "Optimized (KiB)"), "680 KiB"), "the text differs");
}

#[test]
fn rounds_and_tables_are_counted_by_the_running_protocol() {
    let cells = cells(&["5"]);
    assert_eq!(cells.len(), 20);
    for row in ROWS {
        let [optimized, binary, published] = if row == "Passive" { [10, 40, 41] } else { [12, 42, 43] };
        let exact = cell(&cells, row, "Optimized, rounds");
        assert_eq!((&exact["ours"], is_exact(exact)), (&optimized.into(), true));
        // Of another circuit: compared, and not called the same.
        let compared = cell(&cells, row, "Binary, rounds");
        assert_eq!((&compared["published"], &compared["ours"]), (&published.into(), &binary.into()));
        assert!(!is_exact(compared));
        let of_ours = cell(&cells, row, "Binary, rounds of our circuit");
        assert_eq!((&of_ours["expected"], is_exact(of_ours)), (&binary.into(), true));
        assert_eq!(cell(&cells, row, "Optimized, tables")["ours"], 160);
        assert_eq!(cell(&cells, row, "Binary, tables")["ours"], 5440);
    }
    assert!(has_note(cell(&cells, "Passive", "Binary, rounds"), "40 layers"));
}

#[test]
fn products_for_a_table_are_counted_while_it_is_made() {
    let cells = cells(&["section-4"]);
    let by_circuit = "By a circuit for every entry";
    let seven = cell(&cells, by_circuit, "ANDs an entry");
    assert_eq!(
        (&seven["published"], &seven["ours"], &seven["exact"]),
        (&7.into(), &34.into(), &false.into())
    );
    assert!(has_note(seven, "two openings"), "{seven}");
    assert_eq!(cell(&cells, by_circuit, "ANDs a table")["ours"], 34 * 256);
    let by_demux = cell(&cells, "By Demux, our default", "ANDs a table");
    assert_eq!((&by_demux["ours"], is_exact(by_demux)), (&247.into(), true));
}

#[test]
fn timed_tables_run_and_say_under_which_conditions() {
    let cells = cells(&["2", "--blocks", "2"]);
    assert_eq!(cells.len(), 16);
    assert!(!cells.iter().any(is_exact));
    for row in ROWS {
        for column in ["LAN, Sequential (ms)", "LAN, Parallel (us)"] {
            let lan = cell(&cells, row, column);
            assert!(lan["ours"].as_f64().is_some_and(|time| time > 0.0), "{lan}");
            assert!(has_note(lan, "2 blocks in a batch, material from insecure_dealer"), "{lan}");
            let cloud = cell(&cells, row, &column.replace("LAN", "Cloud"));
            assert_eq!(cloud["ours"], lan["ours"], "measured once");
        }
    }
}

#[test]
fn the_binary_version_says_what_the_introduction_mixes() {
    let cells = cells(&["3", "--blocks", "1"]);
    assert_eq!(cells.len(), 16);
    for (row, column) in [("Linear-64", "Cloud, Sequential (ms)"), ("Lookup-32", "Cloud, Parallel (us)")] {
        assert!(has_note(cell(&cells, row, column), "at the same security level"));
    }
    assert!(!has_note(cell(&cells, "Passive", "Cloud, Parallel (us)"), "at the same security level"));
}
