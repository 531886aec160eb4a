//! Nodes that are killed at sampled moments while a key is made of what is there: unwrapped, read from a key
//! block, combined of components, copied. The key is there and is the right one, or nothing of it is and the
//! same can be done again.

use std::time::{Duration, Instant};

use polyclave_api::{BlockHeader, KeyInfo, Mode, NewKey, Parity, Usage, Wrapping};
use polyclave_client::{Client, Error};
use polyclave_config::ClientDir;

use crate::common::{Place, Running};
use crate::kills::{insist, random, start};

/// SP 800-38B, example 3 of AES-128: a key, a message of 40 bytes and its code.
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const MESSAGE: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411";
const CODE: &str = "dfa66747de9ae63030ca32611497c827";
/// Kills of each kind.
const ROUNDS: usize = 4;

/// A cluster of processes that has the known key, and people who give components.
struct Trial {
    place: Place,
    nodes: Vec<Running>,
    next: Box<dyn FnMut(u64) -> u64>,
    /// How long it took to make the last key without a kill: the moments are spread over it.
    usual: Duration,
}

/// What is tried with nodes that are killed meanwhile.
type Making<'m> = &'m (dyn Fn(&Client, NewKey) -> polyclave_client::Result<KeyInfo> + Sync);

fn bytes(digits: &str) -> Vec<u8> {
    hex::decode(digits).expect("hexadecimal")
}

fn known(name: &str) -> NewKey {
    NewKey { wrappable: true, ..NewKey::for_modes(name, "aes-128", &[Mode::Cmac], 1 << 20) }
}

fn code(client: &Client, key: &str) -> polyclave_client::Result<String> {
    client.key(key).and_then(|key| key.cmac(&bytes(MESSAGE))).map(hex::encode)
}

impl Trial {
    fn begin() -> Trial {
        let place = Place::new();
        place.cluster_on_several_streams("--parties 3 --threshold 1");
        let nodes: Vec<Running> = (0..3).map(|node| start(&place, node)).collect();
        nodes.iter().for_each(|node| _ = node.wait_for("is ready"));
        let mut trial = Trial { place, nodes, next: Box::new(random()), usual: Duration::ZERO };
        let began = Instant::now();
        insist("the known key", || trial.client().import(known("known"), &bytes(KEY)));
        trial.usual = began.elapsed();
        trial
    }

    fn client_of(&self, dir: &str) -> Client {
        Client::open(&ClientDir::open(&self.place.path(dir)).expect("there")).expect("a client")
    }

    fn client(&self) -> Client {
        self.client_of("try/client")
    }

    /// Tries to make a key while nodes are killed, and then again until it is there.
    fn kill_while(&mut self, by: &str, name: &str, making: Making<'_>) {
        let moment = Duration::from_micros((self.next)(1 + 2 * self.usual.as_micros() as u64));
        let victims: Vec<usize> = match (self.next)(2) {
            0 => vec![0, 1, 2],
            _ => vec![(self.next)(3) as usize],
        };
        let maker = self.client_of(by);
        let first = std::thread::scope(|scope| {
            let first = scope.spawn(|| making(&maker, known(name)));
            std::thread::sleep(moment);
            victims.iter().for_each(|node| self.nodes[*node].signal("-KILL"));
            for node in &victims {
                self.nodes[*node].wait_until_gone();
                self.nodes[*node] = start(&self.place, *node);
            }
            victims.iter().for_each(|node| _ = self.nodes[*node].wait_for("is ready"));
            first.join().expect("no panic")
        });
        let began = Instant::now();
        let made = insist("the key is there, or is made", || match making(&maker, known(name)) {
            Ok(info) => Ok(info),
            Err(e) if e.to_string().contains("already") => self.client().info(name),
            Err(e) => Err(e),
        });
        println!("{name}: {victims:?} after {moment:?}: {}, {:?}", first.is_ok(), began.elapsed());
        if let Ok(promised) = &first {
            assert_eq!(promised.id, made.id, "{name} was promised, and there is another");
        }
        let found = insist("it serves", || code(&self.client(), name));
        assert_eq!(found, CODE, "{name}");
        let listed = insist("all list their keys", || {
            let listed = self.client().keys()?;
            listed
                .missing
                .is_empty()
                .then_some(listed)
                .ok_or_else(|| Error::Misuse("some are not there".into()))
        });
        let of_name: Vec<_> = listed.keys.iter().filter(|key| key.info.properties.name == name).collect();
        assert!(of_name.len() == 1 && of_name[0].at.len() == 3, "{of_name:?}");
    }
}

