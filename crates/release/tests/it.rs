//! What `scripts/release` is made of: lists of parts against `Cargo.lock`, archives, checksums and
//! signatures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use polyclave_harness::programs::skipped;
use polyclave_release::{lock, sbom, tree};
use serde_json::Value;

/// The packages of which a release has programs or libraries.
const SHIPPED: [&str; 4] = ["polyclave-cli", "polyclave-lab", "polyclave-pkcs11", "polyclave-python"];

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders above this crate")
}

fn script(name: &str) -> Command {
    Command::new(workspace().join("scripts").join(name))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// A list's components, its own package among them, by name and version.
fn components(list: &Value) -> BTreeMap<(String, String), &Value> {
    let all = list["components"].as_array().expect("a list").iter().chain([&list["metadata"]["component"]]);
    all.map(|one| ((text(&one["name"]).into(), text(&one["version"]).into()), one)).collect()
}

#[test]
fn a_list_has_every_package_of_a_program_with_the_checksum_of_the_lock_file_and_a_licence() {
    let locked = lock::checksums(workspace()).expect("Cargo.lock");
    for package in SHIPPED {
        let list = sbom(workspace(), package, Some(0)).expect(package);
        let listed = components(&list);
        assert!(listed.len() > 50, "{package}: {} packages", listed.len());
        for (id, component) in &listed {
            let checksum = locked.get(id).unwrap_or_else(|| panic!("{package}: {id:?} is not in Cargo.lock"));
            let told = component["hashes"][0]["content"].as_str();
            assert_eq!(told, checksum.as_deref(), "{package}: {id:?}");
            let licence = text(&component["licenses"][0]["expression"]);
            assert!(spdx::Expression::parse(licence).is_ok(), "{package}: {id:?}: {licence}");
        }
        // What its packages of this workspace name as dependencies, each by another way than the list.
        for id in listed.keys().filter(|id| locked[*id].is_none()) {
            for name in named_dependencies(&id.0) {
                assert!(
                    listed.keys().any(|(listed, _)| *listed == name),
                    "{package}: {name}, of {}, is not in the list",
                    id.0
                );
            }
        }
    }
}

/// What the manifest of a package of this workspace names below `[dependencies]`, without what is optional.
fn named_dependencies(package: &str) -> Vec<String> {
    let folder = package.strip_prefix("polyclave-").expect("ours");
    let manifest =
        fs::read_to_string(workspace().join("crates").join(folder).join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let dependencies = manifest["dependencies"].as_table().expect("a table");
    let needed = dependencies.iter().filter(|(_, of)| of.get("optional").is_none());
    needed
        .map(|(name, of)| of.get("package").and_then(|name| name.as_str()).unwrap_or(name).to_owned())
        .collect()
}

#[test]
fn the_program_has_no_package_of_the_laboratory_or_of_tests() {
    let list = sbom(workspace(), "polyclave-cli", None).expect("a list");
    for (name, _) in components(&list).keys() {
        assert!(
            !["polyclave-protocol-lab", "polyclave-harness", "bolero", "proptest", "plotters"]
                .contains(&name.as_str()),
            "{name}"
        );
    }
    let laboratory = sbom(workspace(), "polyclave-lab", None).expect("a list");
    assert!(components(&laboratory).keys().any(|(name, _)| name == "polyclave-protocol-lab"));
}

/// What the schema of CycloneDX 1.5 asks of the parts that are used.
#[test]
fn a_list_keeps_the_rules_of_its_format() {
    for package in SHIPPED {
        let list = sbom(workspace(), package, Some(1_700_000_000)).expect(package);
        assert_eq!([text(&list["bomFormat"]), text(&list["specVersion"])], ["CycloneDX", "1.5"]);
        assert_eq!(list["version"], 1);
        assert_eq!(list["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        let number = text(&list["serialNumber"]).strip_prefix("urn:uuid:").expect("a UUID");
        let groups: Vec<usize> = number.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{number}");
        assert!(
            number.chars().all(|c| c == '-' || c.is_ascii_digit() || ('a'..='f').contains(&c)),
            "{number}"
        );

        let mut references = BTreeSet::new();
        for component in components(&list).values() {
            assert!(
                references.insert(text(&component["bom-ref"])),
                "{} is there twice",
                component["bom-ref"]
            );
            assert!(["library", "application"].contains(&text(&component["type"])));
            if let Some(hash) = component["hashes"].get(0) {
                assert_eq!((text(&hash["alg"]), text(&hash["content"]).len()), ("SHA-256", 64));
            }
        }
        for component in list["components"].as_array().expect("a list") {
            assert!(["required", "excluded"].contains(&text(&component["scope"])), "{component}");
        }
        let dependencies = list["dependencies"].as_array().expect("a list");
        let of: BTreeSet<&str> = dependencies.iter().map(|one| text(&one["ref"])).collect();
        assert_eq!(of, references, "one entry for each component");
        for on in dependencies.iter().flat_map(|one| one["dependsOn"].as_array().expect("a list")) {
            assert!(references.contains(text(on)), "{on} is no component");
        }
    }
}

#[test]
fn what_runs_only_while_the_program_is_built_is_not_said_to_be_in_it() {
    let tree::Parts { parts, .. } = tree::parts(workspace(), "polyclave-cli").expect("cargo tree");
    let inside = |name: &str| {
        let named: Vec<bool> =
            parts.iter().filter(|(id, _)| id.0 == name).map(|(_, part)| part.is_inside).collect();
        assert!(!named.is_empty(), "{name}");
        named
    };
    assert!(inside("serde").into_iter().all(|inside| inside));
    assert!(inside("serde_derive").into_iter().all(|inside| !inside));
}

#[test]
fn the_same_sources_give_the_same_list_and_another_time_another_number() {
    let list = |made| sbom(workspace(), "polyclave-pkcs11", made).expect("a list");
    assert_eq!(list(Some(1)).to_string(), list(Some(1)).to_string());
    assert_ne!(list(Some(1))["serialNumber"], list(Some(2))["serialNumber"]);
    assert!(
        sbom(workspace(), "polyclave-nothing", None)
            .expect_err("no such package")
            .contains("polyclave-nothing")
    );
}

/// A folder `files` with two files of these modes, written in this order.
fn folder(place: &Path, names: [&str; 2], mode: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let folder = place.join("files");
    fs::create_dir_all(folder.join("below")).expect("made");
    for name in names {
        fs::write(folder.join(name), name.as_bytes()).expect("written");
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).expect("set");
    }
    folder
}

fn archive(place: &Path, folder: &Path) -> Vec<u8> {
    let file = place.join("files.tar.gz");
    let done = script("archive")
        .args([&file, folder])
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    fs::read(file).expect("written")
}

#[test]
fn an_archive_depends_on_the_files_alone_and_not_on_their_times_order_or_place() {
    let [one, other, third] = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let first = archive(one.path(), &folder(one.path(), ["a", "below/b"], 0o644));
    let later = folder(other.path(), ["below/b", "a"], 0o600);
    let touched =
        Command::new("touch").args(["-d", "2001-02-03"]).arg(later.join("a")).status().expect("touch");
    assert!(touched.success());
    assert_eq!(first, archive(other.path(), &later));
    assert_ne!(first, archive(third.path(), &folder(third.path(), ["a", "below/c"], 0o644)));
    assert!(
        !script("archive")
            .args(["x.tar.gz", "x"])
            .env_remove("SOURCE_DATE_EPOCH")
            .output()
            .expect("it runs")
            .status
            .success()
    );
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// Runs the commands of the page about releases that verify one.
fn verify(release: &Path) -> Output {
    let page = fs::read_to_string(workspace().join("docs/operate/releases.md")).expect("the page");
    let (_, block) = page.split_once("```sh no-run: needs the files of a release\n").expect("the commands");
    let (commands, _) = block.split_once("```").expect("its end");
    Command::new("bash")
        .args(["-euo", "pipefail", "-c", commands])
        .current_dir(release)
        .output()
        .expect("bash")
}

#[test]
fn who_follows_the_page_accepts_a_signed_release_and_no_altered_one() {
    if Command::new("ssh-keygen").arg("-?").output().is_err() {
        return skipped("signatures of releases", "ssh-keygen is not installed");
    }
    let place = tempfile::tempdir().expect("a folder");
    let [release, key] = ["release", "key"].map(|name| place.path().join(name));
    fs::create_dir(&release).expect("made");
    fs::write(release.join("polyclave.tar.gz"), b"files").expect("written");
    let checksums = || {
        let done = Command::new("sh")
            .args(["-c", "sha256sum polyclave.tar.gz >SHA256SUMS"])
            .current_dir(&release)
            .status();
        assert!(done.expect("sha256sum").success());
    };
    let make_key = |file: &Path| {
        let mut make = Command::new("ssh-keygen");
        make.args(["-q", "-t", "ed25519", "-N", "", "-C", "releases", "-f"]).arg(file);
        assert!(make.status().expect("it runs").success());
    };
    let sign = |key: &Path| script("sign-release").args([&release, key]).output().expect("it runs");
    checksums();
    assert!(message(&sign(&key)).contains("there is no key"));
    make_key(&key);
    let public = fs::read_to_string(key.with_extension("pub")).expect("the public key");
    fs::write(release.join("allowed_signers"), format!("releases@polyclave {public}")).expect("written");
    let signed = sign(&key);
    assert!(signed.status.success(), "{}", message(&signed));
    let accepted = verify(&release);
    assert!(
        accepted.status.success() && message(&accepted).contains("polyclave.tar.gz: OK"),
        "{}",
        message(&accepted)
    );

    // A file that is not as the checksums say; checksums that nobody signed; and a signature of somebody
    // else.
    fs::write(release.join("polyclave.tar.gz"), b"altered").expect("written");
    assert!(!verify(&release).status.success());
    assert!(message(&sign(&key)).contains("not as SHA256SUMS says"));
    checksums();
    assert!(!verify(&release).status.success());
    let stranger = place.path().join("stranger");
    make_key(&stranger);
    assert!(sign(&stranger).status.success());
    assert!(!verify(&release).status.success());
    assert!(sign(&key).status.success() && verify(&release).status.success());
}

#[test]
fn the_script_ships_programs_that_are_built_alone_and_searched_and_says_what_it_lacks() {
    let text = fs::read_to_string(workspace().join("scripts/release")).expect("the script");
    for package in ["polyclave-cli", "polyclave-pkcs11"] {
        assert!(
            text.contains(&format!("POLYCLAVE_SHIP=1 cargo build --profile dist --locked -p {package}")),
            "{package}"
        );
    }
    assert!(text.contains("scripts/check-shipped \"$built/polyclave\" \"$built/libpolyclave_pkcs11.so\""));
    let place = tempfile::tempdir().expect("a folder");
    let refused = |arguments: &[&str]| {
        let mut release = script("release");
        // Without maturin and the like, wherever they are installed.
        let done = release
            .arg(place.path().join("out"))
            .args(arguments)
            .env("PATH", "/usr/bin:/bin")
            .output()
            .expect("it runs");
        assert!(!done.status.success());
        message(&done)
    };
    assert!(refused(&["--without", "checksums"]).contains("usage: "));
    assert!(refused(&["--without"]).contains("usage: "));
    let lacking = refused(&["--without", "deb", "--without", "auditable"]);
    assert!(
        lacking.contains("maturin is not installed") || Path::new("/usr/bin/maturin").exists(),
        "{lacking}"
    );
}
