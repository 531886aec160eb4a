//! What two nodes under scrambled tables do for clients, and with what they stored: right answers, and none
//! with a cheater.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::clients::{client_hears, client_learns, combined_elements, mask_check, noise};
use polyclave_cipher::{AnyMap, Cells, Cipher, Circuit, Direction, boolean, catalog, cleartext, compile};
use polyclave_field::Gf128;
use polyclave_protocol::catalog::{find, service};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::service::{Element, Elements, ServiceConfig, ServiceSession, Stored};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::spdz::{Preprocessing, Setup};
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::tinytable::{Served, ServedConfig, Shared};
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::faults::{Promise, Sweep};
use polyclave_protocol_lab::testkit::tamper::Fault;
use zeroize::Zeroizing;

type NodeSetup = Setup<polyclave_field::Gf2_64>;

fn dealt() -> ServedConfig {
    ServedConfig::new(Preprocessing::Dealt(&InsecureDealing)).expect("it is valid")
}

fn real() -> ServedConfig {
    ServedConfig::new(Preprocessing::Mascot { expansion: 2 }).expect("it is valid")
}

fn session(config: &ServedConfig, net: &mut dyn Net) -> Result<AgreedSession> {
    hello(&config.handshake(HandshakeParameters::new(2)), net)
}

/// Joins a session of its own.
fn join(config: &ServedConfig, setup: &NodeSetup, net: &mut dyn Net) -> Result<Served> {
    config.join(setup, session(config, net)?.stream(), net.members())
}

/// Both nodes in a session.
fn serve<T: Send>(request: impl Fn(&mut Served, &mut dyn Net) -> Result<T> + Sync) -> Vec<T> {
    let nodes = run_parties(2, |net| {
        let setup = dealt().setup(net)?;
        request(&mut join(&dealt(), &setup, net)?, net)
    });
    nodes.into_iter().map(|node| node.expect("honest nodes finish")).collect()
}

fn aes() -> Cipher {
    boolean::cipher("aes-128").expect("the catalog has it")
}

/// Blocks of 16 bytes from a client.
fn given(protocol: &mut Served, blocks: &[u8], net: &mut dyn Net) -> Result<Shared> {
    let circuit = compile(&aes().encrypt, protocol);
    let (mask, message) = protocol.mask_input(blocks.len(), net)?;
    let r = client_learns(&dealt(), &message, net)?;
    let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    protocol.unmask(&mask, 0, &masked, &circuit.inputs()[0])
}

fn learnt(protocol: &mut Served, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
    let message = protocol.reveal_elements(elements, net)?;
    let messages = client_hears(&message, net)?;
    combined_elements(&dealt(), net.members(), &messages)
}

fn field(elements: &[Element]) -> Vec<Gf128> {
    elements.iter().map(|element| Gf128::from_bytes(*element)).collect()
}

fn whole() -> Circuit {
    aes().circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts")
}

/// The block encrypted under the key, in the clear.
fn expected(block: &[u8], key: &[u8]) -> Vec<u8> {
    let cells = [block, key].map(|bytes| Cells::from_blocks(16, 8, bytes).expect("a block"));
    let circuit = catalog::find("aes-128").and_then(|c| c.circuit_with_key_schedule(Direction::Encrypt));
    let clear = compile(&circuit.expect("known"), &AnyMap);
    cleartext::run(&clear, 1, &cells).expect("they fit")[0].to_blocks().to_vec()
}

/// One block under a key, both from a client.
fn encrypted(protocol: &mut Served, block: &[u8], key: &[u8], net: &mut dyn Net) -> Result<Shared> {
    let value = given(protocol, &[block, key].concat(), net)?;
    let inputs = [0, 1].map(|i| protocol.lanes(&value, i..i + 1));
    let compiled = compile(&whole(), protocol);
    let batch = prepare(protocol, &compiled, 1, net)?;
    Ok(evaluate(protocol, &compiled, 1, &inputs.each_ref().map(Input::Shared), batch, net)?.remove(0))
}

