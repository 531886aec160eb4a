//! Node processes that are killed at sampled moments: no announced key is lost, and no node needs help to
//! come back.

use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};

use crate::common::{Place, Running};
use polyclave_client::Client;
use polyclave_config::ClientDir;
use polyclave_protocol::session::random_bytes;

/// Kills, each in the middle of making a key.
const ROUNDS: usize = 15;
/// Milliseconds: making a key right after a start takes about so long, and the moments are spread over it.
const LONGEST: u64 = 400;

fn new_key(name: &str) -> NewKey {
    NewKey::for_modes(name, "aes-128", &[Mode::Gcm], 1 << 20)
}

fn round_trip(client: &Client, key: &str) {
    let (mut sealed, mut opened) = (Vec::new(), Vec::new());
    client.seal(key, &mut &b"still there"[..], &mut sealed, &mut |_| ()).expect("sealed");
    client.open_sealed(key, &mut &sealed[..], &mut opened, &mut |_| ()).expect("opened");
    assert_eq!(opened, b"still there");
}

fn seals(client: &Client, key: &str) -> bool {
    client.seal(key, &mut &b"in between"[..], &mut Vec::new(), &mut |_| ()).is_ok()
}

pub fn start(place: &Place, node: usize) -> Running {
    place.start(&format!("node run try/node-{} --log error", node + 1))
}

/// Does something that has to be possible again soon.
pub fn insist<T>(what: &str, mut attempt: impl FnMut() -> polyclave_client::Result<T>) -> T {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(e) => assert!(Instant::now() < until, "{what}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Random numbers, from a seed that is printed.
pub fn random() -> impl FnMut(u64) -> u64 {
    let mut seed = [0; 32];
    random_bytes(&mut seed).expect("randomness");
    println!("seed {seed:?}");
    let mut random = blake3::Hasher::new_keyed(&seed).finalize_xof();
    move |below| {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        u64::from_le_bytes(bytes) % below
    }
}

/// Every version that was promised is at all nodes, every number stands for one version, and what was sealed
/// under any is opened.
#[test]
fn no_version_of_a_key_is_lost_or_half_made_when_nodes_are_killed() {
    let mut next = random();
    let place = Place::new();
    place.cluster_on_several_streams("--parties 3 --threshold 1");
    let mut nodes: Vec<Running> = (0..3).map(|node| start(&place, node)).collect();
    nodes.iter().for_each(|node| _ = node.wait_for("is ready"));
    let client =
        || Client::open(&ClientDir::open(&place.path("try/client")).expect("there")).expect("a client");
    client().generate(new_key("turning")).expect("all are there");
    let (mut promised, mut sealed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (victim, moment) = (next(3) as usize, Duration::from_millis(next(LONGEST)));
        let rotating = std::thread::spawn({
            let client = client();
            move || client.rotate("turning")
        });
        std::thread::sleep(moment);
        nodes[victim].signal("-KILL");
        let outcome = rotating.join().expect("no panic");
        nodes[victim].wait_until_gone();
        nodes[victim] = start(&place, victim);
        nodes[victim].wait_for("is ready");
        println!("round {round}: node {victim} after {moment:?}: {:?}", outcome.is_ok());
        promised.extend(outcome.ok().map(|info| (info.version, info.id)));
        sealed.push(insist("the key serves", || {
            let mut message = Vec::new();
            client().seal("turning", &mut &b"still there"[..], &mut message, &mut |_| ())?;
            Ok(message)
        }));
    }
    let last = insist("it is rotated once more", || client().rotate("turning"));
    promised.push((last.version, last.id));
    for message in &sealed {
        let mut opened = Vec::new();
        client().open_sealed("turning", &mut &message[..], &mut opened, &mut |_| ()).expect("opened");
        assert_eq!(opened, b"still there");
    }
    let listed = client().keys().expect("listed").keys;
    assert!(listed.iter().all(|key| key.at.len() == 3), "{listed:?}");
    let numbers: Vec<u32> = listed.iter().map(|key| key.info.version).collect();
    assert_eq!(numbers, (1..=listed.len() as u32).collect::<Vec<_>>());
    for (version, id) in promised {
        assert_eq!(listed[version as usize - 1].info.id, id, "version {version} was promised");
    }
}

#[test]
fn no_announced_key_is_lost_when_nodes_are_killed() {
    let mut next = random();

    let place = Place::new();
    place.cluster_on_several_streams("--parties 3 --threshold 1");
    let mut nodes: Vec<Running> = (0..3).map(|node| start(&place, node)).collect();
    nodes.iter().for_each(|node| _ = node.wait_for("is ready"));
    let client =
        || Client::open(&ClientDir::open(&place.path("try/client")).expect("there")).expect("a client");
    client().generate(new_key("first")).expect("all are there");
    let mut announced = vec!["first".to_owned()];

    for round in 0..ROUNDS {
        let (victim, moment) = (next(3) as usize, Duration::from_millis(next(LONGEST)));
        let name = format!("k{round}");
        let making = std::thread::spawn({
            let (client, name) = (client(), name.clone());
            move || client.generate(new_key(&name))
        });
        std::thread::sleep(moment);
        nodes[victim].signal("-KILL");
        let outcome = making.join().expect("no panic");
        // Until it is gone, its store is in use.
        nodes[victim].wait_until_gone();
        nodes[victim] = start(&place, victim);
        let began = Instant::now();
        nodes[victim].wait_for("is ready");
        println!(
            "round {round}: node {victim} after {moment:?}: {:?}, back in {:?}",
            outcome.is_ok(),
            began.elapsed()
        );
        // In between budgets are spent, of which the others remember that they were.
        place.until("it is let in, and serves", || seals(&client(), "first"));
        if outcome.is_ok() {
            announced.push(name);
            continue;
        }
        // Either it was made, and serves; or its name is free.
        place.until("the name is in use or free", || match client().generate(new_key(&name)) {
            Ok(_) => true,
            Err(e) => e.to_string().contains("already"),
        });
        announced.push(name);
    }
    place.until("all nodes have found each other", || {
        client().status().iter().all(|(_, s)| s.as_ref().is_ok_and(|s| s.connected.len() == 3))
    });
    for name in &announced {
        round_trip(&client(), name);
    }
    let listed = client().keys().expect("listed");
    assert!(listed.keys.iter().filter(|key| key.at.len() == 3).count() == announced.len());
}
