//! Clients who hold no share: what they send is masked, what they are sent is blinded.

mod common;

use common::{Disks, KEY, cluster, in_the_clear, scheme, serve, store_round_keys};
use polyclave_cipher::{Builder, Cells, Circuit, Direction, Matrix, Table, catalog, compile};
use polyclave_field::{Gf128, Gf256};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Protocol};
use polyclave_protocol::service::{ServiceProtocol, ServiceScheme};
use polyclave_protocol::shamir::ShamirScheme;
use polyclave_protocol::{Error, Party, PartySet, Result};

/// Pseudorandom bytes that follow from a seed.
fn noise(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// All serving nodes' messages to a client: here every node plays the client too.
fn client_hears(message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let (me, members) = (net.me(), net.members());
    for p in members.iter().filter(|p| *p != me) {
        net.send(p, message)?;
    }
    let mut all = Vec::new();
    for p in members.iter() {
        let mut heard = message.to_vec();
        if p != me {
            net.recv(p, &mut heard)?;
        }
        all.push(heard);
    }
    Ok(all)
}

fn client_learns(scheme: &ShamirScheme, message: &[u8], net: &mut dyn Net) -> Result<Vec<u8>> {
    let messages = client_hears(message, net)?;
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    Ok(scheme.combine(net.members(), &messages)?.to_vec())
}

/// Everything comes from a client through one mask and goes back to it; `lanes` blocks under uniform keys.
fn check_client(scheme: &ShamirScheme, serving: PartySet, circuit: &Circuit, lanes: usize) {
    let ports = circuit.inputs();
    let secrets = ports.iter().map(|port| {
        let blocks = if port.uniform { 1 } else { lanes };
        let mut bytes = noise(&port.name, blocks * Cells::block_bytes(port.cells.len(), port.bits));
        let keep = if 8 % port.bits == 0 { 0xff } else { 0xff >> (8 - port.bits) };
        bytes.iter_mut().for_each(|byte| *byte &= keep);
        bytes
    });
    let secrets: Vec<Vec<u8>> = secrets.collect();
    let expected = in_the_clear(circuit, &secrets.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let disks = cluster(scheme, |_, _| Ok(Vec::new()));
    let outputs = serve(scheme, serving, &disks, |protocol, _, net| {
        let compiled = compile(circuit, protocol);
        let plain = secrets.concat();
        let (mask, message) = protocol.mask_input(plain.len(), net)?;
        let r = client_learns(scheme, &message, net)?;
        let masked: Vec<u8> = plain.iter().zip(&r).map(|(x, r)| x ^ r).collect();
        let mut at = 0;
        let mut shared = Vec::new();
        for (port, secret) in compiled.inputs().iter().zip(&secrets) {
            let value = protocol.unmask(&mask, at, &masked[at..at + secret.len()], port)?;
            // As it would come back from a disk.
            shared.push(protocol.restore(&protocol.save(&value))?);
            at += secret.len();
        }
        let batch = prepare(protocol, &compiled, lanes, net)?;
        let inputs: Vec<_> = shared.iter().map(Input::Shared).collect();
        let output = evaluate(protocol, &compiled, lanes, &inputs, batch, net)?.remove(0);
        let before = protocol.tally().output;
        let message = protocol.reveal_to_client(&output, net)?;
        let counted = protocol.tally().output - before;
        assert_eq!((counted.openings, counted.rounds), (message.len() as u64, 0));
        client_learns(scheme, &message, net)
    });
    for output in outputs {
        assert_eq!(output, expected, "{} by {serving}", circuit.name());
    }
}

#[test]
fn a_client_gives_a_masked_block_and_key_and_learns_what_the_cipher_says() {
    for (name, lanes) in [("aes-128", 5), ("3des-ede3", 3), ("aes-256", 1)] {
        let cipher = catalog::find(name).expect("the catalog has it");
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
            check_client(&scheme(3, 1), PartySet::all(3), &circuit, lanes);
        }
    }
    let aes = catalog::find("aes-128").expect("the catalog has it").encrypt;
    check_client(&scheme(4, 1), PartySet::from_bits(0b1101), &aes, 9);
    check_client(&scheme(5, 2), PartySet::all(5), &aes, 700);
    let des = catalog::find("des").expect("the catalog has it").encrypt;
    check_client(&scheme(5, 1), PartySet::from_bits(0b11001), &des, 2);
}

#[test]
fn cells_of_every_width_pass_through_masks_and_to_clients() {
    for bits in 1..=8u8 {
        let entries = (0..1u16 << bits).map(|x| (x * 37 + 11) as u8 & (0xff >> (8 - bits)));
        let mut b = Builder::new("one table");
        let table = b.table(&std::sync::Arc::new(Table::new("arbitrary", bits, bits, entries.collect())));
        let x = b.input("x", 5, bits);
        let y: Vec<_> = x.iter().map(|x| b.lookup(table, *x)).collect();
        let z = b.linear(vec![(y[0], Matrix::identity(bits)), (x[1], Matrix::identity(bits))], 1);
        b.output("y", &[y[0], y[1], z, x[3], y[4]]);
        check_client(&scheme(3, 1), PartySet::all(3), &b.finish(), 6);
    }
}

#[test]
fn lanes_of_a_value_are_values() {
    let scheme = scheme(3, 1);
    let blocks = noise("blocks", 16 * 7);
    let disks = cluster(&scheme, |_, _| Ok(Vec::new()));
    let parts = serve(&scheme, PartySet::all(3), &disks, |protocol, _, net| {
        let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
        let (mask, message) = protocol.mask_input(blocks.len(), net)?;
        let r = client_learns(&scheme, &message, net)?;
        let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
        let value = protocol.unmask(&mask, 0, &masked, &circuit.inputs()[0])?;
        let part = protocol.lanes(&value, 2..5);
        let message = protocol.reveal_to_client(&part, net)?;
        client_learns(&scheme, &message, net)
    });
    assert!(parts.iter().all(|part| part[..] == blocks[32..80]));
}

#[test]
fn masked_bytes_that_do_not_fit_are_refused() {
    let scheme = scheme(3, 1);
    let disks = cluster(&scheme, |_, _| Ok(Vec::new()));
    serve(&scheme, PartySet::all(3), &disks, |protocol, _, net| {
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

/// The messages of five nodes about one stored value, in a session of its own.
fn messages_about(scheme: &ShamirScheme, disks: &Disks, serving: PartySet) -> Vec<Vec<u8>> {
    serve(scheme, serving, disks, |protocol, value, net| {
        let value = protocol.restore(value)?;
        protocol.reveal_to_client(&value, net)
    })
}

fn value_at(points: &[Gf256], values: &[u8], at: Gf256) -> Gf256 {
    Gf256::lagrange(points, at).into_iter().zip(values).map(|(l, y)| l * Gf256(*y)).sum()
}

#[test]
fn messages_to_a_client_are_fresh_polynomials_of_degree_2t_through_the_value() {
    let scheme = scheme(5, 1);
    let disks = cluster(&scheme, store_round_keys);
    let all = PartySet::all(5);
    let sessions = [(); 2].map(|()| messages_about(&scheme, &disks, all));
    let points: Vec<Gf256> = (1..=5).map(Gf256).collect();
    let [mut beyond_t, mut changed] = [0, 0];
    for cell in 0..176 {
        let [first, second] = [0, 1].map(|s| sessions[s].iter().map(|m| m[cell]).collect::<Vec<u8>>());
        for y in [&first, &second] {
            for (point, message) in points.iter().zip(y).skip(3) {
                assert_eq!(value_at(&points[..3], &y[..3], *point), Gf256(*message), "the degree exceeds 2t");
            }
            beyond_t += usize::from(value_at(&points[..2], &y[..2], points[2]) != Gf256(y[2]));
        }
        assert_eq!(value_at(&points, &first, Gf256::ZERO), value_at(&points, &second, Gf256::ZERO));
        changed += (0..5).filter(|p| first[*p] != second[*p]).count();
    }
    // 352 leading coefficients and 880 differences, each zero with probability 1/256.
    assert!(beyond_t > 330, "{beyond_t} of 352 polynomials have a degree above t");
    assert!(changed > 840, "{changed} of 880 bytes changed from session to session");

    let subset = PartySet::from_bits(0b10101);
    let [whole, fewer] = [(all, &sessions[0]), (subset, &messages_about(&scheme, &disks, subset))].map(
        |(serving, messages)| {
            let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            scheme.combine(serving, &messages).expect("they fit").to_vec()
        },
    );
    assert_eq!(whole, fewer);
    assert_eq!(whole[..16], KEY);
}

#[test]
fn a_client_refuses_messages_that_do_not_belong_together() {
    let scheme = scheme(5, 1);
    let serving = PartySet::from_bits(0b11010);
    let combined = |messages: &[&[u8]]| scheme.combine(serving, messages).map(drop);
    assert_eq!(combined(&[&[1, 2], &[3, 4], &[5, 6]]), Ok(()));
    assert!(matches!(combined(&[&[1, 2], &[3, 4]]), Err(Error::Misuse(_))));
    assert!(matches!(combined(&[&[1], &[3, 4], &[5, 6]]), Err(Error::Peer { peer: Party(1), .. })));
    assert!(matches!(combined(&[&[1, 2], &[3, 4], &[]]), Err(Error::Peer { peer: Party(4), .. })));
    let two = PartySet::from_bits(0b11);
    assert!(matches!(scheme.combine(two, &[&[1], &[2]]), Err(Error::Misuse(_))));
    let stranger = PartySet::from_bits(0b100011);
    assert!(matches!(scheme.combine(stranger, &[&[1], &[2], &[3]]), Err(Error::Misuse(_))));
}

/// chi^1 r_1 + chi^2 r_2 .. + r_0, as a client computes it.
fn mask_check(r: &[u8], blind: [u8; 16], chi: [u8; 16]) -> [u8; 16] {
    let chi = Gf128::from_bytes(chi);
    let (mut sum, mut power) = (Gf128::from_bytes(blind), Gf128::ONE);
    for bytes in r.chunks(16) {
        let mut element = [0; 16];
        element[..bytes.len()].copy_from_slice(bytes);
        power *= chi;
        sum += power * Gf128::from_bytes(element);
    }
    sum.to_bytes()
}

#[test]
fn a_wrong_share_of_one_node_fails_the_check_of_the_mask() {
    let scheme = scheme(4, 1);
    let disks = cluster(&scheme, |_, _| Ok(Vec::new()));
    let chi: [u8; 16] = noise("chi", 16).try_into().expect("sixteen");
    for len in [0, 16, 40] {
        serve(&scheme, PartySet::from_bits(0b1011), &disks, |protocol, _, net| {
            let (mask, message) = protocol.mask_input(len, net)?;
            let (blind, blind_message) = protocol.mask_blind(net)?;
            let mut masks = client_hears(&message, net)?;
            let blinds = client_hears(&blind_message, net)?;
            let combined = |messages: &[Vec<u8>]| {
                let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
                scheme.combine(net.members(), &messages).map(|r| r.to_vec())
            };
            let r = combined(&masks)?;
            let blinds: Vec<&[u8]> = blinds.iter().map(Vec::as_slice).collect();
            let r_0 = scheme.combine_elements(net.members(), &blinds)?[0];
            let wrong = match len {
                0 => None,
                _ => {
                    masks[1][len - 1] ^= 1;
                    Some(combined(&masks)?)
                }
            };
            let opened = protocol.open_mask_check(&mask, blind, chi, net)?;
            assert_eq!(opened, mask_check(&r, r_0, chi));
            assert!(wrong.is_none_or(|wrong| opened != mask_check(&wrong, r_0, chi)));
            Ok(())
        });
    }
}
