//! `replicated-active` as nodes serve with it: blocks go through garbled circuits from a stock, or through
//! rounds where there are none, and clients learn the same.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::hmac::{self, Additions, Sha2};
use polyclave_cipher::{Cells, Cipher, Circuit, CompiledPort, Direction, Port, catalog, compile, modes};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::replicated::FewRoundsConfig;
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::stock::{Kind, Purpose, Stock};
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;
use zeroize::Zeroizing;

use crate::clear::in_the_clear;
use crate::clients::{client_learns, noise};

/// A stock whose items each party takes in the same order.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<BTreeMap<Kind, VecDeque<u8>>>);

/// The same where the first party tells what is taken, as nodes do. It has told of circuits before.
pub(crate) struct Claims(pub(crate) Shelf);

impl Stock for Claims {
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        match net.me() {
            Party(0) => net.send(Party(1), &[0; 36])?,
            _ => net.recv(Party(0), &mut [0; 36])?,
        }
        self.0.take(kind, count, net)
    }

    fn take_if_there(
        &self,
        wanted: &[(Kind, usize)],
        _: &mut dyn Net,
    ) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
        Ok(self.0.give_all(wanted))
    }
}

impl Shelf {
    /// The first item of a kind becomes the last one.
    pub(crate) fn reorder(&self, name: &str) {
        let mut shelf = self.0.lock();
        let found = shelf.iter_mut().find(|(kind, _)| kind.name == name);
        let (kind, items) = found.unwrap_or_else(|| panic!("no {name}"));
        items.rotate_left(kind.item_bytes);
    }

    fn give_all(&self, wanted: &[(Kind, usize)]) -> Option<Vec<Zeroizing<Vec<u8>>>> {
        let has = |(kind, count): &(Kind, usize)| {
            self.0.lock().get(kind).is_some_and(|items| items.len() >= count * kind.item_bytes)
        };
        wanted
            .iter()
            .all(has)
            .then(|| wanted.iter().filter_map(|(kind, count)| self.give(kind, *count)).collect())
    }

    fn give(&self, kind: &Kind, count: usize) -> Option<Zeroizing<Vec<u8>>> {
        let mut shelf = self.0.lock();
        let items = shelf.entry(*kind).or_default();
        let bytes = count * kind.item_bytes;
        (items.len() >= bytes).then(|| Zeroizing::new(items.drain(..bytes).collect()))
    }
}

impl Stock for Shelf {
    fn take(&self, kind: &Kind, count: usize, _: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let none = || Error::OutOfMaterial { detail: format!("{count} {}", kind.name) };
        self.give(kind, count).ok_or_else(none)
    }

    fn take_if_there(
        &self,
        wanted: &[(Kind, usize)],
        _: &mut dyn Net,
    ) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
        Ok(self.give_all(wanted))
    }
}

pub(crate) fn session(config: &impl ServiceConfig, net: &mut dyn Net) -> Result<AgreedSession> {
    hello(&config.handshake(HandshakeParameters::new(config.parties())), net)
}

/// Joins a session with so many circuits in stock, and with what it cannot go on without in rounds, either.
pub(crate) fn joined<C: ServiceConfig>(
    config: &C,
    setup: &C::Setup,
    circuits: &[(&str, usize)],
    net: &mut dyn Net,
) -> Result<C::Session> {
    let shelf = shelf(config, setup, circuits, true, net)?;
    config.join_stocked(setup, session(config, net)?.stream(), net.members(), Arc::new(shelf))
}

/// So many circuits, and enough of what a session cannot go on without, in rounds or only in circuits.
pub(crate) fn shelf<C: ServiceConfig>(
    config: &C,
    setup: &C::Setup,
    circuits: &[(&str, usize)],
    in_rounds: bool,
    net: &mut dyn Net,
) -> Result<Shelf> {
    let shelf = Shelf::default();
    let kinds = config.kinds(net.me());
    assert!(circuits.iter().all(|(name, _)| kinds.iter().any(|kind| kind.name == *name)), "{circuits:?}");
    let of_des = circuits.iter().any(|(name, _)| name.contains("DES"));
    for kind in kinds {
        let count = match kind.purpose {
            Purpose::Circuits => match circuits.iter().find(|(name, _)| kind.name == *name) {
                Some((_, count)) => *count,
                None => continue,
            },
            Purpose::Inversions if in_rounds => 500,
            Purpose::Tables(6) if in_rounds && of_des => 800,
            Purpose::Surroundings if kind.item_bytes > 1000 => 20,
            Purpose::Surroundings if in_rounds => 8000,
            Purpose::Surroundings => 2000,
            _ => continue,
        };
        let made = config.make_material(setup, session(config, net)?.stream(), &kind, count, net)?;
        assert_eq!(made.len(), count * kind.item_bytes, "{}: of the size that is expected", kind.name);
        shelf.0.lock().insert(kind, made.iter().copied().collect());
    }
    Ok(shelf)
}

