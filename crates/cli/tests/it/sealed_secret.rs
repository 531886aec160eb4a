//! A node whose secret is under a passphrase, or kept by the service manager.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::{Place, Running, mode, noise};

/// A private file.
fn private(place: &Place, name: &str, bytes: &[u8]) {
    place.write(name, bytes);
    fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o600)).expect("set");
}

#[test]
fn a_sealed_node_starts_with_its_passphrase_only_and_its_backup_needs_none() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    private(&place, "words", b"four words are enough\n");
    private(&place, "others", b"four words are not enough\n");
    let cluster = place.start("cluster run try");
    cluster.wait_for("all 3 nodes are ready");
    place.run("key generate k");
    place.write("f", &noise(1000));
    place.run("encrypt --key k f f.sealed");
    cluster.end();

    private(&place, "short", b"eleven char\n");
    let short = place.fails("node seal try/node-2 --passphrase-file short");
    assert!(short.contains("at least 12 characters"), "{short}");
    place.run("node seal try/node-2 --passphrase-file words");
    assert!(!place.path("try/node-2/secret.key").exists());
    assert_eq!(mode(&place.path("try/node-2/secret.sealed")), 0o600);
    let wrong = place.fails("node run try/node-2 --passphrase-file others");
    assert!(wrong.contains("secret.sealed") && wrong.contains("passphrase is wrong"), "{wrong}");
    fs::set_permissions(place.path("others"), fs::Permissions::from_mode(0o644)).expect("set");
    assert!(place.fails("node run try/node-2 --passphrase-file others").contains("chmod 600"));

    let nodes = [
        place.start("node run try/node-1"),
        place.start("node run try/node-2 --passphrase-file words"),
        place.start("node run try/node-3"),
    ];
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    place.run("decrypt --key k f.sealed g");
    assert_eq!(place.read("g"), noise(1000));
    // The running node writes it, and asks nobody.
    place.run("node backup try/node-2 copy --key copy.key");
    nodes.into_iter().for_each(Running::end);
    place.run("node restore copy restored --key copy.key");
    assert!(place.path("restored/secret.key").exists());

    private(&place, "new", b"another four good words\n");
    place.run("node seal try/node-2 --old-passphrase-file words --passphrase-file new");
    assert!(place.fails("node unseal try/node-2 --passphrase-file words").contains("passphrase is wrong"));
    place.run("node unseal try/node-2 --passphrase-file new");
    assert_eq!(
        place.read("try/node-2/secret.key"),
        [place.read("restored/secret.key"), b"\n".to_vec()].concat()
    );
    assert!(!place.path("try/node-2/secret.sealed").exists());
}

/// As the service manager starts it, with the secret or the passphrase as a credential.
#[test]
fn credentials_of_the_service_manager_open_a_node() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    let others = [place.start("node run try/node-1"), place.start("node run try/node-3")];
    let credentials = place.path("credentials");
    fs::create_dir(&credentials).expect("made");
    fs::rename(place.path("try/node-2/secret.key"), credentials.join("polyclave-secret")).expect("moved");
    let without = place.fails("node run try/node-2");
    assert!(without.contains("no credential polyclave-secret was passed"), "{without}");
    let node = place.start_with("node run try/node-2", &[("CREDENTIALS_DIRECTORY", &credentials)]);
    node.wait_for("is ready");
    node.end();

    fs::rename(credentials.join("polyclave-secret"), place.path("try/node-2/secret.key")).expect("moved");
    private(&place, "words", b"four words are enough\n");
    place.run("node seal try/node-2 --passphrase-file words");
    fs::rename(place.path("words"), credentials.join("polyclave-passphrase")).expect("moved");
    let node = place.start_with("node run try/node-2", &[("CREDENTIALS_DIRECTORY", &credentials)]);
    node.wait_for("is ready");
    node.end();
    others.into_iter().for_each(Running::end);
}
