//! What nodes under authenticated sharing compute for clients, from what they stored: elements of GF(2^128),
//! and all of it with a cheater among them.

use crate::clients::{client_hears, client_learns, combined_elements, mask_check, noise};
use polyclave_cipher::{Cells, Direction, catalog, compile};
use polyclave_field::{Gf2_64, Gf128};
use polyclave_protocol::catalog::{find, service};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::service::{Element, Elements, ServiceConfig, ServiceSession};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, Setup, Shared, Spdz, SpdzConfig};
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::faults::{Promise, Sweep};
use polyclave_protocol_lab::testkit::tamper::Fault;

fn config(parties: usize) -> SpdzConfig<Gf2_64> {
    let packing = Packing::of::<Gf2_64>(64).expect("it is valid");
    SpdzConfig::new(parties, LookupMethod::MaskedTables, Preprocessing::Dealt(&InsecureDealing), packing)
        .expect("it is valid")
}

/// Joins a session of its own.
fn join(setup: &Setup<Gf2_64>, net: &mut dyn Net) -> Result<Spdz<Gf2_64>> {
    let config = config(net.parties());
    let mut session: AgreedSession = hello(&config.handshake(HandshakeParameters::new(net.parties())), net)?;
    config.join(setup, session.stream(), net.members())
}

/// All nodes in a session.
fn serve<T: Send>(
    parties: usize,
    request: impl Fn(&mut Spdz<Gf2_64>, &mut dyn Net) -> Result<T> + Sync,
) -> Vec<T> {
    let nodes = run_parties(parties, |net| {
        let setup = config(parties).setup(net)?;
        request(&mut join(&setup, net)?, net)
    });
    nodes.into_iter().map(|node| node.expect("honest nodes finish")).collect()
}

/// Blocks of 16 bytes from a client.
fn given(protocol: &mut Spdz<Gf2_64>, blocks: &[u8], net: &mut dyn Net) -> Result<Shared<Gf2_64>> {
    let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
    let (mask, message) = protocol.mask_input(blocks.len(), net)?;
    let r = client_learns(&config(net.parties()), &message, net)?;
    let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    protocol.unmask(&mask, 0, &masked, &circuit.inputs()[0])
}

fn learnt(protocol: &mut Spdz<Gf2_64>, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
    let message = protocol.reveal_elements(elements, net)?;
    let messages = client_hears(&message, net)?;
    combined_elements(&config(net.parties()), net.members(), &messages)
}

fn field(elements: &[Element]) -> Vec<Gf128> {
    elements.iter().map(|element| Gf128::from_bytes(*element)).collect()
}

#[test]
fn elements_are_those_of_the_blocks_and_compute_as_the_field_does() {
    for parties in [2, 3] {
        serve(parties, |protocol, net| {
            let blocks = noise("blocks", 16 * 12);
            let x = field(blocks.as_chunks().0);
            let value = given(protocol, &blocks, net)?;
            let all = protocol.elements(&value, net)?;
            let (a, b) = (all.part(0..6), all.part(6..12));
            assert_eq!((all.count(), a.count()), (12, 6));
            assert_eq!(learnt(protocol, &all, net)?, blocks.as_chunks().0);

            let public: Vec<Element> = noise("public", 16 * 12).as_chunks().0.to_vec();
            let p = field(&public);
            let product = protocol.arithmetic().multiply_elements(&a, &b, net)?;
            let inner = protocol.arithmetic().inner_product(&a, &b, net)?;
            let sums = a.weighted_sums(&public);
            let sum = a.add(&b);
            let shifted = protocol.arithmetic().add_public(&all, &public);
            let joined = Elements::join(&[&product, &inner, &sums, &sum, &shifted]);
            let mut expected: Vec<Gf128> = (0..6).map(|i| x[i] * x[6 + i]).collect();
            expected.push((0..6).map(|i| x[i] * x[6 + i]).sum());
            expected.extend(p.chunks(6).map(|w| w.iter().zip(&x).map(|(w, x)| *w * *x).sum::<Gf128>()));
            expected.extend((0..6).map(|i| x[i] + x[6 + i]));
            expected.extend((0..12).map(|i| x[i] + p[i]));
            assert_eq!(field(&learnt(protocol, &joined, net)?), expected);

            let too_few = protocol.arithmetic().multiply_elements(&a, &b.part(0..5), net).map(drop);
            assert!(matches!(too_few, Err(Error::Misuse(_))));
            Ok(())
        });
    }
}