/// Some bytes of a client as the value of an input.
pub(crate) fn given<C: ServiceConfig>(
    config: &C,
    protocol: &mut C::Session,
    bytes: &[u8],
    port: &CompiledPort,
    net: &mut dyn Net,
) -> Result<<C::Session as Session>::Shared> {
    let (mask, message) = protocol.mask_input(bytes.len(), net)?;
    let r = client_learns(config, &message, net)?;
    let masked: Vec<u8> = bytes.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    protocol.unmask(&mask, 0, &masked, port)
}

/// All inputs come from a client. Returns what it learns, and how many rounds the evaluation took.
pub(crate) fn computed<C: ServiceConfig>(
    config: &C,
    protocol: &mut C::Session,
    circuit: &Circuit,
    lanes: usize,
    net: &mut dyn Net,
) -> Result<(Vec<u8>, u64)> {
    let (compiled, secrets) = (compile(circuit, protocol), secrets_of(circuit, lanes));
    let mut shared = Vec::new();
    for (port, secret) in compiled.inputs().iter().zip(&secrets) {
        shared.push(given(config, protocol, secret, port, net)?);
    }
    let before = protocol.tally();
    let batch = prepare(protocol, &compiled, lanes, net)?;
    let inputs: Vec<_> = shared.iter().map(Input::Shared).collect();
    let output = evaluate(protocol, &compiled, lanes, &inputs, batch, net)?.remove(0);
    let after = protocol.tally();
    let rounds = after.input.rounds + after.online.rounds - before.input.rounds - before.online.rounds;
    let message = protocol.reveal_to_client(&output, net)?;
    Ok((client_learns(config, &message, net)?, rounds))
}

/// Bytes for each input; round keys are those of a key, as nodes store them.
pub(crate) fn secrets_of(circuit: &Circuit, lanes: usize) -> Vec<Vec<u8>> {
    let mut secrets = crate::computing::secrets_of(circuit, lanes);
    let of_keys = |(port, _): &(&Port, &mut Vec<u8>)| port.name.starts_with("round_keys");
    for (port, secret) in circuit.inputs().iter().zip(&mut secrets).filter(of_keys) {
        let ciphers = ["aes-128", "aes-192", "aes-256", "3des-ede3", "3des-ede2", "des"].map(catalog::find);
        let of_port = |cipher: &Cipher| cipher.key_schedule.outputs()[0].cells.len() == port.cells.len();
        let cipher = ciphers.into_iter().flatten().find(of_port).expect("one has so many");
        *secret = in_the_clear(&cipher.key_schedule, &[&noise("key", cipher.key_bytes)]);
    }
    secrets
}

