//! Workers that wait for a lot together, with stores at a real server. Without PostgreSQL these tests say
//! that they were not run.

use std::thread;

use polyclave_harness::postgres::Postgres as TestServer;
use polyclave_protocol::mesh::mesh;
use polyclave_store::testing::{at_server, secret};
use polyclave_store::{Store, StoreError};

use super::*;

const WANTED: WantedLot = WantedLot { id: [1; 16], setup: [2; 32], kind: 0, count: 3 };

/// What happens at one node while its worker waits.
#[derive(Clone, Copy, PartialEq)]
enum Maker {
    /// Makes the lot in the run with this number, after so many milliseconds.
    Delivers(u8, u64),
    /// Undertakes it, and ends.
    Ends,
    /// Undertakes it, and gives it up.
    GivesUp,
    /// The worker could not ask.
    Unasked,
}

fn make(maker: Store, does: Maker) -> Result<(), StoreError> {
    let request = loop {
        if let Some(request) = maker.undertake_next_lot()? {
            break request;
        }
        sleep(Duration::from_millis(5));
    };
    match does {
        Maker::Delivers(run, after) => {
            sleep(Duration::from_millis(after));
            maker.deliver_lot(&request, [run; 32], &[run; 12]).map(drop)
        }
        Maker::GivesUp => maker.give_up_lot(&request.wanted.id),
        Maker::Ends | Maker::Unasked => Ok(()),
    }
}

/// What two nodes get whose makers do this.
fn get(server: &TestServer, does: [Maker; 2]) -> Vec<Result<Zeroizing<Vec<u8>>>> {
    thread::scope(|scope| {
        let nodes = does.into_iter().enumerate().zip(mesh(2)).map(|((node, does), mut net)| {
            let open = |worker| at_server(&server.url(), &format!("node_{node}"), worker, &secret());
            let (serving, maker) = (open(0), open(1));
            if does != Maker::Unasked {
                scope.spawn(move || make(maker, does).expect("the server answers"));
            }
            scope.spawn(move || {
                let asked = match does {
                    Maker::Unasked => Err(Error::System("the server does not answer".into())),
                    _ => serving.ask_for_lot(WANTED).map_err(system),
                };
                together(wait(asked, &|| false, &mut net)?, &mut net)
            })
        });
        let nodes: Vec<_> = nodes.collect();
        nodes.into_iter().map(|node| node.join().expect("no panic")).collect()
    })
}

#[test]
fn both_get_their_parts_of_one_run_or_both_get_none() {
    let Some(server) = TestServer::start("lots of several nodes", &[]) else { return };
    (0..2).for_each(|node| drop(server.run(&format!("CREATE SCHEMA node_{node}"))));
    for parts in get(&server, [Maker::Delivers(4, 0), Maker::Delivers(4, 700)]) {
        assert_eq!(*parts.expect("of one run"), [4; 12]);
    }
    for (does, message) in [
        ([Maker::Delivers(4, 0), Maker::Delivers(5, 0)], "another run"),
        ([Maker::Delivers(4, 0), Maker::Ends], "have not made"),
        ([Maker::GivesUp, Maker::Delivers(4, 0)], "no worker of this node"),
        ([Maker::Unasked, Maker::Delivers(4, 0)], "does not answer"),
    ] {
        let outcomes = get(&server, does);
        let errors: Vec<String> =
            outcomes.into_iter().map(|outcome| outcome.expect_err("nobody uses it").to_string()).collect();
        assert!(errors.iter().any(|error| error.contains(message)), "{errors:?}");
        for node in 0..2 {
            assert_eq!(server.run(&format!("SELECT count(*) FROM node_{node}.polyclave_delivery")), "0");
        }
    }
}

#[test]
fn a_peer_that_says_for_ever_that_it_waits_is_not_waited_for_longer_than_others() {
    let Some(server) = TestServer::start("a peer that says that it waits", &[]) else { return };
    let (serving, maker) =
        (at_server(&server.url(), "public", 0, &secret()), at_server(&server.url(), "public", 1, &secret()));
    let [mut mine, mut cheat]: [_; 2] = mesh(2).try_into().unwrap_or_else(|_| panic!("two"));
    let asked = serving.ask_for_lot(WANTED).map_err(system);
    make(maker, Maker::Delivers(4, 0)).expect("the server answers");
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || while tell_all(&[WAITS], &mut cheat).is_ok_and(|said| said[0].1 != [GONE]) {});
        assert!(wait(asked, &|| false, &mut mine).is_err(), "this node has its part, and the peer never has");
    });
    assert!(began.elapsed() >= PATIENCE);
}

#[test]
fn a_peer_that_leaves_ends_the_wait() {
    let Some(server) = TestServer::start("a peer that leaves", &[]) else { return };
    let serving = at_server(&server.url(), "public", 0, &secret());
    let mut nets = mesh(2);
    drop(nets.pop());
    let waited = wait(serving.ask_for_lot(WANTED).map_err(system), &|| false, &mut nets[0]);
    assert!(matches!(waited.err(), Some(Error::Closed { .. })));
}