#[test]
fn no_key_that_is_unwrapped_is_lost_or_half_made_when_nodes_are_killed() {
    let mut trial = Trial::begin();
    let wrapping = NewKey {
        usage: vec![Usage::Wrap, Usage::Unwrap],
        ..NewKey::for_modes("wrapping", "aes-128", &[], 1 << 32)
    };
    insist("a key that wraps", || trial.client().generate(wrapping.clone()));
    let wrapped = insist("wrapped", || trial.client().wrap("wrapping", "known", Wrapping::Kw));
    for round in 0..ROUNDS {
        trial.kill_while("try/client", &format!("k{round}"), &|client, new| {
            client.unwrap("wrapping", &wrapped, Wrapping::Kw, new)
        });
    }
}

#[test]
fn no_key_from_a_key_block_is_lost_or_half_made_when_nodes_are_killed() {
    let mut trial = Trial::begin();
    let kbpk = NewKey {
        usage: vec![Usage::Wrap, Usage::Unwrap],
        ..NewKey::for_modes("kbpk", "aes-128", &[Mode::Tr31], 1 << 32)
    };
    insist("a key that protects blocks", || trial.client().generate(kbpk.clone()));
    let header =
        || BlockHeader { usage: *b"M6", mode_of_use: b'C', key_version: *b"00", exportability: b'E' };
    let block = insist("a block", || trial.client().wrap_block("kbpk", "known", header()));
    for round in 0..ROUNDS {
        trial.kill_while("try/client", &format!("k{round}"), &|client, new| {
            client.unwrap_block("kbpk", &block, new)
        });
    }
}

/// A copy pays from the account of its key whatever happened, and there is one copy of a name.
#[test]
fn no_copy_of_a_key_is_lost_or_half_made_when_nodes_are_killed() {
    let mut trial = Trial::begin();
    let of = insist("the key", || trial.client().info("known"));
    for round in 0..ROUNDS {
        let name = format!("k{round}");
        trial.kill_while("try/client", &name, &|client, new| client.copy("known", of.id, new));
        assert_eq!(insist("it is told", || trial.client().info(&name)).account, of.account);
    }
}

/// The components make one key. While it is not there, all of them are. Afterwards none is left at nodes that
/// have started again and have used the key: whoever had announced it before the kill removes them at the
/// start, and whoever had not, at the first use. The key that was deleted is not made of them again.
#[test]
fn no_key_that_is_combined_is_lost_and_no_component_is_used_twice_when_nodes_are_killed() {
    let mut trial = Trial::begin();
    let mask = [0x5a; 16];
    let parts = [mask.to_vec(), bytes(KEY).iter().zip(mask).map(|(key, mask)| key ^ mask).collect()];
    let people = ["dora", "edgar"];
    for name in people {
        trial.place.run(&format!("client init {name} --name {name} --cluster try/cluster.toml"));
        for node in 1..=3 {
            trial
                .place
                .run(&format!("node allow try/node-{node} {name}/card.toml --rights import,list --keys k*"));
        }
        trial.place.until("the rights are taken", || {
            trial.place.output(&format!("client status --client {name}")).status.success()
        });
    }
    for round in 0..ROUNDS {
        let name = format!("k{round}");
        for (number, (person, part)) in (1..).zip(people.iter().zip(&parts)) {
            insist("a component", || {
                let given = trial.client_of(person).import_component(known(&name), (number, 2), None, part);
                match given {
                    Err(e) if e.to_string().contains("is there already") => Ok(()),
                    given => given.map(drop),
                }
            });
        }
        trial.kill_while("edgar", &name, &|client, new| client.combine(&new.name, None, Parity::Ignore));
        trial.place.until("no component is left", || {
            let listed = trial.client().keys();
            listed.is_ok_and(|listed| {
                listed.missing.is_empty() && listed.keys.iter().all(|key| key.info.component.is_none())
            })
        });
        insist("deleted", || trial.client().delete(&name));
        let again =
            insist("refused", || match trial.client_of("edgar").combine(&name, None, Parity::Ignore) {
                Err(e) if e.to_string().contains("is not there") => Ok(true),
                Err(e) => Err(e),
                Ok(_) => Ok(false),
            });
        assert!(again, "a key was made twice of its components");
    }
}
