//! A node whose store moves to a PostgreSQL server and back, while its cluster goes on.

use polyclave_harness::postgres::Postgres;

use crate::common::Place;

#[test]
fn a_node_serves_with_its_store_at_a_server_and_after_the_server_was_killed() {
    let Some(mut server) = Postgres::start("a node with its store at a server", &[]) else { return };
    let place = Place::new();
    let nodes = place.cluster();
    place.run("key generate k");
    place.write("plain", b"twelve boxes");
    place.run("encrypt --key k plain sealed");
    let url = server.url();
    assert!(
        place
            .fails(&format!("node migrate try/node-1 --to {url}"))
            .contains("another process is using the store")
    );
    nodes.end();

    let message = place.run(&format!("node migrate try/node-1 --to {url}"));
    assert!(message.contains("records were moved") && message.contains("store.redb"), "{message}");
    assert!(!place.path("try/node-1/store.redb").exists());
    assert!(place.run(&format!("node migrate try/node-1 --to {url}")).contains("there already"));
    assert!(!String::from_utf8(place.read("try/node-1/node.toml")).expect("text").contains("password"));

    let nodes = place.cluster_again();
    assert_eq!(place.pipe("decrypt --key k sealed -", b""), b"twelve boxes");
    let settings = String::from_utf8(place.read("try/node-1/node.toml")).expect("text");
    let http =
        settings.lines().find_map(|line| line.strip_prefix("http_listen = \"127.0.0.1:")).expect("a port");
    let http = http.trim_end_matches('"').parse().expect("a number");
    place.until("it is ready", || place.fetch(http, "/readyz").ends_with("\r\n\r\nready\n"));
    place.until("its metrics", || place.fetch(http, "/metrics").contains("polyclave_store_damaged 0"));
    server.kill();
    // The node needs its server for a new key, and says so.
    let refused = place.output("key generate later");
    assert!(!refused.status.success(), "{refused:?}");
    place.until("it is not ready", || place.fetch(http, "/readyz").contains("the server of its store"));
    server.start_again();
    place.until("the node goes on", || place.output("key generate after").status.success());
    assert_eq!(place.pipe("decrypt --key k sealed -", b""), b"twelve boxes");
    nodes.end();

    place.run("node backup try/node-1 backup --key backup.key");
    place.run("node migrate try/node-1 --to file");
    let nodes = place.cluster_again();
    assert_eq!(place.pipe("decrypt --key k sealed -", b""), b"twelve boxes");
    assert!(place.run("key list").contains("after"));
    nodes.end();

    // A backup of a store at a server is restored into a file.
    place.run("node restore backup restored --key backup.key");
    assert!(place.path("restored/store.redb").exists());
    assert!(!String::from_utf8(place.read("restored/node.toml")).expect("text").contains("postgresql"));
}
