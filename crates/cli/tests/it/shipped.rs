//! What is shipped does not contain: insecure dealers, toy protocols, nodes that cheat. Cargo adds up the
//! features of all that it builds at once, so what counts is the program built alone, and each package is
//! searched. `crates/lab/tests/it/shipped.rs` shows that the search finds all of it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Place;

/// Code for tests and the laboratory: insecure dealers and toy protocols, nodes that cheat. Each is a package
/// with any feature, or with this one.
const FORBIDDEN: [&str; 2] = ["polyclave-protocol-lab ", "polyclave-node cheats"];

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

/// The program, and the libraries for PKCS#11 and for Python.
const SHIPPED: [&str; 3] = ["polyclave-cli", "polyclave-pkcs11", "polyclave-python"];

#[test]
fn what_is_shipped_holds_no_insecure_dealer_and_no_node_that_cheats() {
    let shipped = SHIPPED.map(|package| (package, features(package)));
    let laboratory = features("polyclave-lab");
    for feature in FORBIDDEN {
        for (package, on) in &shipped {
            assert!(!on.iter().any(|on| on.starts_with(feature)), "{package} is built with {feature}");
        }
        assert!(
            laboratory.iter().any(|on| on.starts_with(feature)),
            "polyclave-lab is not built with {feature}"
        );
    }
    // Only tests damage stores, pretend to be of a release that does not exist, and draw from seeds.
    for (package, built) in shipped.into_iter().chain([("polyclave-lab", laboratory)]) {
        for feature in
            ["polyclave-store testkit", "polyclave-protocol next-release", "polyclave-protocol seeded"]
        {
            assert!(!built.iter().any(|on| on == feature), "{package} is built with {feature}");
        }
    }
}

/// What the tests are built with: cargo has added nodes that cheat.
const PROGRAM: &str = env!("CARGO_BIN_EXE_polyclave");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a script of the repository says, if it refuses.
fn refused(script: &mut Command) -> String {
    let output = script.output().expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{script:?} refuses nothing: {message}");
    message
}

fn script(name: &str) -> Command {
    Command::new(repository().join(name))
}

/// A script of a shell in place of a program.
fn write_program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("written");
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn a_program_that_contains_nodes_that_cheat_says_so_and_lets_nobody_choose_what_protects_nothing() {
    let place = Place::new();
    let version = place.run("--version");
    assert!(version.contains("nodes that cheat"), "{version}");
    let refused = place.output("cluster new x --protocol additive");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && message.contains("'additive'"), "{message}");
    assert!(place.names().is_empty());
}

#[test]
fn a_program_is_run_before_it_is_packaged() {
    let place = Place::new();
    let program = place.path("polyclave");
    let makes = |protocol: &str| {
        format!(
            "[ \"$1\" != --version ] || echo polyclave 0.2.0; case \"$*\" in *' {protocol}') exit 1; esac"
        )
    };
    for (text, message) in [
        ("exit 1", "it says that it is ''"),
        ("echo polyclave 0.2.0, for tests", "it says that it is 'polyclave 0.2.0, for tests'"),
        (&makes("shamir"), "it makes no cluster"),
        (&makes("nothing"), "it makes a cluster with a protocol that protects nothing"),
    ] {
        write_program(&program, text);
        let heard = refused(script("scripts/check-shipped").arg(&program));
        assert!(heard.contains(message), "{heard}");
    }
    write_program(&program, &makes("additive"));
    assert!(script("scripts/check-shipped").arg(&program).status().expect("it starts").success());
}

#[test]
fn nothing_is_packaged_of_a_program_with_code_for_tests() {
    let place = Place::new();
    let message = refused(script("scripts/package-deb").arg(PROGRAM).arg(place.path("debian")));
    assert!(message.contains("must not be shipped"), "{message}");

    let library = place.path("target/dist/libpolyclave_pkcs11.so");
    std::fs::create_dir_all(library.parent().expect("in a folder")).expect("made");
    std::fs::copy(PROGRAM, &library).expect("copied");
    let mut install = script("packaging/install-pkcs11");
    let message = refused(install.arg(place.path("prefix")).env("CARGO_TARGET_DIR", place.path("target")));
    assert!(message.contains("must not be shipped"), "{message}");

    // In place of cargo and maturin: programs that "build" this one, and pack what they were given.
    let build = "mkdir -p \"$CARGO_TARGET_DIR/dist\"\n\
                 ln -f \"$PROGRAM\" \"$CARGO_TARGET_DIR/dist/polyclave\" && cp /bin/true \"$CARGO_TARGET_DIR/dist/polyclave-lab\"";
    let pack = "for out; do :; done\n\
                mkdir -p w/polyclave-1.data w/polyclave && cp -r polyclave.data/scripts w/polyclave-1.data && \
                echo library > w/polyclave/_polyclave.abi3.so && cd w && python3 -m zipfile --create \"$out/polyclave-1.whl\" *";
    write_program(&place.path("bin/cargo"), build);
    write_program(&place.path("bin/maturin"), pack);
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").expect("a path"));
    std::fs::hard_link(PROGRAM, place.path("program"))
        .or_else(|_| std::fs::copy(PROGRAM, place.path("program")).map(drop))
        .expect("there");
    let mut wheel = script("scripts/package-wheel");
    wheel.arg(place.path("wheels")).env("PATH", path).env("PROGRAM", place.path("program"));
    let message = refused(wheel.env("CARGO_TARGET_DIR", place.path("target")));
    assert!(message.contains("polyclave must not be shipped"), "{message}");
    assert!(!place.path("wheels").exists() && !place.path("debian").exists());
}

#[test]
fn every_script_that_packages_builds_for_shipping_or_says_how_and_checks_what_it_packaged() {
    for name in [
        "scripts/package-deb",
        "scripts/package-wheel",
        "packaging/Containerfile",
        "packaging/install-pkcs11",
    ] {
        let text = std::fs::read_to_string(repository().join(name)).expect("it is there");
        assert!(text.contains("scripts/check-shipped"), "{name}");
        assert!(!text.contains("release"), "{name}: tests leave programs there");
        assert!(text.contains("POLYCLAVE_SHIP=1 cargo build --profile dist"), "{name}");
    }
}
