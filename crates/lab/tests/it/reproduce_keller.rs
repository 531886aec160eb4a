//! `polyclave-lab reproduce keller-2017` as a user runs it: its counts, its document, and that its timed
//! parts run.

use std::process::Command;

use serde_json::Value;

fn document(arguments: &[&str]) -> Value {
    let program = env!("CARGO_BIN_EXE_polyclave-lab");
    let output = Command::new(program)
        .args(["reproduce", "keller-2017", "--json"])
        .args(arguments)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn cells(document: &Value) -> &[Value] {
    let tables = document["tables"].as_array().expect("a list of tables");
    assert_eq!(tables.len(), 1);
    tables[0]["cells"].as_array().expect("a list of cells")
}

fn cell<'a>(cells: &'a [Value], row: &str, column: &str) -> &'a Value {
    let found = cells.iter().find(|c| c["row"] == row && c["column"] == column);
    found.unwrap_or_else(|| panic!("no cell {row}, {column}"))
}

fn number(cell: &Value, field: &str) -> f64 {
    cell[field].as_f64().unwrap_or_else(|| panic!("{field} of {cell} is no number"))
}

/// Every cell is whole; a count is as expected, what differs from the paper or is not ours says why. Returns
/// the counts.
fn check(cells: &[Value]) -> usize {
    for cell in cells {
        let fields = ["row", "column", "published", "expected", "ours", "exact", "note"];
        assert!(fields.iter().all(|field| cell.get(field).is_some()), "{cell}");
        if cell["exact"] == true {
            assert_eq!(cell["expected"], cell["ours"], "{cell}");
        }
        if cell["published"] != cell["expected"] || cell["ours"].is_null() {
            assert!(cell["note"].is_string(), "it says why: {cell}");
        }
    }
    cells.iter().filter(|cell| cell["exact"] == true).count()
}

#[test]
fn every_cell_of_table_1_is_counted_by_the_running_protocol() {
    let shown = document(&["1"]);
    let cells = cells(&shown);
    assert_eq!((cells.len(), check(cells)), (15, 15));
    assert!(cells.iter().all(|cell| cell["published"] == cell["ours"]));
    assert_eq!(cell(cells, "1024", "k = 40")["ours"], 31);
    assert!(
        cell(cells, "256", "k = 1")["note"].as_str().is_some_and(|note| note.contains("insecure_dealer"))
    );
}

#[test]
fn counts_of_table_2_are_those_of_the_paper_but_for_the_raw_one() {
    let shown = document(&["2"]);
    let cells = cells(&shown);
    assert_eq!((cells.len(), check(cells)), (30, 21));
    let published = [
        ("AES-BD", [50, 2240, 960, 2560]),
        ("AES-RP", [70, 1920, 640, 5120]),
        ("AES-LT", [10, 160, 1760, 42240]),
        ("3DES-PV", [230, 3456, 1152, 9216]),
        ("3DES-LT", [46, 384, 1920, 26880]),
    ];
    for (row, counts) in published {
        for (column, count) in ["Rounds", "Openings", "Triples", "Bits"].into_iter().zip(counts) {
            assert_eq!(cell(cells, row, column)["ours"], count);
        }
    }
    assert_eq!(cell(cells, "3DES-Raw", "Triples")["ours"], 23808);
    assert!(
        cell(cells, "3DES-Raw", "Triples")["note"].as_str().is_some_and(|note| note.contains("reducible"))
    );
    assert_eq!(cell(cells, "3DES-Raw", "Rounds")["ours"], 2898);
    // What one party really sends: the triples as expected, and bits that are no wider than those of the
    // paper.
    for row in ["AES-BD", "AES-RP", "AES-LT", "3DES-Raw", "3DES-PV", "3DES-LT"] {
        let sent = cell(cells, row, "Comm. (MB)");
        let ratio = number(sent, "ours") / number(sent, "expected");
        assert!((0.9..1.1).contains(&ratio), "{sent}");
    }
}

