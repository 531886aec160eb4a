//! What documents say of protocols is what the catalog says.

use polyclave_protocol::catalog;

/// The protocols that nodes serve, and the others.
const README: &str = include_str!("../../../../README.md");
const LABORATORY: &str = include_str!("../../../../docs/laboratory/index.md");

/// The first three cells of each row of a document's table of protocols.
fn rows(document: &'static str) -> Vec<Vec<String>> {
    let (_, behind) = document.split_once("<!-- protocols: begin -->").expect("the table begins");
    let (table, _) = behind.split_once("<!-- protocols: end -->").expect("the table ends");
    let cells =
        |line: &str| line.trim_matches('|').split('|').take(3).map(|cell| cell.trim().into()).collect();
    table.trim().lines().skip(2).map(cells).collect()
}

#[test]
fn the_tables_of_the_readme_and_of_the_laboratory_have_every_protocol_as_the_catalog_describes_it() {
    polyclave_protocol_lab::add_to_catalog();
    for (document, serves) in [(README, true), (LABORATORY, false)] {
        let expected: Vec<Vec<String>> = catalog::all()
            .into_iter()
            .filter(|protocol| protocol.serves() == serves)
            .map(|protocol| {
                let parties = protocol.party_range().trim_end_matches(" parties").to_owned();
                vec![format!("`{}`", protocol.name), parties, protocol.adversary.to_string()]
            })
            .collect();
        assert_eq!(rows(document), expected);
    }
}