#[test]
fn elements_are_those_of_the_blocks_and_compute_as_the_field_does() {
    serve(|protocol, net| {
        let blocks = noise("blocks", 16 * 12);
        let x = field(blocks.as_chunks().0);
        let value = given(protocol, &blocks, net)?;
        let all = protocol.elements(&value, net)?;
        let (a, b) = (all.part(0..6), all.part(6..12));
        assert_eq!(learnt(protocol, &all, net)?, blocks.as_chunks().0);
        let product = protocol.arithmetic().multiply_elements(&a, &b, net)?;
        let inner = protocol.arithmetic().inner_product(&a, &b, net)?;
        let joined = Elements::join(&[&product, &inner]);
        let mut expected: Vec<Gf128> = (0..6).map(|i| x[i] * x[6 + i]).collect();
        expected.push((0..6).map(|i| x[i] * x[6 + i]).sum());
        assert_eq!(field(&learnt(protocol, &joined, net)?), expected);
        let [zero, other] = [0, 1].map(|i| all.part(i..i + 1));
        let zero = protocol.arithmetic().add_public(&zero, &[blocks[..16].try_into().expect("sixteen")]);
        assert!(protocol.arithmetic().is_zero(&zero, net)? && !protocol.arithmetic().is_zero(&other, net)?);
        Ok(())
    });
}

#[test]
fn a_client_learns_the_bytes_that_it_asked_for_and_no_more() {
    serve(|protocol, net| {
        let blocks = noise("blocks", 48);
        let value = given(protocol, &blocks, net)?;
        for bytes in [1, 15, 16, 17, 48] {
            let message = protocol.reveal_bytes_to_client(&value, bytes, net)?;
            assert_eq!(client_learns(&dealt(), &message, net)?, blocks[..bytes]);
        }
        assert!(matches!(protocol.reveal_bytes_to_client(&value, 49, net), Err(Error::Misuse(_))));
        let last = protocol.lanes(&value, 2..3);
        let message = protocol.reveal_to_client(&last, net)?;
        assert_eq!(client_learns(&dealt(), &message, net)?, blocks[32..]);
        Ok(())
    });
}

/// A result and its element are stored in one session, and used in another under the same setup.
#[test]
fn what_was_stored_serves_in_later_sessions() {
    let (block, key) = (noise("block", 16), noise("key", 16));
    let learnt = run_parties(2, |net| {
        let setup = dealt().setup(net)?;
        let mut protocol = join(&dealt(), &setup, net)?;
        let output = encrypted(&mut protocol, &block, &key, net)?;
        let elements = protocol.elements(&output, net)?;
        protocol.check(net)?;
        let (stored, stored_elements) = (protocol.save(&output), protocol.save_elements(&elements));

        let mut later = join(&dealt(), &setup, net)?;
        let output = later.restore(&stored)?;
        let message = later.reveal_to_client(&output, net)?;
        let bytes = client_learns(&dealt(), &message, net)?;
        let restored = later.restore_elements(&stored_elements)?;
        assert_eq!(bytes, learnt(&mut later, &restored, net)?.as_flattened());
        assert!(later.restore(&stored_elements).is_err() && later.restore_elements(&stored).is_err());
        Ok(bytes)
    });
    assert!(learnt.into_iter().all(|learnt| learnt == Ok(expected(&block, &key))));
}

/// A node that changes a share, a tag or a key that it stored is found before anything goes to a client.
#[test]
fn a_changed_byte_on_the_disk_fails_the_check() {
    // Behind the header and the shape a byte for each bit, then tags and keys.
    let (share, tag, key) = (20, 20 + 128 + 8 * 9, -1i64);
    for at in [share, tag, key] {
        let outcomes = run_parties(2, |net| {
            let setup = dealt().setup(net)?;
            let mut protocol = join(&dealt(), &setup, net)?;
            let value = given(&mut protocol, &noise("block", 16), net)?;
            protocol.check(net)?;
            let mut stored = protocol.save(&value).to_vec();
            if net.me() == Party(1) {
                let at = at.rem_euclid(stored.len() as i64) as usize;
                stored[at] ^= 1;
            }
            let mut later = join(&dealt(), &setup, net)?;
            let value = later.restore(&stored)?;
            later.reveal_to_client(&value, net)
        });
        assert!(outcomes.iter().all(|o| matches!(o, Err(Error::CheckFailed { .. }))), "{at}: {outcomes:?}");
    }
}

/// Nothing goes to a client, or becomes an element, on openings that nobody has checked.
#[test]
fn what_rests_on_unchecked_openings_is_checked_first_and_refused_elsewhere() {
    run_parties(2, |net| {
        let setup = dealt().setup(net)?;
        let mut first = join(&dealt(), &setup, net)?;
        let value = encrypted(&mut first, &noise("block", 16), &noise("key", 16), net)?;
        let mut second = join(&dealt(), &setup, net)?;
        assert!(matches!(second.elements(&value, net).map(drop), Err(Error::Misuse(_))));
        assert!(matches!(second.reveal_to_client(&value, net), Err(Error::Misuse(_))));
        let before = first.tally().online.rounds;
        first.elements(&value, net)?;
        assert_eq!(first.tally().online.rounds, before + 1, "the check of tags");
        second.elements(&value, net)?;
        Ok(())
    })
    .into_iter()
    .for_each(|outcome| outcome.expect("honest nodes finish"));
}