pub(crate) fn expected(circuit: &Circuit, lanes: usize) -> Vec<u8> {
    let secrets = secrets_of(circuit, lanes);
    in_the_clear(circuit, &secrets.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// What nodes compute of one block: the name of the material, and the circuit.
pub(crate) fn circuits() -> Vec<(&'static str, Circuit)> {
    let circuit = |cipher: &str, direction| {
        let cipher = catalog::find(cipher).expect("listed");
        cipher.circuit(direction).expect("it runs both ways").as_ref().clone()
    };
    let [short, long, des] =
        ["aes-128", "aes-256", "3des-ede3"].map(|name| catalog::find(name).expect("listed"));
    vec![
        ("garbled circuits of AES-128", circuit("aes-128", Direction::Encrypt)),
        ("garbled circuits of AES-128", modes::chain(&short)),
        ("garbled circuits of AES-128", modes::last_of_cmac(&short)),
        ("garbled circuits of AES-128 decryption", circuit("aes-128", Direction::Decrypt)),
        ("garbled circuits of AES-192", circuit("aes-192", Direction::Encrypt)),
        ("garbled circuits of AES-192 decryption", circuit("aes-192", Direction::Decrypt)),
        ("garbled circuits of AES-256", modes::last_of_cmac(&long)),
        ("garbled circuits of AES-256 decryption", circuit("aes-256", Direction::Decrypt)),
        ("garbled circuits of Triple DES", circuit("3des-ede3", Direction::Encrypt)),
        ("garbled circuits of Triple DES", modes::chain(&des)),
        ("garbled circuits of Triple DES decryption", circuit("3des-ede3", Direction::Decrypt)),
    ]
}

/// The names of compressions, and the hashes.
pub(crate) const HASHES: [(&str, Sha2); 2] =
    [("garbled compressions of SHA-256", Sha2::Sha256), ("garbled compressions of SHA-512", Sha2::Sha512)];

#[test]
fn blocks_of_every_cipher_take_two_rounds_with_circuits_and_more_without_and_are_the_same() {
    let of_hashes = HASHES.map(|(name, hash)| (name, hmac::block(hash, Additions::FewLevels)));
    for (name, circuit) in circuits().into_iter().chain(of_hashes) {
        for lanes in [1, 3] {
            let right = expected(&circuit, lanes);
            let outcomes = run_parties(3, |net| {
                let config = FewRoundsConfig::default();
                let setup = config.setup(net)?;
                let mut protocol = joined(&config, &setup, &[(name, lanes + 1)], net)?;
                let with = computed(&config, &mut protocol, &circuit, lanes, net)?;
                // One is left: too few for two lanes.
                let without = computed(&config, &mut protocol, &circuit, 2, net)?;
                Ok((with, without))
            });
            for outcome in outcomes {
                let ((with, rounds), (without, more)) = outcome.expect("honest nodes finish");
                assert_eq!(with, right, "{name}, {}", circuit.name());
                // Each lane counts its own two messages, which are on the way together.
                assert_eq!(rounds, 2 * lanes as u64, "{name}, {}", circuit.name());
                assert!(without == expected(&circuit, 2) && more >= 40, "{name}, {}: {more}", circuit.name());
            }
        }
    }
}

#[test]
fn a_public_block_needs_no_labels_of_three_components() {
    let aes = catalog::find("aes-128").expect("listed");
    let (block, key) = (noise("block", 2 * 16), secrets_of(&aes.encrypt, 1).remove(1));
    let right = in_the_clear(&aes.encrypt, &[&block, &key]);
    let outcomes = run_parties(3, |net| {
        let config = FewRoundsConfig::default();
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[("garbled circuits of AES-128", 2)], net)?;
        let compiled = compile(&aes.encrypt, &protocol);
        let keys = given(&config, &mut protocol, &key, &compiled.inputs()[1], net)?;
        let cells = Cells::from_blocks(16, 8, &block).expect("two blocks");
        let batch = prepare(&mut protocol, &compiled, 2, net)?;
        let inputs = [Input::Public(&cells), Input::Shared(&keys)];
        let output = evaluate(&mut protocol, &compiled, 2, &inputs, batch, net)?.remove(0);
        let message = protocol.reveal_to_client(&output, net)?;
        client_learns(&config, &message, net)
    });
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(right.clone())));
}

/// The state behind a block that everybody knows, in two lanes. Returns what the client learns, and the
/// rounds.
pub(crate) fn behind_a_known_block<C: ServiceConfig>(
    config: &C,
    (name, hash): (&str, Sha2),
    how: Additions,
    net: &mut dyn Net,
) -> Result<(Vec<u8>, u64)> {
    let setup = config.setup(net)?;
    let mut protocol = joined(config, &setup, &[(name, 2)], net)?;
    let compiled = compile(&hmac::known_block(hash, how), &protocol);
    let state = noise("state", 2 * hash.state_bytes());
    let state = given(config, &mut protocol, &state, &compiled.inputs()[1], net)?;
    let bits = 8 * hash.schedule_bytes();
    let schedules = Cells::from_blocks(bits, 1, &schedules(hash)).expect("whole bytes");
    let before = protocol.tally();
    let batch = prepare(&mut protocol, &compiled, 2, net)?;
    let inputs = [Input::Public(&schedules), Input::Shared(&state)];
    let output = evaluate(&mut protocol, &compiled, 2, &inputs, batch, net)?.remove(0);
    let after = protocol.tally();
    let rounds = after.input.rounds + after.online.rounds - before.input.rounds - before.online.rounds;
    let message = protocol.reveal_to_client(&output, net)?;
    Ok((client_learns(config, &message, net)?, rounds))
}

