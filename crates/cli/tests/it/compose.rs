//! The scripts of `packaging/compose`, which make three nodes and a gateway at their first start. They run
//! here without containers: with folders instead of volumes, and ports instead of host names.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Place, free_range};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/compose").join(name)
}

/// A process that is killed when dropped.
struct Container(Child);

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a script in its own home, with the built program as `polyclave`.
fn start(place: &Place, name: &str, of: &str, port: u16) -> Container {
    let home = place.path(name);
    std::fs::create_dir_all(&home).expect("made");
    let program = Path::new(env!("CARGO_BIN_EXE_polyclave"));
    let old = std::env::var("PATH").expect("a path");
    let log = std::fs::File::options().create(true).append(true).open(home.join("log")).expect("a log");
    let mut command = Command::new(script(of));
    command
        .env("PATH", format!("{}:{old}", program.parent().expect("a folder").display()))
        .envs([("POLYCLAVE_HOME", home.as_path()), ("POLYCLAVE_CARDS", &place.path("cards"))])
        .envs([("POLYCLAVE_NAME", name), ("POLYCLAVE_HOST", "127.0.0.1")])
        .envs([("POLYCLAVE_PORT", port.to_string()), ("POLYCLAVE_LISTEN", format!("127.0.0.1:{port}"))])
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a second handle"))
        .stderr(log);
    Container(command.spawn().expect("it starts"))
}

/// Nodes are killed while they set themselves up, and all start twice.
#[test]
fn nodes_and_a_gateway_set_themselves_up_once() {
    let place = Place::new();
    std::fs::create_dir(place.path("cards")).expect("made");
    let port = free_range(10);
    let start_node = |number: u16| start(&place, &format!("node-{number}"), "node", port + 3 * (number - 1));
    let start_gateway = || start(&place, "gateway", "gateway", port + 9);
    // One waits for the others, and is killed meanwhile.
    let alone = start_node(1);
    place.until("a card", || place.path("cards/node-1.toml").exists());
    let card = place.read("cards/node-1.toml");
    drop(alone);

    let mut token = Vec::new();
    for turn in 0..2 {
        let nodes = [1, 2, 3].map(start_node);
        let gateway = start_gateway();
        let serves = || {
            String::from_utf8_lossy(&place.read("gateway/log")).matches("the nodes can serve").count() > turn
        };
        place.until("they serve", || place.path("gateway/log").exists() && serves());
        let client = "--client gateway/gateway/client";
        // Two of the three can serve already.
        let all_answer = || place.output(&format!("key list {client}")).status.success();
        place.until("all nodes answer", all_answer);
        match turn {
            0 => {
                token = place.read("gateway/gateway/token");
                place.run(&format!("key generate first {client}"));
            }
            _ => assert!(place.run(&format!("key list {client}")).contains("first")),
        }
        drop((nodes, gateway));
    }
    assert_eq!(place.read("cards/node-1.toml"), card, "a node makes its keys once");
    assert_eq!(place.read("gateway/gateway/token"), token);
}
