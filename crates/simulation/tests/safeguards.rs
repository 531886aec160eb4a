//! The list of safeguards that `scripts/safeguards` takes out.

use std::fs;
use std::path::Path;

#[test]
fn what_is_taken_out_is_there_once_and_what_takes_its_place_has_a_switch() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(here.join("safeguards.toml")).expect("it is there");
    let list: toml::Table = list.parse().expect("it is in TOML");
    let safeguards = list["safeguard"].as_array().expect("a list");
    assert!(safeguards.len() >= 8);
    for safeguard in safeguards {
        let [name, file, old, new] = ["name", "file", "old", "new"]
            .map(|field| safeguard.get(field).and_then(|text| text.as_str()).expect("a text"));
        let text = fs::read_to_string(here.join("../..").join(file)).expect("it is there");
        assert_eq!(text.matches(old).count(), 1, "{name}: in {file}");
        assert!(new.contains("{off}"), "{name}");
    }
}