fn schedules(hash: Sha2) -> Vec<u8> {
    let blocks = noise("block", 2 * hash.block_bytes());
    blocks.chunks(hash.block_bytes()).flat_map(|block| hmac::schedule(hash, block)).collect()
}

pub(crate) fn states_behind_known_blocks(hash: Sha2) -> Vec<u8> {
    let circuit = hmac::known_block(hash, Additions::FewAnds);
    in_the_clear(&circuit, &[&schedules(hash), &noise("state", 2 * hash.state_bytes())])
}

#[test]
fn a_block_of_a_message_that_everybody_knows_goes_through_the_circuit_of_any_block() {
    for (hash, how) in [(HASHES[0], Additions::FewAnds), (HASHES[1], Additions::FewLevels)] {
        let outcomes =
            run_parties(3, |net| behind_a_known_block(&FewRoundsConfig::default(), hash, how, net));
        for outcome in outcomes {
            assert_eq!(outcome, Ok((states_behind_known_blocks(hash.1), 2 * 2)), "{hash:?} {how:?}");
        }
    }
}

/// Otherwise a circuit would compute another state than rounds.
#[test]
fn a_public_block_that_is_not_given_by_its_schedule_is_refused() {
    let (name, hash) = HASHES[0];
    let outcomes = run_parties(3, |net| {
        let config = FewRoundsConfig::default();
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[(name, 1)], net)?;
        let compiled = compile(&hmac::known_block(hash, Additions::FewAnds), &protocol);
        let state = noise("state", hash.state_bytes());
        let state = given(&config, &mut protocol, &state, &compiled.inputs()[1], net)?;
        let mut schedule = schedules(hash)[..hash.schedule_bytes()].to_vec();
        *schedule.last_mut().expect("it is not empty") ^= 1;
        let schedule = Cells::from_blocks(8 * hash.schedule_bytes(), 1, &schedule).expect("whole bytes");
        let batch = prepare(&mut protocol, &compiled, 1, net)?;
        let inputs = [Input::Public(&schedule), Input::Shared(&state)];
        Ok(evaluate(&mut protocol, &compiled, 1, &inputs, batch, net).err())
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(Some(Error::Misuse(_))))), "{outcomes:?}");
}

/// Bytes that each party sends with a public block, of which the key is shared.
pub(crate) fn sent_with_a_block<C: ServiceConfig>(
    config: fn() -> C,
    parties: usize,
    (name, cipher): (&'static str, &'static str),
) -> Vec<u64> {
    let ends: Vec<_> = mesh_with_timeout(parties, LATE).into_iter().map(Metered::new).collect();
    let meters: Vec<_> = ends.iter().map(Metered::meter).collect();
    let outcomes = run_over(ends, move |net| {
        let cipher = catalog::find(cipher).expect("listed");
        let config = config();
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[(name, 1)], net)?;
        let compiled = compile(&cipher.encrypt, &protocol);
        let key = secrets_of(&cipher.encrypt, 1).remove(1);
        let keys = given(&config, &mut protocol, &key, &compiled.inputs()[1], net)?;
        let port = &compiled.inputs()[0];
        let block = noise("block", cipher.block_bytes);
        let block = Cells::from_blocks(port.cells.len(), port.bits, &block).expect("a block");
        let batch = prepare(&mut protocol, &compiled, 1, net)?;
        let meter = &meters[net.me().index()];
        let before = meter.snapshot().payload_sent;
        let inputs = [Input::Public(&block), Input::Shared(&keys)];
        evaluate(&mut protocol, &compiled, 1, &inputs, batch, net)?;
        Ok(meter.snapshot().payload_sent - before)
    });
    outcomes.into_iter().map(|outcome| outcome.expect("honest nodes finish")).collect()
}

/// Labels of 128 and 64 bits of a block and of 448 and 168 bits of a key, and digests. docs/operate/cities.md
/// has the sums.
#[test]
fn with_a_block_go_the_labels_of_the_independent_bits_of_its_round_keys() {
    let sent = |circuit| sent_with_a_block(FewRoundsConfig::default, 3, circuit);
    assert_eq!(sent(("garbled circuits of AES-128", "aes-128")), [23_584, 14_368, 48]);
    assert_eq!(sent(("garbled circuits of Triple DES", "3des-ede3")), [9120, 5408, 40]);
}