/// Everything that a node does for a client, with the client; what it must come to, whatever is drawn.
fn requests(net: &mut dyn Net) -> Result<Vec<u8>> {
    let setup = dealt().setup(net)?;
    let mut protocol = join(&dealt(), &setup, net)?;
    let protocol = &mut protocol;
    let circuit = compile(&aes().encrypt, protocol);
    let (mask, message) = protocol.mask_input(32, net)?;
    let (blind, of_blind) = protocol.arithmetic().random_for_client(net)?;
    let r = client_learns(&dealt(), &message, net)?;
    let blinds = client_hears(&of_blind, net)?;
    let r_0 = combined_elements(&dealt(), net.members(), &blinds)?[0];
    let opened = protocol.open_mask_check(&mask, &blind, [3; 16], net)?;
    let mut out = vec![u8::from(opened == mask_check(&r, r_0, [3; 16]))];

    let blocks = noise("blocks", 32);
    let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    let value = protocol.unmask(&mask, 0, &masked, &circuit.inputs()[0])?;
    // One layer of ANDs: a whole cipher has its own sweeps.
    let product = boolean_and();
    let compiled = compile(&product, protocol);
    let batch = prepare(protocol, &compiled, 1, net)?;
    let inputs = [0, 1].map(|i| protocol.lanes(&value, i..i + 1));
    let both = evaluate(protocol, &compiled, 1, &inputs.each_ref().map(Input::Shared), batch, net)?.remove(0);
    let elements = protocol.elements(&both, net)?;
    out.extend(learnt(protocol, &elements, net)?.as_flattened());
    out.push(u8::from(protocol.arithmetic().is_zero(&elements, net)?));
    let message = protocol.reveal_to_client(&both, net)?;
    out.extend(client_learns(&dealt(), &message, net)?);
    Ok(out)
}

