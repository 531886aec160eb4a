//! Each row of the table in docs/operate/lost-machine.md: what stops when a node is lost, what goes on, and
//! how the keys come back.

use polyclave_harness::book;

use crate::common::{Place, Running};
use crate::rolling::{standby, until_pairs_are_ready};

const PAGE: &str = "operate/lost-machine.md";

/// What the page says of so many nodes under a protocol.
struct Row {
    protocol: String,
    nodes: usize,
    serves: bool,
    makes: bool,
    moves: bool,
}

fn rows() -> Vec<Row> {
    let page = book::read(PAGE);
    let (_, table) = page.split_once("<!-- A test tries each row. -->").expect("the table");
    let lines = table.trim_start().lines().skip(2).take_while(|line| line.starts_with('|'));
    let rows = lines.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [protocol, nodes, requests, making, back, without] = cells[..] else { panic!("{line}") };
        assert_eq!(back, "yes", "{line}");
        let one_of = |cell: &str, [yes, no]: [&str; 2]| {
            assert!(cell == yes || cell == no, "{line}");
            cell == yes
        };
        Row {
            protocol: protocol.trim_matches('`').into(),
            nodes: nodes.parse().expect("a number"),
            serves: one_of(requests, ["go on", "stop"]),
            makes: one_of(making, ["go on", "stop"]),
            moves: one_of(without, ["moves to new nodes", "keys are lost"]),
        }
    });
    rows.collect()
}

fn start(place: &Place, node: usize) -> Running {
    place.start(&format!("node run try/node-{node} --log error"))
}

/// Whether a node can serve, and has some material of each kind.
fn is_ready(place: &Place, node: usize) -> bool {
    let status = place.output(&format!("node status try/node-{node}"));
    status.status.success() && !String::from_utf8_lossy(&status.stdout).contains(" 0 of ")
}

/// Loses node 2 of a cluster, and tries what its row says.
fn lose(protocol: &str, nodes: usize) {
    let row = rows().into_iter().find(|row| row.protocol == protocol && row.nodes == nodes).expect("a row");
    let place = Place::new();
    let succeeds = |command: &str| place.output(command).status.success();
    place.run(&format!("cluster new try --protocol {protocol} --parties {nodes} --threshold 1"));
    let mut running: Vec<Running> = (1..=nodes).map(|node| start(&place, node)).collect();
    let all_are_ready = || (1..=nodes).all(|node| is_ready(&place, node));
    place.until("all nodes are ready", all_are_ready);
    place.run("key generate letters");
    // What a pair lacks is counted when it is asked: a key that was made a moment ago is one of them.
    for pair in (0..nodes).flat_map(|node| standby(&place, node)) {
        assert_eq!(
            pair["keys"].as_u64().zip(pair["lacking"].as_u64()).map(|(a, b)| a + b),
            Some(1),
            "{pair}"
        );
    }
    place.write("letter", b"dear all");
    place.run("encrypt --key letters letter letter.sealed");
    place.run("node backup try/node-2 node-2.backup --key backup.key");

    until_pairs_are_ready(&place, nodes);
    let mut lost = running.remove(1);
    lost.kill();
    lost.wait_until_gone();
    std::fs::rename(place.path("try/node-2"), place.path("lost")).expect("moved");
    let opens = || succeeds("decrypt --key letters letter.sealed opened");
    match row.serves {
        // A moment later at the latest.
        true => place.until("requests go on", opens),
        false => assert!(!opens(), "requests"),
    }
    assert!(!row.serves || place.read("opened") == b"dear all");
    assert_eq!(succeeds("key generate more"), row.makes, "making keys");

    place.run("node restore node-2.backup try/node-2 --key backup.key");
    for node in (1..=nodes).filter(|node| *node != 2) {
        place.run(&format!("node readmit try/node-{node} node-2"));
    }
    running.push(start(&place, 2));
    place.until("all nodes are ready with the restored one", all_are_ready);
    place.run("decrypt --key letters letter.sealed restored");
    assert_eq!(place.read("restored"), b"dear all");
    // Under shamir-active a request or two may have to be repeated after a node has started.
    place.until("keys are made again", || succeeds("key generate again"));

    running.into_iter().for_each(Running::end);
    std::fs::remove_dir_all(place.path("try/node-2")).expect("removed");
    let moved = place.output("cluster reshare try --lost node-2 --add 1");
    let message = String::from_utf8_lossy(&moved.stderr);
    assert_eq!(moved.status.success(), row.moves, "{message}");
    assert!(row.moves || message.contains("Restore the backup of a node that is lost"), "{message}");
}

macro_rules! rows_of_the_table {
    ($($name:ident: $protocol:literal, $nodes:literal;)+) => {
        $(
            #[test]
            fn $name() {
                lose($protocol, $nodes);
            }
        )+

        #[test]
        fn every_row_is_tried_and_every_protocol_has_one() {
            let tried = [$(($protocol.to_owned(), $nodes)),+];
            let rows: Vec<(String, usize)> = rows().into_iter().map(|row| (row.protocol, row.nodes)).collect();
            assert_eq!(rows, tried);
            for protocol in polyclave_protocol::catalog::serving() {
                assert!(tried.iter().any(|(name, _)| name == protocol.name), "{}", protocol.name);
            }
        }
    };
}

rows_of_the_table! {
    shamir_with_nodes_to_spare: "shamir", 5;
    shamir_without_nodes_to_spare: "shamir", 3;
    shamir_active: "shamir-active", 4;
    replicated: "replicated", 3;
    replicated_active: "replicated-active", 3;
    replicated_four: "replicated-four", 4;
    spdz_lt: "spdz-lt", 2;
    spdz_tower: "spdz-tower", 2;
    tinytable_linear64: "tinytable-linear64", 2;
}
