//! Clients who hold no share: what they send is masked, what they are sent is blinded.

use crate::clear::in_the_clear;
use crate::clients::{client_hears, client_learns, combined, combined_elements, mask_check, noise};
use crate::computing::{client_computes, one_table, secrets_of};
use crate::shamir_nodes::{Disks, KEY, cluster, config, serve, store_round_keys};
use polyclave_cipher::{Circuit, Direction, catalog, compile};
use polyclave_field::Gf256;
use polyclave_protocol::protocol::Session;
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::shamir::ShamirConfig;
use polyclave_protocol::{Error, Party, PartySet};

/// Everything comes from a client through one mask and goes back to it; `lanes` blocks under uniform keys.
fn check_client(config: &ShamirConfig, serving: PartySet, circuit: &Circuit, lanes: usize) {
    let secrets = secrets_of(circuit, lanes);
    let expected = in_the_clear(circuit, &secrets.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let disks = cluster(config, |_, _| Ok(Vec::new()));
    let outputs = serve(config, serving, &disks, |protocol, _, net| {
        let output = client_computes(config, protocol, circuit, lanes, net)?;
        let before = protocol.tally().output;
        let message = protocol.reveal_to_client(&output, net)?;
        let counted = protocol.tally().output - before;
        assert_eq!((counted.openings, counted.rounds), (message.len() as u64, 0));
        client_learns(config, &message, net)
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
            check_client(&config(3, 1), PartySet::all(3), &circuit, lanes);
        }
    }
    let aes = catalog::find("aes-128").expect("the catalog has it").encrypt;
    check_client(&config(4, 1), PartySet::from_bits(0b1101), &aes, 9);
    check_client(&config(5, 2), PartySet::all(5), &aes, 700);
    let des = catalog::find("des").expect("the catalog has it").encrypt;
    check_client(&config(5, 1), PartySet::from_bits(0b11001), &des, 2);
}

#[test]
fn cells_of_every_width_pass_through_masks_and_to_clients() {
    for bits in 1..=8u8 {
        check_client(&config(3, 1), PartySet::all(3), &one_table(bits), 6);
    }
}

#[test]
fn lanes_of_a_value_are_values() {
    let config = config(3, 1);
    let blocks = noise("blocks", 16 * 7);
    let disks = cluster(&config, |_, _| Ok(Vec::new()));
    let parts = serve(&config, PartySet::all(3), &disks, |protocol, _, net| {
        let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
        let (mask, message) = protocol.mask_input(blocks.len(), net)?;
        let r = client_learns(&config, &message, net)?;
        let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
        let value = protocol.unmask(&mask, 0, &masked, &circuit.inputs()[0])?;
        let part = protocol.lanes(&value, 2..5);
        let message = protocol.reveal_to_client(&part, net)?;
        client_learns(&config, &message, net)
    });
    assert!(parts.iter().all(|part| part[..] == blocks[32..80]));
}

#[test]
fn masked_bytes_that_do_not_fit_are_refused() {
    let config = config(3, 1);
    let disks = cluster(&config, |_, _| Ok(Vec::new()));
    serve(&config, PartySet::all(3), &disks, |protocol, _, net| {
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
fn messages_about(config: &ShamirConfig, disks: &Disks, serving: PartySet) -> Vec<Vec<u8>> {
    serve(config, serving, disks, |protocol, value, net| {
        let value = protocol.restore(value)?;
        protocol.reveal_to_client(&value, net)
    })
}

fn value_at(points: &[Gf256], values: &[u8], at: Gf256) -> Gf256 {
    Gf256::lagrange(points, at).into_iter().zip(values).map(|(l, y)| l * Gf256(*y)).sum()
}

#[test]
fn messages_to_a_client_are_fresh_polynomials_of_degree_2t_through_the_value() {
    let config = config(5, 1);
    let disks = cluster(&config, store_round_keys);
    let all = PartySet::all(5);
    let sessions = [(); 2].map(|()| messages_about(&config, &disks, all));
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
    let [whole, fewer] = [(all, &sessions[0]), (subset, &messages_about(&config, &disks, subset))].map(
        |(serving, messages)| {
            let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            config.combine(serving, &messages).expect("they fit").to_vec()
        },
    );
    assert_eq!(whole, fewer);
    assert_eq!(whole[..16], KEY);
}

#[test]
fn a_client_refuses_messages_that_do_not_belong_together() {
    let config = config(5, 1);
    let serving = PartySet::from_bits(0b11010);
    let combined = |messages: &[&[u8]]| config.combine(serving, messages).map(drop);
    assert_eq!(combined(&[&[1, 2], &[3, 4], &[5, 6]]), Ok(()));
    assert!(matches!(combined(&[&[1, 2], &[3, 4]]), Err(Error::Misuse(_))));
    assert!(matches!(combined(&[&[1], &[3, 4], &[5, 6]]), Err(Error::Peer { peer: Party(1), .. })));
    assert!(matches!(combined(&[&[1, 2], &[3, 4], &[]]), Err(Error::Peer { peer: Party(4), .. })));
    let two = PartySet::from_bits(0b11);
    assert!(matches!(config.combine(two, &[&[1], &[2]]), Err(Error::Misuse(_))));
    let stranger = PartySet::from_bits(0b100011);
    assert!(matches!(config.combine(stranger, &[&[1], &[2], &[3]]), Err(Error::Misuse(_))));
}

#[test]
fn a_wrong_share_of_one_node_fails_the_check_of_the_mask() {
    let config = config(4, 1);
    let disks = cluster(&config, |_, _| Ok(Vec::new()));
    let chi: [u8; 16] = noise("chi", 16).try_into().expect("sixteen");
    for len in [0, 16, 40] {
        serve(&config, PartySet::from_bits(0b1011), &disks, |protocol, _, net| {
            let (mask, message) = protocol.mask_input(len, net)?;
            let (blind, blind_message) = protocol.arithmetic().random_for_client(net)?;
            let mut masks = client_hears(&message, net)?;
            let blinds = client_hears(&blind_message, net)?;
            let r = combined(&config, net.members(), &masks)?;
            let r_0 = combined_elements(&config, net.members(), &blinds)?[0];
            let wrong = match len {
                0 => None,
                _ => {
                    masks[1][len - 1] ^= 1;
                    Some(combined(&config, net.members(), &masks)?)
                }
            };
            let opened = protocol.open_mask_check(&mask, &blind, chi, net)?;
            assert_eq!(opened, mask_check(&r, r_0, chi));
            assert!(wrong.is_none_or(|wrong| opened != mask_check(&wrong, r_0, chi)));
            Ok(())
        });
    }
}