/// Bit by bit the AND of two blocks.
fn boolean_and() -> Circuit {
    let mut b = boolean::BooleanBuilder::new("and");
    let [x, y] = ["x", "y"].map(|name| b.input(name, 128, false));
    let both: Vec<_> = x.iter().zip(&y).map(|(x, y)| b.and(*x, *y)).collect();
    b.output("both", &both);
    b.finish()
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_value_at_a_client() {
    let blocks = noise("blocks", 32);
    let both: Vec<u8> = blocks[..16].iter().zip(&blocks[16..]).map(|(x, y)| x & y).collect();
    let right = [&[1][..], &both, &[0], &both].concat();
    assert!(run_parties(2, requests).into_iter().all(|outcome| outcome == Ok(right.clone())));
    for cheater in Party::all(2) {
        let mut sweep = Sweep { drop_every: 8, ..Sweep::new(2, cheater, Promise::RightOrAborted) };
        sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
        let swept = sweep.run(requests);
        println!("{cheater} cheats: {swept:?}");
        assert!(swept.faults > 4 * swept.messages, "{swept:?}");
    }
}

/// A node's items, handed out in order, or one of them changed.
#[derive(Default)]
struct BoundedStock {
    items: Mutex<BTreeMap<&'static str, Vec<u8>>>,
    cut: usize,
}

impl Stock for BoundedStock {
    fn take(&self, kind: &Kind, count: usize, _: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let mut shelf = self.items.lock();
        let items = shelf.entry(kind.name).or_default();
        let len = count * kind.item_bytes;
        if items.len() < len {
            return Err(Error::OutOfMaterial { detail: format!("{count} {}", kind.name) });
        }
        let rest = items.split_off(len);
        let mut taken = std::mem::replace(items, rest);
        taken.truncate(len - self.cut.min(len));
        Ok(Zeroizing::new(taken))
    }
}

/// One block from stock that real nodes have made, after one of them changed something of it.
fn from_stock(change: impl Fn(&mut BoundedStock, &Kind) + Sync) -> Vec<Result<Vec<u8>>> {
    let (block, key) = (noise("block", 16), noise("key", 16));
    run_parties(2, |net| {
        let config = real();
        let setup = config.setup(net)?;
        let mut making = session(&config, net)?;
        let mut shelf = BoundedStock::default();
        for kind in config.kinds(Party(0)) {
            // The key schedule takes a quarter of a block's ANDs, and its round keys as many masks again.
            let count = if kind.name == "triples" { 100 } else { 2 * kind.per_block };
            let items = config.make_material(&setup, making.stream(), &kind, count, net)?;
            shelf.items.lock().insert(kind.name, items.to_vec());
            if net.me() == Party(1) {
                change(&mut shelf, &kind);
            }
        }
        let stream = session(&config, net)?.stream();
        let mut protocol = config.join_stocked(&setup, stream, net.members(), Arc::new(shelf))?;
        let output = encrypted(&mut protocol, &block, &key, net)?;
        let message = protocol.reveal_to_client(&output, net)?;
        client_learns(&config, &message, net)
    })
}

#[test]
fn material_of_another_session_serves() {
    let right = expected(&noise("block", 16), &noise("key", 16));
    assert_eq!(from_stock(|_, _| ()), [Ok(right.clone()), Ok(right)]);
}

#[test]
fn items_that_do_not_belong_together_fail_the_check() {
    for name in ["triples of bits", "authenticated bits", "triples"] {
        let outcomes = from_stock(|shelf, kind| {
            if kind.name == name {
                let mut items = shelf.items.lock();
                items.get_mut(name).expect("it is there").rotate_left(kind.item_bytes);
            }
        });
        let failed = |o: &Result<Vec<u8>>| matches!(o, Err(Error::CheckFailed { .. } | Error::Closed { .. }));
        assert!(outcomes.iter().all(failed), "{name}: {outcomes:?}");
    }
    let cut = from_stock(|shelf, _| shelf.cut = 1);
    assert!(matches!(cut[1], Err(Error::System(_))), "{cut:?}");
}

/// A value and an element under one setup, and what they are under another.
fn carried(config: &ServedConfig, net: &mut dyn Net) -> Result<Vec<u8>> {
    let (old, new) = (config.setup(net)?, config.setup(net)?);
    let mut session = session(config, net)?;
    let mut before = config.join(&old, session.stream(), net.members())?;
    let value = given(&mut before, &noise("block", 16), net)?;
    let elements = before.elements(&value, net)?;
    before.check(net)?;
    let (stored, stored_elements) = (before.save(&value), before.save_elements(&elements));

    // As nodes do: what was stored of the setups, renewed.
    let restored = |setup: &NodeSetup, net: &mut dyn Net| {
        config.renew(&config.restore_setup(net.me(), &config.save_setup(setup))?, net)
    };
    let (old, new) = (restored(&old, net)?, restored(&new, net)?);
    let stored_values = [Stored::Value(&stored), Stored::Elements(&stored_elements)];
    let carried = config.refresh(&old, &new, session.stream(), &stored_values, net)?.stored;
    let [value, elements] = &carried[..] else { panic!("one for each") };
    assert_ne!(**value, *stored, "fresh shares");
    assert_ne!(**elements, *stored_elements, "fresh shares");
    let mut after = config.join(&new, session.stream(), net.members())?;
    let (value, elements) = (after.restore(value)?, after.restore_elements(elements)?);
    let message = after.reveal_to_client(&value, net)?;
    let mut out = client_learns(config, &message, net)?;
    out.extend(learnt(&mut after, &elements, net)?.as_flattened());
    Ok(out)
}

#[test]
fn values_and_elements_move_to_another_key() {
    for config in [real(), dealt()] {
        let right = [noise("block", 16), noise("block", 16)].concat();
        let moved = run_parties(2, |net| carried(&config, net));
        assert_eq!(moved, [Ok(right.clone()), Ok(right)]);
    }
}

#[test]
fn no_fault_in_any_message_moves_a_value_to_another() {
    for cheater in Party::all(2) {
        let sweep = Sweep { drop_every: 16, ..Sweep::new(2, cheater, Promise::RightOrAborted) };
        let swept = sweep.run(|net| carried(&dealt(), net));
        assert!(swept.faults > 3 * swept.messages, "{swept:?}");
    }
}

#[test]
fn cells_of_more_than_a_bit_are_refused() {
    serve(|protocol, net| {
        let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
        let (mask, _) = protocol.mask_input(16, net)?;
        assert!(matches!(protocol.unmask(&mask, 0, &[0; 16], &circuit.inputs()[0]), Err(Error::Misuse(_))));
        Ok(())
    });
}

#[test]
fn the_scheme_is_found_by_its_name_for_two_nodes() {
    let config = service("tinytable-linear64", 2, 1).expect("it serves");
    assert_eq!((config.name(), config.quorum()), ("tinytable-linear64", 2));
    for (parties, threshold) in [(3, 2), (2, 0), (1, 0), (0, 0)] {
        let refused = service("tinytable-linear64", parties, threshold);
        assert!(matches!(refused, Err(Error::Misuse(_))), "{parties}, {threshold}");
    }
    assert!(find("tinytable-linear64").expect("it is listed").serves());
}
