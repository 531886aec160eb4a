//! What documents say of protocols is what the catalog says.

use polyclave_protocol::catalog;

const README: &str = include_str!("../../../../README.md");

/// The cells of each row of the README's table of protocols.
fn rows() -> Vec<Vec<&'static str>> {
    let (_, behind) = README.split_once("<!-- protocols: begin -->").expect("the table begins");
    let (table, _) = behind.split_once("<!-- protocols: end -->").expect("the table ends");
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
    table.trim().lines().skip(2).map(cells).collect()
}

#[test]
fn the_table_of_the_readme_has_every_protocol_as_the_catalog_describes_it() {
    polyclave_protocol_lab::add_to_catalog();
    let expected: Vec<[String; 4]> = catalog::all()
        .into_iter()
        .map(|protocol| {
            let serves = if protocol.serves() { "yes" } else { "no" };
            let parties = protocol.party_range().trim_end_matches(" parties").to_owned();
            [format!("`{}`", protocol.name), parties, protocol.adversary.to_string(), serves.into()]
        })
        .collect();
    let written: Vec<[String; 4]> =
        rows().iter().map(|row| [0, 1, 2, 4].map(|column| row[column].to_owned())).collect();
    assert_eq!(written, expected);
}
