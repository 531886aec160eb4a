//! Clients of authenticated sharing: what they send is masked, and what they are sent they verify.

use crate::clear::in_the_clear;
use crate::clients::{client_hears, client_learns, combined, combined_elements, mask_check, noise};
use crate::computing::{client_computes, one_table, secrets_of};
use polyclave_cipher::{Circuit, Direction, catalog, compile};
use polyclave_field::{Gf2_64, Gf128};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{ProtocolConfig, Session};
use polyclave_protocol::service::{Elements, ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, Spdz, SpdzConfig};
use polyclave_protocol::tally::Counts;
use polyclave_protocol::{Error, PartySet, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;

fn config(parties: usize, preprocessing: Preprocessing<Gf2_64>) -> SpdzConfig<Gf2_64> {
    let packing = Packing::of::<Gf2_64>(64).expect("it is valid");
    SpdzConfig::new(parties, LookupMethod::MaskedTables, preprocessing, packing).expect("it is valid")
}

fn dealt(parties: usize) -> SpdzConfig<Gf2_64> {
    config(parties, Preprocessing::Dealt(&InsecureDealing))
}

/// All nodes in a session.
fn serve<T: Send>(
    config: &SpdzConfig<Gf2_64>,
    request: impl Fn(&mut Spdz<Gf2_64>, &mut dyn Net) -> Result<T> + Sync,
) -> Vec<T> {
    let nodes = run_parties(config.parties(), |net| {
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        request(&mut protocol, net)
    });
    nodes.into_iter().map(|node| node.expect("honest nodes finish")).collect()
}

fn check_client(config: &SpdzConfig<Gf2_64>, circuit: &Circuit, lanes: usize) {
    let outputs = serve(config, |protocol, net| {
        let output = client_computes(config, protocol, circuit, lanes, net)?;
        let message = protocol.reveal_to_client(&output, net)?;
        client_learns(config, &message, net)
    });
    let secrets = secrets_of(circuit, lanes);
    let expected = in_the_clear(circuit, &secrets.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for output in outputs {
        assert_eq!(output, expected, "{} among {}", circuit.name(), config.parties());
    }
}

#[test]
fn a_client_gives_a_masked_block_and_key_and_learns_what_the_cipher_says() {
    for (name, lanes, parties) in [("aes-128", 5, 2), ("3des-ede3", 3, 3), ("aes-256", 1, 4)] {
        let cipher = catalog::find(name).expect("the catalog has it");
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
            check_client(&dealt(parties), &circuit, lanes);
        }
    }
    let aes = catalog::find("aes-128").expect("the catalog has it").encrypt;
    check_client(&dealt(3), &aes, 300);
    let des = catalog::find("des").expect("the catalog has it").encrypt;
    check_client(&dealt(2), &des, 2);
}

#[test]
fn cells_of_every_width_pass_through_masks_and_to_clients() {
    for bits in 1..=8 {
        check_client(&dealt(3), &one_table(bits), 6);
    }
}

#[test]
fn a_client_learns_the_same_with_material_from_oblivious_transfer() {
    check_client(&config(2, Preprocessing::Mascot { expansion: 4 }), &one_table(4), 7);
}

/// A value that a client gave.
fn given(
    config: &SpdzConfig<Gf2_64>,
    protocol: &mut Spdz<Gf2_64>,
    blocks: &[u8],
    net: &mut dyn Net,
) -> Result<<Spdz<Gf2_64> as Session>::Shared> {
    let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
    let (mask, message) = protocol.mask_input(blocks.len(), net)?;
    let r = client_learns(config, &message, net)?;
    let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    protocol.unmask(&mask, 0, &masked, &circuit.inputs()[0])
}

#[test]
fn lanes_of_a_value_are_values_and_the_first_bytes_go_out_alone() {
    let config = dealt(3);
    let blocks = noise("blocks", 16 * 7);
    serve(&config, |protocol, net| {
        let value = given(&config, protocol, &blocks, net)?;
        let part = protocol.lanes(&value, 2..5);
        let message = protocol.reveal_to_client(&part, net)?;
        assert!(client_learns(&config, &message, net)? == blocks[32..80]);
        let mut all = Vec::new();
        for bytes in [0, 1, 15, 16, 17, 48] {
            let message = protocol.reveal_bytes_to_client(&part, bytes, net)?;
            assert!(client_learns(&config, &message, net)? == blocks[32..32 + bytes]);
            all.extend(message);
        }
        // One after another, as a chain of blocks sends them.
        assert_eq!(client_learns(&config, &all, net)?.len(), 1 + 15 + 16 + 17 + 48);
        assert!(matches!(protocol.reveal_bytes_to_client(&part, 49, net), Err(Error::Misuse(_))));
        Ok(())
    });
}

#[test]
fn masked_bytes_that_do_not_fit_are_refused() {
    let config = dealt(2);
    serve(&config, |protocol, net| {
        let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
        let [block, keys] = [0, 1].map(|i| &circuit.inputs()[i]);
        let (mask, _) = protocol.mask_input(400, net)?;
        for (at, len, port) in
            [(0, 17, block), (0, 0, block), (390, 16, block), (usize::MAX, 16, block), (0, 352, keys)]
        {
            let refused = protocol.unmask(&mask, at, &vec![0; len], port).map(drop);
            assert!(matches!(refused, Err(Error::Misuse(_))), "{at}, {len}");
        }
        protocol.unmask(&mask, 384, &[0; 16], block)?;
        protocol.unmask(&mask, 0, &[0; 176], keys).map(drop)
    });
}

/// Messages about one value of 40 bytes, two times, about another one, and about two elements.
fn messages(parties: usize) -> [Vec<Vec<u8>>; 4] {
    let config = dealt(parties);
    let nodes = serve(&config, |protocol, net| {
        let value = given(&config, protocol, &noise("value", 48), net)?;
        let other = given(&config, protocol, &noise("other", 48), net)?;
        let elements = protocol.elements(&protocol.lanes(&value, 0..2), net)?;
        Ok([
            protocol.reveal_bytes_to_client(&value, 40, net)?,
            protocol.reveal_bytes_to_client(&value, 40, net)?,
            protocol.reveal_bytes_to_client(&other, 40, net)?,
            protocol.reveal_elements(&elements, net)?,
        ])
    });
    [0, 1, 2, 3].map(|k| nodes.iter().map(|of_node| of_node[k].clone()).collect())
}

const FAILED: Error = Error::CheckFailed { what: "what the nodes sent to a client" };

#[test]
fn a_client_refuses_every_message_in_which_any_bit_is_changed() {
    for parties in [2, 3] {
        let (config, all) = (dealt(parties), PartySet::all(parties));
        let [value, _, _, elements] = messages(parties);
        assert_eq!(combined(&config, all, &value), Ok(noise("value", 48)[..40].to_vec()));
        assert_eq!(value[0].len(), 4 + 16 * (2 * 3 + 3));
        for node in 0..parties {
            for bit in 0..8 * value[node].len() {
                let mut changed = value.clone();
                changed[node][bit / 8] ^= 1 << (bit % 8);
                assert_eq!(combined(&config, all, &changed), Err(FAILED), "node {node}, bit {bit}");
            }
            for bit in 0..8 * elements[node].len() {
                let mut changed = elements.clone();
                changed[node][bit / 8] ^= 1 << (bit % 8);
                assert_eq!(combined_elements(&config, all, &changed), Err(FAILED), "node {node}, bit {bit}");
            }
        }
    }
}

#[test]
fn a_client_refuses_messages_that_are_cut_lengthened_swapped_or_replayed() {
    let (config, all) = (dealt(2), PartySet::all(2));
    let [first, second, other, elements] = messages(2);
    assert_eq!(combined(&config, all, &first), combined(&config, all, &second));
    for node in 0..2 {
        for len in 0..first[node].len() {
            let mut cut = first.clone();
            cut[node].truncate(len);
            assert_eq!(combined(&config, all, &cut), Err(FAILED), "{len}");
            let both = first.iter().map(|message| message[..len].to_vec()).collect::<Vec<_>>();
            assert!(len == 0 || combined(&config, all, &both) == Err(FAILED), "{len} of both");
        }
        for behind in [&[0][..], &[0; 4], &first[node]] {
            let mut longer = first.clone();
            longer[node].extend(behind);
            assert_eq!(combined(&config, all, &longer), Err(FAILED));
        }
        for replayed in [&second, &other, &elements] {
            let mut mixed = first.clone();
            mixed[node] = replayed[node].clone();
            assert_eq!(combined(&config, all, &mixed), Err(FAILED));
        }
        let twice = vec![first[node].clone(); 2];
        assert_eq!(combined(&config, all, &twice), Err(FAILED));
    }
    // Forty bytes are no elements.
    assert_eq!(combined_elements(&config, all, &first), Err(FAILED));
    // A length of no bytes, of other elements, and of more than there is memory.
    for text in [0u32, 32, 49, u32::MAX] {
        let text = first.iter().map(|message| [&text.to_le_bytes(), &message[4..]].concat());
        assert_eq!(combined(&config, all, &text.collect::<Vec<_>>()), Err(FAILED));
    }
    let messages: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
    assert!(matches!(config.combine(all, &messages[..1]), Err(Error::Misuse(_))));
    assert!(matches!(config.combine(PartySet::from_bits(0b1), &messages[..1]), Err(Error::Misuse(_))));
    assert!(matches!(config.combine(PartySet::all(3), &messages), Err(Error::Misuse(_))));
}

/// Where the parts of a message about three elements are.
const VALUES: std::ops::Range<usize> = 4..52;
const V: std::ops::Range<usize> = 52..68;
const PRODUCTS: std::ops::Range<usize> = 68..116;
const U: std::ops::Range<usize> = 116..132;
const RHO: std::ops::Range<usize> = 132..148;

/// A node adds to an element, and to all else what it would have to be if it knew rho, v or the value.
#[test]
fn a_node_that_changes_an_element_and_adjusts_the_rest_does_not_pass() {
    let (config, all) = (dealt(2), PartySet::all(2));
    let [honest, ..] = messages(2);
    let sum = |range: std::ops::Range<usize>| {
        let both = honest[0][range.clone()].iter().zip(&honest[1][range]);
        both.map(|(a, b)| a ^ b).collect::<Vec<u8>>()
    };
    let element = |bytes: &[u8]| Gf128::from_bytes(bytes[..16].try_into().expect("an element"));
    let add = |message: &mut [u8], at: usize, d: Gf128| {
        message[at..at + 16].iter_mut().zip(d.to_bytes()).for_each(|(byte, d)| *byte ^= d);
    };
    let right = noise("value", 48)[..40].to_vec();
    let (rho, v) = (element(&sum(RHO)), element(&sum(V)));
    for i in 0..300 {
        let random = |what: &str| element(&noise(&format!("{what} {i}"), 16));
        let (d, guess) = (random("difference"), random("guess"));
        // A guess at rho, and an error on the first element that fits it.
        let mut changed = honest.clone();
        add(&mut changed[0], VALUES.start, d);
        add(&mut changed[0], PRODUCTS.start, d * guess);
        assert_eq!(combined(&config, all, &changed), Err(FAILED));
        // Whoever knew rho would pass: so nothing else refuses it.
        add(&mut changed[0], PRODUCTS.start, d * guess + d * rho);
        assert!(combined(&config, all, &changed).is_ok_and(|value| value != right));
        // An error on rho that fits the elements, which a cheater may know: found by v, which it does not.
        let mut changed = honest.clone();
        add(&mut changed[0], RHO.start, d);
        for j in 0..3 {
            add(&mut changed[0], PRODUCTS.start + 16 * j, d * element(&sum(VALUES)[16 * j..]));
        }
        add(&mut changed[0], U.start, d * guess);
        assert_eq!(combined(&config, all, &changed), Err(FAILED));
        add(&mut changed[0], U.start, d * guess + d * v);
        assert_eq!(combined(&config, all, &changed), Ok(right.clone()));
    }
}

/// Each node's messages about a value are others every time, in every byte behind the length.
#[test]
fn messages_to_a_client_are_fresh_every_time() {
    for parties in [2, 3] {
        let [first, second, ..] = messages(parties);
        for (a, b) in first.iter().zip(&second) {
            let same = a[4..].iter().zip(&b[4..]).filter(|(a, b)| a == b).count();
            assert!(same < 12, "{same} of {} bytes are those of the last message", a.len() - 4);
        }
    }
}

#[test]
fn the_check_of_a_mask_opens_what_the_client_computes() {
    let config = dealt(3);
    let chi: [u8; 16] = noise("chi", 16).try_into().expect("sixteen");
    for len in [0, 1, 16, 40] {
        serve(&config, |protocol, net| {
            let (mask, message) = protocol.mask_input(len, net)?;
            let (blind, of_blind) = protocol.arithmetic().random_for_client(net)?;
            let r = client_learns(&config, &message, net)?;
            assert_eq!(r.len(), len);
            let blinds = client_hears(&of_blind, net)?;
            let r_0 = combined_elements(&config, net.members(), &blinds)?[0];
            assert_eq!(protocol.open_mask_check(&mask, &blind, chi, net)?, mask_check(&r, r_0, chi));
            let (two, _) = protocol.arithmetic().random_for_client(net)?;
            let two = Elements::join(&[&two, &two]);
            assert!(matches!(protocol.open_mask_check(&mask, &two, chi, net), Err(Error::Misuse(_))));
            Ok(())
        });
    }
}

fn total(protocol: &Spdz<Gf2_64>) -> Counts {
    let tally = protocol.tally();
    let mut total = tally.preprocessing;
    [tally.input, tally.online, tally.output].into_iter().for_each(|phase| total += phase);
    total
}

#[test]
fn bytes_triples_and_bits_are_those_documented() {
    let config = dealt(3);
    serve(&config, |protocol, net| {
        for blocks in [1, 2, 100] {
            let before = total(protocol);
            let (mask, message) = protocol.mask_input(16 * blocks as usize, net)?;
            let spent = total(protocol) - before;
            assert_eq!((spent.bits, spent.triples, spent.rounds), (128 * blocks, 3 * blocks + 5, 1 + 6));
            assert_eq!(message.len() as u64, 4 + 32 * blocks + 48);

            let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
            let value = protocol.unmask(&mask, 0, &noise("x", 16 * blocks as usize), &circuit.inputs()[0])?;
            let before = total(protocol);
            let message = protocol.reveal_to_client(&value, net)?;
            let spent = total(protocol) - before;
            assert_eq!((spent.bits, spent.triples, spent.rounds), (0, 3 * blocks + 5, 1 + 6));
            assert_eq!(message.len() as u64, 4 + 32 * blocks + 48);

            let before = total(protocol);
            protocol.elements(&value, net)?;
            let spent = total(protocol) - before;
            assert_eq!((spent.bits, spent.triples, spent.rounds), (128 * blocks, 0, 1));
        }
        Ok(())
    });
}
