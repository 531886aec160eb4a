//! Shamir sharing as nodes serve with it: any 2t + 1 of them, from what they stored, for clients who hold no share.

use polyclave_cipher::{
    AnyMap, Builder, Cells, Circuit, Direction, Matrix, Table, catalog, cleartext, compile,
    compile_with_views,
};
use polyclave_field::{Gf128, Gf256};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{run_members, run_parties};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, Scheme};
use polyclave_protocol::service::{ServiceProtocol, ServiceScheme, Visitor, with_scheme};
use polyclave_protocol::session::{Terms, hello};
use polyclave_protocol::shamir::{Inversion, Shamir, ShamirScheme, Structure};
use polyclave_protocol::{Error, Party, PartySet, Result};

fn scheme(parties: usize, threshold: usize) -> ShamirScheme {
    let structure = Structure::new(parties, threshold).expect("it is valid");
    ShamirScheme { structure, inversion: Inversion::CarriedSquares }
}

/// Pseudorandom bytes that follow from a seed.
fn noise(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// What the disk of each node holds: its setup, and the value it put there.
type Disks = Vec<(Vec<u8>, Vec<u8>)>;

/// All nodes set up; what `store` returns goes to their disks.
fn cluster(
    scheme: &ShamirScheme,
    store: impl Fn(&mut Shamir, &mut dyn Net) -> Result<Vec<u8>> + Sync,
) -> Disks {
    let nodes = run_parties(scheme.parties(), |net| {
        let setup = scheme.set_up(net)?;
        let mut session = hello(&scheme.terms(Terms::new(scheme.parties())), net)?;
        let mut protocol = scheme.join(&setup, session.stream(), net.members())?;
        let value = store(&mut protocol, net)?;
        Ok((scheme.save_setup(&setup).to_vec(), value))
    });
    nodes.into_iter().map(|node| node.expect("honest nodes finish")).collect()
}

/// Some nodes serve from their disks, in a new session.
fn serve<T: Send>(
    scheme: &ShamirScheme,
    serving: PartySet,
    disks: &Disks,
    request: impl Fn(&mut Shamir, &[u8], &mut dyn Net) -> Result<T> + Sync,
) -> Vec<T> {
    let nodes = run_members(scheme.parties(), serving, |net| {
        let (setup, value) = &disks[net.me().index()];
        let setup = scheme.restore_setup(net.me(), setup)?;
        let mut session = hello(&scheme.terms(Terms::new(scheme.parties())), net)?;
        let mut protocol = scheme.join(&setup, session.stream(), net.members())?;
        request(&mut protocol, value, net)
    });
    nodes.into_iter().map(|node| node.expect("honest nodes finish")).collect()
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

fn sets_of(parties: usize, members: usize) -> impl Iterator<Item = PartySet> {
    (0..1u16 << parties).map(PartySet::from_bits).filter(move |set| set.len() >= members)
}

const KEY: [u8; 16] = *b"sixteen key byte";
const BLOCKS: &[u8; 32] = b"two blocks that somebody encrypt";

/// All nodes make the round keys of AES-128 together and store them.
fn store_round_keys(protocol: &mut Shamir, net: &mut dyn Net) -> Result<Vec<u8>> {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    let views = compile(&cipher.encrypt, protocol).inputs()[1].views();
    let schedule = compile_with_views(&cipher.key_schedule, protocol, |_| views.clone());
    let batch = prepare(protocol, &schedule, 1, net)?;
    let key = Cells::from_blocks(16, 8, &KEY).expect("one block");
    let key = if net.me() == Party(0) { Input::Mine(&key) } else { Input::From(Party(0)) };
    let round_keys = evaluate(protocol, &schedule, 1, &[key], batch, net)?.remove(0);
    Ok(protocol.save(&round_keys).to_vec())
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

fn in_the_clear(circuit: &Circuit, inputs: &[&[u8]]) -> Vec<u8> {
    let compiled = compile(circuit, &AnyMap);
    let cells = circuit.inputs().iter().zip(inputs).map(|(port, bytes)| {
        Cells::from_blocks(port.cells.len(), port.bits, bytes).expect("whole blocks of narrow cells")
    });
    let cells: Vec<Cells> = cells.collect();
    let lanes = cells[0].lanes();
    cleartext::run(&compiled, lanes, &cells).expect("the inputs fit")[0].to_blocks()
}

#[test]
fn any_2t_plus_1_or_more_nodes_encrypt_under_round_keys_that_all_stored() {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    let circuit = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    let expected = in_the_clear(&circuit, &[BLOCKS, &KEY]);
    for (n, t) in [(5, 1), (5, 2), (3, 1), (7, 2)] {
        let scheme = scheme(n, t);
        let disks = cluster(&scheme, store_round_keys);
        for serving in sets_of(n, 2 * t + 1).filter(|set| n < 7 || set.len() == 5) {
            let outputs = serve(&scheme, serving, &disks, encrypt_with_stored);
            assert_eq!(outputs.len(), serving.len());
            assert!(outputs.iter().all(|output| *output == expected), "n = {n}, t = {t}: {serving}");
        }
    }
}

/// Masked tables, products by resharing, openings of powers: each among some of the nodes.
#[test]
fn every_inversion_and_masked_tables_run_with_absent_nodes() {
    let serving = PartySet::from_bits(0b11001);
    for inversion in Inversion::ALL {
        let scheme = ShamirScheme { inversion, ..scheme(5, 1) };
        let disks = cluster(&scheme, |protocol, net| store_round_keys(protocol, net));
        let outputs = serve(&scheme, serving, &disks, encrypt_with_stored);
        assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]), "{inversion}");
    }
    let cipher = catalog::find("des").expect("the catalog has it");
    check_client(&scheme(5, 1), serving, &cipher.encrypt, 2);
}