#[test]
fn only_zero_is_zero() {
    serve(3, |protocol, net| {
        let blocks = [[0; 16], [1; 16]].concat();
        let value = given(protocol, &blocks, net)?;
        let elements = protocol.elements(&value, net)?;
        let [zero, other] = [0, 1].map(|i| elements.part(i..i + 1));
        assert!(protocol.arithmetic().is_zero(&zero, net)?);
        assert!(!protocol.arithmetic().is_zero(&other, net)?);
        let equal = protocol.arithmetic().add_public(&other, &[[1; 16]]);
        assert!(protocol.arithmetic().is_zero(&equal, net)?);
        for bit in [0, 63, 64, 127] {
            let near = protocol.arithmetic().add_public(&zero, &[(1u128 << bit).to_be_bytes()]);
            assert!(!protocol.arithmetic().is_zero(&near, net)?);
        }
        assert!(matches!(protocol.arithmetic().is_zero(&elements, net), Err(Error::Misuse(_))));
        Ok(())
    });
}

/// Round keys and elements are stored in one session, and used in another under the same setup.
#[test]
fn what_was_stored_serves_in_later_sessions() {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    let whole = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    let (block, key) = (noise("block", 16), noise("key", 16));
    let expected = run_parties(2, |net| {
        let setup = config(2).setup(net)?;
        let mut protocol = join(&setup, net)?;
        let value = given(&mut protocol, &[&block[..], &key].concat(), net)?;
        let inputs = [0, 1].map(|i| protocol.lanes(&value, i..i + 1));
        let compiled = compile(&whole, &protocol);
        let batch = prepare(&mut protocol, &compiled, 1, net)?;
        let inputs = inputs.each_ref().map(Input::Shared);
        // AES's inputs want no image that a block does not have.
        let output = evaluate(&mut protocol, &compiled, 1, &inputs, batch, net)?.remove(0);
        let elements = protocol.elements(&output, net)?;
        protocol.check(net)?;
        let (stored, stored_elements) = (protocol.save(&output), protocol.save_elements(&elements));

        let mut later = join(&setup, net)?;
        let output = later.restore(&stored)?;
        let message = later.reveal_to_client(&output, net)?;
        let learnt_bytes = client_learns(&config(2), &message, net)?;
        let restored = later.restore_elements(&stored_elements)?;
        let learnt_elements = learnt(&mut later, &restored, net)?;
        assert_eq!(learnt_bytes, learnt_elements.as_flattened());
        assert!(later.restore(&stored_elements).is_err() && later.restore_elements(&stored).is_err());
        Ok(learnt_bytes)
    });
    let cells = [&block, &key].map(|bytes| Cells::from_blocks(16, 8, bytes).expect("a block"));
    let clear = compile(&whole, &polyclave_cipher::AnyMap);
    let right = polyclave_cipher::cleartext::run(&clear, 1, &cells).expect("they fit")[0].to_blocks();
    assert!(expected.into_iter().all(|learnt| learnt.as_ref() == Ok(&right)));
}

/// A node that changes what it stored is found before anything goes to a client.
#[test]
fn a_changed_share_on_the_disk_fails_the_check() {
    for at in [-1i64, 26] {
        let outcomes = run_parties(2, |net| {
            let setup = config(2).setup(net)?;
            let mut protocol = join(&setup, net)?;
            let value = given(&mut protocol, &noise("block", 16), net)?;
            protocol.check(net)?;
            let mut stored = protocol.save(&value).to_vec();
            if net.me() == Party(1) {
                let at = at.rem_euclid(stored.len() as i64) as usize;
                stored[at] ^= 1;
            }
            let mut later = join(&setup, net)?;
            let value = later.restore(&stored)?;
            later.reveal_to_client(&value, net)
        });
        assert!(outcomes.iter().all(|o| matches!(o, Err(Error::CheckFailed { .. }))), "{at}: {outcomes:?}");
    }
}

