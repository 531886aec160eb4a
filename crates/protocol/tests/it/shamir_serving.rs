//! Any 2t + 1 nodes serve from what they stored, whoever is absent.

use crate::clear::in_the_clear;
use crate::shamir_nodes::{KEY, cluster, config, serve, store_round_keys};
use polyclave_cipher::{Cells, Direction, catalog, compile};
use polyclave_protocol::catalog::service;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_members;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, Shamir, ShamirConfig};
use polyclave_protocol::{Error, Party, PartySet, Result};

const BLOCKS: &[u8; 32] = b"two blocks that somebody encrypt";

fn sets_of(parties: usize, members: usize) -> impl Iterator<Item = PartySet> {
    (0..1u16 << parties).map(PartySet::from_bits).filter(move |set| set.len() >= members)
}

fn encrypt_with_stored(protocol: &mut Shamir, round_keys: &[u8], net: &mut dyn Net) -> Result<Vec<u8>> {
    let round_keys = protocol.restore(round_keys)?;
    let circuit = compile(&catalog::find("aes-128").expect("the catalog has it").encrypt, protocol);
    let batch = prepare(protocol, &circuit, 2, net)?;
    let blocks = Cells::from_blocks(16, 8, BLOCKS).expect("whole blocks");
    let inputs = [Input::Public(&blocks), Input::Shared(&round_keys)];
    let output = evaluate(protocol, &circuit, 2, &inputs, batch, net)?.remove(0);
    let released = release(protocol, &output, Owner::All, net)?.expect("it is for all");
    Ok(released.trust_all_parties().to_blocks())
}

fn encrypted() -> Vec<u8> {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    let circuit = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    in_the_clear(&circuit, &[BLOCKS, &KEY])
}

#[test]
fn any_2t_plus_1_or_more_nodes_encrypt_under_round_keys_that_all_stored() {
    let expected = encrypted();
    for (n, t) in [(5, 1), (5, 2), (3, 1), (7, 2)] {
        let config = config(n, t);
        let disks = cluster(&config, store_round_keys);
        for serving in sets_of(n, 2 * t + 1).filter(|set| n < 7 || set.len() == 5) {
            let outputs = serve(&config, serving, &disks, encrypt_with_stored);
            assert_eq!(outputs.len(), serving.len());
            assert!(outputs.iter().all(|output| *output == expected), "n = {n}, t = {t}: {serving}");
        }
    }
}

/// Products by resharing, openings under masks, powers made ahead: each among some of the nodes.
#[test]
fn every_inversion_runs_with_absent_nodes() {
    let serving = PartySet::from_bits(0b11001);
    for inversion in Inversion::ALL {
        let config = ShamirConfig { inversion, ..config(5, 1) };
        let disks = cluster(&config, store_round_keys);
        let outputs = serve(&config, serving, &disks, encrypt_with_stored);
        assert!(outputs.iter().all(|output| *output == encrypted()), "{inversion}");
    }
}

#[test]
fn inputs_and_outputs_of_single_nodes_pass_among_those_who_serve() {
    let config = config(5, 1);
    let serving = PartySet::from_bits(0b10110);
    let disks = cluster(&config, |_, _| Ok(Vec::new()));
    let outputs = serve(&config, serving, &disks, |protocol, _, net| {
        let circuit = compile(&catalog::find("aes-128").expect("the catalog has it").encrypt, protocol);
        let (block, keys) = (Cells::zero(16, 8, 1), Cells::zero(176, 8, 1));
        let own = if net.me() == Party(4) { Input::Mine(&keys) } else { Input::From(Party(4)) };
        let batch = prepare(protocol, &circuit, 1, net)?;
        let output = evaluate(protocol, &circuit, 1, &[Input::Public(&block), own], batch, net)?.remove(0);
        for absent in [Party(0), Party(3)] {
            let refused = release(protocol, &output, Owner::Party(absent), net).map(drop);
            assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
        }
        let released = release(protocol, &output, Owner::Party(Party(2)), net)?;
        Ok(released.map(|output| output.trust_all_parties().to_blocks()))
    });
    let expected = in_the_clear(&catalog::find("aes-128").expect("known").encrypt, &[&[0; 16], &[0; 176]]);
    assert_eq!(outputs, [None, Some(expected), None]);
}

#[test]
fn too_few_nodes_and_outsiders_are_refused() {
    let config = config(5, 2);
    let disks = cluster(&config, |_, _| Ok(Vec::new()));
    let joined = |bits: u16, connected: u16| {
        let outcomes = run_members(5, PartySet::from_bits(connected), |net| {
            let setup = config.restore_setup(net.me(), &disks[net.me().index()].0)?;
            let mut session = hello(&config.handshake(HandshakeParameters::new(5)), net)?;
            config.join(&setup, session.stream(), PartySet::from_bits(bits)).map(drop)
        });
        outcomes.into_iter().next().expect("somebody took part")
    };
    assert!(matches!(joined(0b01111, 0b01111), Err(Error::Misuse(_))), "four of five, where five are needed");
    assert!(matches!(joined(0b11110, 0b11111), Err(Error::Misuse(_))), "not those who said hello");
    assert!(matches!(joined(0b101111, 0b11111), Err(Error::Misuse(_))), "there is no party 6");
    assert_eq!(joined(0b11111, 0b11111), Ok(()));
}

#[test]
fn a_session_is_joined_by_those_who_said_hello() {
    let config = config(5, 1);
    let disks = cluster(&config, |_, _| Ok(Vec::new()));
    let outcomes = run_members(5, PartySet::from_bits(0b01111), |net| {
        let setup = config.restore_setup(net.me(), &disks[net.me().index()].0)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(5)), net)?;
        config.join(&setup, session.stream(), PartySet::from_bits(0b11111)).map(drop)
    });
    assert!(outcomes.iter().all(|o| matches!(o, Err(Error::Misuse(_)))), "{outcomes:?}");
}

#[test]
fn protocols_are_found_by_name_and_unknown_names_list_the_known() {
    assert_eq!(service("shamir", 5, 1).map(|config| (config.name(), config.quorum())), Ok(("shamir", 3)));
    assert!(matches!(service("shamir", 3, 2), Err(Error::Misuse(_))));
    let unknown = service("spdz", 3, 1).map(|_| ());
    assert!(matches!(&unknown, Err(Error::Misuse(text)) if text.contains("one of shamir")), "{unknown:?}");
}
