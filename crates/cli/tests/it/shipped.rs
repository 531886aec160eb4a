//! What the program is built with. Cargo adds up the features of all that it builds at once, so what counts is the program built alone.

use std::process::Command;

/// Code for tests and the laboratory: insecure dealers and toy protocols, nodes that cheat.
const FORBIDDEN: [&str; 2] = ["polyclave-protocol testkit", "polyclave-node cheats"];

/// Each package that a program is built of, with a feature of it that is on.
fn features(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", package, "--edges", "no-dev", "--prefix", "none"])
        .args(["--format", "{p}:{f}", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("it is text");
    let pairs = lines.lines().filter_map(|line| {
        let (package, features) = line.rsplit_once(':')?;
        Some((package.split(' ').next()?, features.trim_end_matches(" (*)")))
    });
    pairs
        .flat_map(|(package, features)| {
            features.split(',').map(move |feature| format!("{package} {feature}")).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn the_shipped_program_holds_no_insecure_dealer_and_no_node_that_cheats() {
    let (shipped, laboratory) = (features("polyclave-cli"), features("polyclave-lab"));
    for feature in FORBIDDEN {
        assert!(!shipped.iter().any(|on| on == feature), "polyclave is built with {feature}");
        assert!(laboratory.iter().any(|on| on == feature), "polyclave-lab is not built with {feature}");
    }
}