#[test]
fn what_products_send_is_table_4_and_the_opening_of_a_sacrifice() {
    let shown = document(&["4"]);
    let cells = cells(&shown);
    assert_eq!((cells.len(), check(cells)), (12, 0));
    for (row, products) in [("64", [5.0, 5.0, 5.0]), ("256", [11.0, 8.0, 7.0]), ("1024", [31.0, 20.0, 13.0])]
    {
        let of_k = [(40.0, 34_880.0), (64.0, 69_632.0), (128.0, 180_224.0)];
        for ((k, bits), products) in of_k.into_iter().zip(products) {
            let cell = cell(cells, row, &format!("k = {k}"));
            assert!((number(cell, "expected") - products * bits / 8e3).abs() < 1e-6, "{cell}");
            assert!((number(cell, "published") - number(cell, "expected")).abs() < 0.006, "{cell}");
            assert!((number(cell, "ours") - products * (bits + k) / 8e3).abs() < 1e-6, "{cell}");
        }
        assert!(cell(cells, row, "k = 1")["ours"].is_null(), "they are made in large batches");
    }
}

#[test]
fn numbers_of_the_text_are_corrected() {
    let shown = document(&["5.2"]);
    let cells = cells(&shown);
    assert_eq!(check(cells), 2);
    let row = "AES block, masked tables";
    let wide = cell(cells, row, "Triples over GF(2^40)");
    assert_eq!((&wide["published"], &wide["ours"]), (&2080.into(), &1760.into()));
    assert_eq!(cell(cells, row, "TinyOT triples")["ours"], 40_640);
}

#[test]
fn timed_tables_run_and_say_under_which_conditions() {
    let shown = document(&["5", "--blocks", "1"]);
    let cells = cells(&shown);
    assert_eq!(check(cells), 0);
    let latency = cell(cells, "AES-LT", "Online latency (ms)");
    assert!(number(latency, "ours") > 0.0);
    assert!(latency["note"].as_str().is_some_and(|note| note.contains("1 blocks in a batch")), "{latency}");
    assert!(cell(cells, "TinyTable (optim.)", "Online throughput (/s)")["ours"].is_null());
    // Bytes of OP-LUT and SP-LUT are counted: those of the lookups, and what a batch sends once.
    for row in ["OP-LUT", "SP-LUT", "OP-LUT, gates"] {
        let sent = cell(cells, row, "Comms. (total) (MB)");
        let ratio = number(sent, "ours") / number(sent, "expected");
        assert!((1.0..1.01).contains(&ratio), "{sent}");
    }
    assert!(number(cell(cells, "SP-LUT", "Setup (ms a block)"), "ours") > 0.0);
}

#[test]
fn figure_3_is_drawn_with_its_data_beside_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let picture = directory.path().join("figure.svg");
    let path = picture.to_str().expect("a path in Unicode");
    let shown = document(&["figure-3", "--blocks", "1", "--plot", path]);
    check(cells(&shown));
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    assert!(svg.contains("<svg") && svg.contains("parties"), "{svg}");
    let data = std::fs::read(picture.with_extension("json")).expect("data");
    let data: Value = serde_json::from_slice(&data).expect("JSON");
    let points = data["curves"][0]["points"].as_array().expect("points");
    let parties: Vec<&Value> = points.iter().map(|point| &point["parties"]).collect();
    assert_eq!(parties, [2, 3, 4, 5]);
    for (parties, point) in (2..=5).zip(points) {
        let cell = cell(cells(&shown), &format!("{parties} parties"), "Online (/s)");
        assert_eq!(cell["ours"], point["blocks_per_s"], "measured once");
    }
}

#[test]
fn a_picture_of_a_table_without_one_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_polyclave-lab"))
        .args(["reproduce", "keller-2017", "1", "--plot", "picture.svg"])
        .output()
        .expect("the program starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no figure"));
}