/// Encrypts counters, and opens the sum of all blocks but the first with a text of the client. Returns what
/// the client learns of the first block, the sum, and the rounds.
fn encrypted(circuits: usize, net: &mut dyn Net) -> Result<(Vec<u8>, Vec<u8>, u64)> {
    let (aes, config) = (catalog::find("aes-128").expect("listed"), FewRoundsConfig::default());
    let setup = config.setup(net)?;
    let mut protocol = joined(&config, &setup, &[("garbled circuits of AES-128", circuits)], net)?;
    let compiled = compile(&aes.encrypt, &protocol);
    let key = secrets_of(&aes.encrypt, 1).remove(1);
    let keys = given(&config, &mut protocol, &key, &compiled.inputs()[1], net)?;
    let counters = Cells::from_blocks(16, 8, &noise("counters", COUNTERS * 16)).expect("whole blocks");
    let text = noise("text", (COUNTERS - 1) * 16);
    let (mask, message) = protocol.mask_input(text.len(), net)?;
    let r = client_learns(&config, &message, net)?;
    let masked: Vec<u8> = text.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    let before = protocol.tally().online.rounds;
    let text = (&mask, &masked[..]);
    let done = protocol.evaluate_and_open_sum(&compiled, &counters, &keys, text, net)?;
    let (first, sum) = done.expect("there is a stock, and few blocks");
    let rounds = protocol.tally().online.rounds - before;
    let message = protocol.reveal_to_client(&first, net)?;
    Ok((client_learns(&config, &message, net)?, sum, rounds))
}

/// Counters in [`encrypted`].
const COUNTERS: usize = 3;

/// The first block, and the ciphertext of the text.
fn encryption() -> (Vec<u8>, Vec<u8>) {
    let aes = catalog::find("aes-128").expect("listed");
    let key = secrets_of(&aes.encrypt, 1).remove(1);
    let mut blocks = in_the_clear(&aes.encrypt, &[&noise("counters", COUNTERS * 16), &key]);
    let keystream = blocks.split_off(16);
    let text = noise("text", (COUNTERS - 1) * 16);
    (blocks, keystream.iter().zip(&text).map(|(a, b)| a ^ b).collect())
}

#[test]
fn a_text_is_encrypted_and_the_sum_opened_in_the_two_messages_of_a_circuit() {
    let (first, ciphertext) = encryption();
    for outcome in run_parties(3, |net| Ok([encrypted(COUNTERS, net)?, encrypted(0, net)?])) {
        let [with, without] = outcome.expect("honest nodes finish");
        // Each lane counts its own two messages, which are on the way together.
        assert_eq!(with, (first.clone(), ciphertext.clone(), 2 * COUNTERS as u64));
        assert_eq!((&without.0, &without.1), (&first, &ciphertext));
        assert!(without.2 >= 40, "{}", without.2);
    }
}

/// The nodes take no other sum, and the client learns no other block.
#[test]
fn no_fault_in_any_message_makes_a_wrong_ciphertext_at_a_node() {
    let (first, ciphertext) = encryption();
    let right = [first, ciphertext].concat();
    let run = |net: &mut dyn Net| {
        let (first, sum, _) = encrypted(COUNTERS, net)?;
        Ok([first, sum].concat())
    };
    let honest = run_over(mesh_with_timeout(3, LATE), run);
    assert!(honest.into_iter().all(|outcome| outcome == Ok(right.clone())));
    for cheater in Party::all(3) {
        let mut sweep = Sweep { drop_every: 4, ..Sweep::new(3, cheater, Promise::RightOrAborted) };
        sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
        let swept = sweep.run(run);
        println!("{cheater} cheats: {swept:?}");
        assert!(swept.messages > 12 && swept.faults > 4 * swept.messages, "{swept:?}");
    }
}

/// The output of rounds that nobody has proven goes into a circuit: it is proven before.
#[test]
fn what_is_not_proven_is_proven_before_it_goes_into_a_circuit() {
    let aes = catalog::find("aes-128").expect("listed");
    let secrets = secrets_of(&aes.encrypt, 1);
    let once = in_the_clear(&aes.encrypt, &[&secrets[0], &secrets[1]]);
    let right = in_the_clear(&aes.encrypt, &[&once, &secrets[1]]);
    let outcomes = run_parties(3, |net| {
        let config = FewRoundsConfig::default();
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[("garbled circuits of AES-128", 1)], net)?;
        let compiled = compile(&aes.encrypt, &protocol);
        let block = given(&config, &mut protocol, &secrets[0], &compiled.inputs()[0], net)?;
        let keys = given(&config, &mut protocol, &secrets[1], &compiled.inputs()[1], net)?;
        let circuit = prepare(&mut protocol, &compiled, 1, net)?;
        let rounds = prepare(&mut protocol, &compiled, 1, net)?;
        let inputs = [Input::Shared(&block), Input::Shared(&keys)];
        let unproven = evaluate(&mut protocol, &compiled, 1, &inputs, rounds, net)?.remove(0);
        let inputs = [Input::Shared(&unproven), Input::Shared(&keys)];
        let output = evaluate(&mut protocol, &compiled, 1, &inputs, circuit, net)?.remove(0);
        let message = protocol.reveal_to_client(&output, net)?;
        client_learns(&config, &message, net)
    });
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(right.clone())));
}

