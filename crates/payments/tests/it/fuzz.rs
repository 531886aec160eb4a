//! Arbitrary bytes as commands of clients: they are refused, or they can be computed.

use polyclave_cipher::Circuit;
use polyclave_harness::fuzz;
use polyclave_payments::{Command, KeyFacts};

use crate::runner::{cipher_in, purposes};
use crate::vectors::{FILES, read};

const CIPHERS: [&str; 5] = ["3des-ede2", "3des-ede3", "aes-128", "aes-192", "aes-256"];
/// A command whose circuit has more public bytes takes long to build.
const SHORT: usize = 96;

fn bytes_of(circuit: &Circuit, name: &str) -> usize {
    circuit.inputs().iter().find(|port| port.name == name).map_or(0, |port| port.cells.len() / 8)
}

/// With keys of each cipher that fit: what nodes do with a command before they compute it, and the circuit.
/// Returns how many circuits there are.
fn is_refused_or_can_be_computed(command: &Command) -> usize {
    let (payment, mut built) = (command.payment(), 0);
    for cipher in CIPHERS.map(|name| cipher_in(name, 8)) {
        let small = cipher_in(CIPHERS[0], 8);
        let keys: Vec<KeyFacts<'_>> = payment
            .roles()
            .iter()
            .filter_map(|role| {
                let purpose = purposes().find(|purpose| (role.takes)(purpose))?;
                let cipher = if purpose.check(&cipher).is_ok() { &cipher } else { &small };
                Some(KeyFacts { purpose, cipher })
            })
            .collect();
        if payment.check(&keys).is_err() {
            continue;
        }
        assert_eq!(payment.blocks(&keys).len(), keys.len());
        assert!(payment.counted().iter().all(|place| *place < keys.len()));
        assert!(!payment.circuit_name(&keys).is_empty());
        let public = payment.public(&keys);
        if public.len() <= SHORT {
            let circuit = payment.circuit(&keys, 8);
            assert_eq!(bytes_of(&circuit, "public"), public.len(), "{command:?}");
            assert_eq!(bytes_of(&circuit, "random"), payment.random_bytes(), "{command:?}");
            built += 1;
        }
    }
    built
}

#[test]
fn no_command_of_a_client_panics() {
    let commands = FILES.iter().flat_map(|name| read(name)).map(|vector| vector.command());
    let commands: Vec<Command> = commands.step_by(7).collect();
    let built: usize = commands.iter().map(is_refused_or_can_be_computed).sum();
    assert!(built > commands.len() / 2, "{built} circuits of {} commands", commands.len());
    let written = |command| postcard::to_stdvec(command).expect("it can be written");
    let seeds: Vec<Vec<u8>> = commands.iter().map(written).collect();
    fuzz!(quick = 2000, "payments", &[], seeds, |bytes: &[u8]| {
        if let Ok(command) = postcard::from_bytes::<Command>(bytes) {
            is_refused_or_can_be_computed(&command);
        }
    });
}