#[test]
fn what_another_session_has_not_checked_is_refused() {
    run_parties(2, |net| {
        let setup = config(2).setup(net)?;
        let mut first = join(&setup, net)?;
        let value = given(&mut first, &noise("block", 16), net)?;
        let elements = first.elements(&value, net)?;
        let mut second = join(&setup, net)?;
        let own = second.arithmetic().random_for_client(net)?.0;
        let sum = own.add(&elements);
        let refused = |outcome: Result<()>| assert!(matches!(outcome, Err(Error::Misuse(_))));
        refused(second.reveal_elements(&sum, net).map(drop));
        refused(second.arithmetic().is_zero(&elements, net).map(drop));
        refused(second.arithmetic().multiply_elements(&own, &Elements::join(&[&elements]), net).map(drop));
        first.check(net)?;
        assert_eq!(learnt(&mut second, &elements, net)?.as_flattened(), noise("block", 16));
        Ok(())
    })
    .into_iter()
    .for_each(|outcome| outcome.expect("honest nodes finish"));
}

/// Everything that a node does for a client, with the client; what it must come to, whatever is drawn.
fn session(net: &mut dyn Net) -> Result<Vec<u8>> {
    let config = config(net.parties());
    let setup = config.setup(net)?;
    let mut protocol = join(&setup, net)?;
    let protocol = &mut protocol;
    let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);

    let (mask, message) = protocol.mask_input(32, net)?;
    let (blind, of_blind) = protocol.arithmetic().random_for_client(net)?;
    let r = client_learns(&config, &message, net)?;
    let blinds = client_hears(&of_blind, net)?;
    let r_0 = combined_elements(&config, net.members(), &blinds)?[0];
    let opened = protocol.open_mask_check(&mask, &blind, [3; 16], net)?;
    let mut out = vec![u8::from(opened == mask_check(&r, r_0, [3; 16]))];

    let blocks = noise("blocks", 32);
    let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    let value = protocol.unmask(&mask, 0, &masked, &circuit.inputs()[0])?;
    let elements = protocol.elements(&value, net)?;
    let [a, b] = [0, 1].map(|i| elements.part(i..i + 1));
    let product = protocol.arithmetic().multiply_elements(&a, &b, net)?;
    out.extend(learnt(protocol, &product, net)?.as_flattened());
    out.push(u8::from(protocol.arithmetic().is_zero(&a, net)?));
    let zero = protocol.arithmetic().add_public(&a, &[blocks[..16].try_into().expect("sixteen")]);
    out.push(u8::from(protocol.arithmetic().is_zero(&zero, net)?));
    let message = protocol.reveal_to_client(&value, net)?;
    out.extend(client_learns(&config, &message, net)?);
    Ok(out)
}

fn right() -> Vec<u8> {
    let blocks = noise("blocks", 32);
    let x = field(blocks.as_chunks().0);
    [&[1][..], &(x[0] * x[1]).to_bytes(), &[0, 1], &blocks].concat()
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_value_at_a_client() {
    for parties in [2, 3] {
        let honest = run_parties(parties, session);
        assert!(honest.into_iter().all(|outcome| outcome == Ok(right())));
        std::thread::scope(|scope| {
            for cheater in Party::all(parties) {
                scope.spawn(move || {
                    let promise = Promise::RightOrAborted;
                    let mut sweep = Sweep { drop_every: 16, ..Sweep::new(parties, cheater, promise) };
                    sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
                    let swept = sweep.run(session);
                    println!("{cheater} of {parties} cheats: {swept:?}");
                    assert!(swept.faults > 4 * swept.messages, "{swept:?}");
                });
            }
        });
    }
}

#[test]
fn the_scheme_is_found_by_its_name_with_all_nodes_but_one_tolerated() {
    let config = service("spdz-lt", 3, 2).expect("it serves");
    assert_eq!((config.name(), config.quorum()), ("spdz-lt", 3));
    for (parties, threshold) in [(3, 1), (2, 0), (1, 0), (17, 16), (0, 0)] {
        let refused = service("spdz-lt", parties, threshold);
        assert!(matches!(refused, Err(Error::Misuse(_))), "{parties}, {threshold}");
    }
    assert!(find("spdz-lt").expect("it is listed").serves());
}