/// Making circuits, a block and its key from a client, one evaluation, and the answer.
fn request(net: &mut dyn Net) -> Result<Vec<u8>> {
    let aes = catalog::find("aes-128").expect("listed");
    let config = FewRoundsConfig::default();
    let setup = config.setup(net)?;
    let mut protocol = joined(&config, &setup, &[("garbled circuits of AES-128", 2)], net)?;
    Ok(computed(&config, &mut protocol, &modes::chain(&aes), 2, net)?.0)
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_block_at_a_client() {
    let aes = catalog::find("aes-128").expect("listed");
    let right = expected(&modes::chain(&aes), 2);
    let honest = run_over(mesh_with_timeout(3, LATE), request);
    assert!(honest.into_iter().all(|outcome| outcome == Ok(right.clone())));
    for cheater in Party::all(3) {
        let mut sweep = Sweep { drop_every: 4, ..Sweep::new(3, cheater, Promise::RightOrAborted) };
        sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
        let swept = sweep.run(request);
        println!("{cheater} cheats: {swept:?}");
        assert!(swept.messages > 12 && swept.faults > 4 * swept.messages, "{swept:?}");
    }
}

/// The stock of one party does not follow a claim, and those of the others do.
#[test]
fn after_a_claim_that_failed_nothing_more_is_computed_or_released() {
    struct Refuses;
    impl Stock for Refuses {
        fn take(&self, _: &Kind, _: usize, _: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
            Err(Error::System("a claim was not followed".into()))
        }

        fn take_if_there(
            &self,
            _: &[(Kind, usize)],
            _: &mut dyn Net,
        ) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
            Err(Error::System("a claim was not followed".into()))
        }
    }
    let aes = catalog::find("aes-128").expect("listed");
    let outcomes = run_parties(3, |net| {
        let config = FewRoundsConfig::default();
        let setup = config.setup(net)?;
        let mut protocol =
            config.join_stocked(&setup, session(&config, net)?.stream(), net.members(), Arc::new(Refuses))?;
        let compiled = compile(&aes.encrypt, &protocol);
        let (mask, _) = protocol.mask_input(16, net)?;
        let value = protocol.unmask(&mask, 0, &[0; 16], &compiled.inputs()[0])?;
        assert!(matches!(prepare(&mut protocol, &compiled, 1, net).err(), Some(Error::System(_))));
        assert!(protocol.reveal_to_client(&value, net).is_err(), "it is over");
        Ok(())
    });
    outcomes.into_iter().for_each(|outcome| outcome.expect("all refuse"));
}

#[test]
fn every_kind_is_of_circuits_and_differs_between_parties_in_its_size_alone() {
    let [first, second, evaluator] = [0, 1, 2].map(|party| FewRoundsConfig::default().kinds(Party(party)));
    assert!(first.iter().all(|kind| kind.purpose == Purpose::Circuits && kind.per_block == 1));
    for ((a, b), c) in first.iter().zip(&second).zip(&evaluator) {
        assert!((a.name, a.purpose) == (b.name, b.purpose) && (b.name, b.purpose) == (c.name, c.purpose));
        println!("{}: {}, {}, {} bytes", a.name, a.item_bytes, b.item_bytes, c.item_bytes);
        // Tables are at the evaluator, labels of outputs at both garblers, and a key of masks at the second.
        assert_eq!(a.item_bytes + 16, b.item_bytes, "{a:?} {b:?}");
        // Key schedules have many outputs.
        assert!(
            c.item_bytes > if c.name.contains("schedule") { 2 } else { 20 } * b.item_bytes,
            "{b:?} {c:?}"
        );
    }
    assert!(!FewRoundsConfig::default().keeps_stock(), "no request needs them");
}