#[test]
fn inputs_and_outputs_of_single_nodes_pass_among_those_who_serve() {
    let scheme = scheme(5, 1);
    let serving = PartySet::from_bits(0b10110);
    let disks = cluster(&scheme, |_, _| Ok(Vec::new()));
    let outputs = serve(&scheme, serving, &disks, |protocol, _, net| {
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
    let scheme = scheme(5, 2);
    let disks = cluster(&scheme, |_, _| Ok(Vec::new()));
    let joined = |bits: u16, connected: u16| {
        let outcomes = run_members(5, PartySet::from_bits(connected), |net| {
            let setup = scheme.restore_setup(net.me(), &disks[net.me().index()].0)?;
            let mut session = hello(&scheme.terms(Terms::new(5)), net)?;
            scheme.join(&setup, session.stream(), PartySet::from_bits(bits)).map(drop)
        });
        outcomes.into_iter().next().expect("somebody took part")
    };
    assert!(matches!(joined(0b01111, 0b01111), Err(Error::Misuse(_))), "four of five, where five are needed");
    assert!(matches!(joined(0b11110, 0b11111), Err(Error::Misuse(_))), "party 1 joins without being counted");
    assert!(matches!(joined(0b101111, 0b11111), Err(Error::Misuse(_))), "there is no party 6");
    assert_eq!(joined(0b11111, 0b11111), Ok(()));
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
        let (mask, message) = protocol.mask_input(plain.len())?;
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
        let before = polyclave_protocol::protocol::Protocol::tally(protocol).output;
        let message = protocol.reveal_to_client(&output, net)?;
        let counted = polyclave_protocol::protocol::Protocol::tally(protocol).output - before;
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
        let (mask, message) = protocol.mask_input(blocks.len())?;
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
    serve(&scheme, PartySet::all(3), &disks, |protocol, _, _| {
        let circuit = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
        let [block, keys] = [0, 1].map(|i| &circuit.inputs()[i]);
        let (mask, _) = protocol.mask_input(400)?;
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
        power = power * chi;
        sum = sum + power * Gf128::from_bytes(element);
    }
    sum.to_bytes()
}

#[test]
#[ignore = "needs elements"]
fn a_wrong_share_of_one_node_fails_the_check_of_the_mask() {
    let scheme = scheme(4, 1);
    let disks = cluster(&scheme, |_, _| Ok(Vec::new()));
    let chi: [u8; 16] = noise("chi", 16).try_into().expect("sixteen");
    for len in [0, 16, 40] {
        serve(&scheme, PartySet::from_bits(0b1011), &disks, |protocol, _, net| {
            let (mask, message) = protocol.mask_input(len)?;
            let (blind, blind_message) = protocol.mask_blind()?;
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

struct Name;

impl Visitor for Name {
    type Output = (&'static str, usize);

    fn visit<S: ServiceScheme>(self, scheme: S) -> Result<Self::Output> {
        Ok((scheme.name(), scheme.least_servers()))
    }
}

#[test]
fn protocols_are_found_by_name_and_unknown_names_list_the_known() {
    assert_eq!(with_scheme("shamir", 5, 1, Name), Ok(("shamir", 3)));
    assert!(matches!(with_scheme("shamir", 3, 2, Name), Err(Error::Misuse(_))));
    let unknown = with_scheme("spdz", 3, 1, Name);
    assert!(matches!(&unknown, Err(Error::Misuse(text)) if text.contains("one of shamir")), "{unknown:?}");
}
