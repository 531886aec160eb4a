//! What three nodes under replicated sharing do for clients, and with what they stored, whether one of them
//! may cheat or not.

use polyclave_cipher::{Builder, Cells, Circuit, Direction, Matrix, aes, catalog, compile};
use polyclave_field::Gf128;
use polyclave_protocol::catalog::service;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::replicated::{Passive, ReplicatedActiveConfig, ReplicatedConfig, Setup, Shared};
use polyclave_protocol::service::{Element, Elements, ServiceConfig, ServiceSession, Stored};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::{Error, Party, PartySet, Result, shamir};
use polyclave_protocol_lab::testkit::faults::{Promise, Sweep};
use polyclave_protocol_lab::testkit::tamper::Fault;

use crate::clear::in_the_clear;
use crate::clients::{client_hears, client_learns, combined, combined_elements, mask_check, noise};
use crate::computing::{client_computes, one_table, secrets_of};

/// Either protocol: they differ in their types, and not in what they keep.
trait Nodes: ServiceConfig<Setup = Setup, Session: ServiceSession<Shared = Shared>> + Sized {
    fn session(&self, net: &mut dyn Net) -> Result<AgreedSession> {
        hello(&self.handshake(HandshakeParameters::new(3)), net)
    }

    /// Joins a session of its own.
    fn joined(&self, setup: &Setup, net: &mut dyn Net) -> Result<Self::Session> {
        self.join(setup, self.session(net)?.stream(), net.members())
    }

    /// All nodes in a session.
    fn serve<T: Send>(
        &self,
        request: impl Fn(&mut Self::Session, &mut dyn Net) -> Result<T> + Sync,
    ) -> Vec<T> {
        let nodes = run_parties(3, |net| {
            let setup = self.setup(net)?;
            request(&mut self.joined(&setup, net)?, net)
        });
        nodes.into_iter().map(|node| node.expect("honest nodes finish")).collect()
    }
}

impl Nodes for ReplicatedConfig<Passive> {}
impl Nodes for ReplicatedActiveConfig {}

fn passive() -> ReplicatedConfig<Passive> {
    ReplicatedConfig::default()
}

fn active() -> ReplicatedActiveConfig {
    ReplicatedActiveConfig::default()
}

/// Sixteen bytes in and out.
fn block() -> Circuit {
    let mut b = Builder::new("a block");
    let x = b.input("x", 16, 8);
    b.output("y", &x);
    b.finish()
}

/// Blocks of 16 bytes from a client.
fn given<S: Nodes>(
    config: &S,
    protocol: &mut S::Session,
    blocks: &[u8],
    net: &mut dyn Net,
) -> Result<Shared> {
    let circuit = compile(&block(), protocol);
    let (mask, message) = protocol.mask_input(blocks.len(), net)?;
    let r = client_learns(config, &message, net)?;
    let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    protocol.unmask(&mask, 0, &masked, &circuit.inputs()[0])
}

fn learnt<S: Nodes>(
    config: &S,
    protocol: &mut S::Session,
    elements: &Elements,
    net: &mut dyn Net,
) -> Result<Vec<Element>> {
    let message = protocol.reveal_elements(elements, net)?;
    combined_elements(config, net.members(), &client_hears(&message, net)?)
}

fn field(elements: &[Element]) -> Vec<Gf128> {
    elements.iter().map(|element| Gf128::from_bytes(*element)).collect()
}

/// Everything comes from a client through one mask and goes back to it.
fn check_client<S: Nodes>(config: &S, circuit: &Circuit, lanes: usize) {
    let secrets = secrets_of(circuit, lanes);
    let expected = in_the_clear(circuit, &secrets.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let outputs = config.serve(|protocol, net| {
        let output = client_computes(config, protocol, circuit, lanes, net)?;
        let message = protocol.reveal_to_client(&output, net)?;
        client_learns(config, &message, net)
    });
    assert!(outputs.iter().all(|output| *output == expected), "{}", circuit.name());
}

#[test]
fn a_client_gives_a_masked_block_and_key_and_learns_what_the_cipher_says() {
    for (name, lanes) in [("aes-128", 5), ("3des-ede3", 3), ("aes-256", 1)] {
        let cipher = catalog::find(name).expect("the catalog has it");
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
            check_client(&passive(), &circuit, lanes);
            check_client(&active(), &circuit, lanes);
        }
    }
}

#[test]
fn cells_of_every_width_pass_through_masks_to_disks_and_to_clients() {
    for bits in 1..=8u8 {
        check_client(&passive(), &one_table(bits), 6);
        check_client(&active(), &one_table(bits), 6);
    }
}

#[test]
fn elements_are_those_of_the_blocks_and_compute_as_the_field_does() {
    check_elements(&passive());
    check_elements(&active());
}

fn check_elements<S: Nodes>(config: &S) {
    config.serve(|protocol, net| {
        let blocks = noise("blocks", 16 * 12);
        let x = field(blocks.as_chunks().0);
        let value = given(config, protocol, &blocks, net)?;
        let before = protocol.tally().online.rounds;
        let all = protocol.elements(&value, net)?;
        assert_eq!(protocol.tally().online.rounds, before, "bytes are elements");
        let (a, b) = (all.part(0..6), all.part(6..12));
        assert_eq!(learnt(config, protocol, &all, net)?, blocks.as_chunks().0);
        let product = protocol.arithmetic().multiply_elements(&a, &b, net)?;
        let inner = protocol.arithmetic().inner_product(&a, &b, net)?;
        let joined = Elements::join(&[&product, &inner]);
        let mut expected: Vec<Gf128> = (0..6).map(|i| x[i] * x[6 + i]).collect();
        expected.push((0..6).map(|i| x[i] * x[6 + i]).sum());
        assert_eq!(field(&learnt(config, protocol, &joined, net)?), expected);
        assert_eq!(field(&protocol.arithmetic().open_elements(&joined, net)?), expected);
        assert!(protocol.arithmetic().open_elements(&all.part(0..0), net)?.is_empty());
        let [zero, other] = [0, 1].map(|i| all.part(i..i + 1));
        let zero = protocol.arithmetic().add_public(&zero, &[blocks[..16].try_into().expect("sixteen")]);
        assert!(protocol.arithmetic().is_zero(&zero, net)? && !protocol.arithmetic().is_zero(&other, net)?);
        assert!(matches!(protocol.arithmetic().multiply_elements(&a, &zero, net), Err(Error::Misuse(_))));
        Ok(())
    });
}

/// More products than are remembered before they are verified.
#[test]
fn many_products_of_elements_are_right() {
    active().serve(|protocol, net| {
        let a = protocol.arithmetic().random_elements(5000, net)?;
        let mut sum = a.part(0..1).add(&a.part(0..1));
        for _ in 0..3 {
            sum.clone_from(&sum.add(&protocol.arithmetic().inner_product(&a, &a, net)?));
        }
        // 15,000 products were verified in part: a proof takes five rounds, and a product one.
        assert!(protocol.tally().online.rounds + protocol.tally().preprocessing.rounds >= 3 + 5);
        // The third sum is that of one.
        let a = protocol.arithmetic().open_elements(&a, net)?;
        let expected: Gf128 = field(&a).into_iter().map(|x| x * x).sum();
        assert_eq!(field(&protocol.arithmetic().open_elements(&sum, net)?), [expected]);
        Ok(())
    });
}

#[test]
fn a_client_learns_the_bytes_that_it_asked_for_and_no_more() {
    check_bytes(&passive());
    check_bytes(&active());
}

fn check_bytes<S: Nodes>(config: &S) {
    config.serve(|protocol, net| {
        let blocks = noise("blocks", 48);
        let value = given(config, protocol, &blocks, net)?;
        for bytes in [0, 1, 15, 16, 17, 48] {
            let message = protocol.reveal_bytes_to_client(&value, bytes, net)?;
            assert_eq!(client_learns(config, &message, net)?, blocks[..bytes]);
        }
        assert!(matches!(protocol.reveal_bytes_to_client(&value, 49, net), Err(Error::Misuse(_))));
        let last = protocol.lanes(&value, 2..3);
        let both = protocol.join_lanes(&[&last, &protocol.lanes(&value, 0..1)]);
        assert!(protocol.can_join(&last, &both));
        // Several messages of a node one after another.
        let messages = [&last, &both].map(|value| protocol.reveal_to_client(value, net));
        let messages = messages.into_iter().collect::<Result<Vec<_>>>()?.concat();
        let expected = [&blocks[32..], &blocks[32..], &blocks[..16]].concat();
        assert_eq!(client_learns(config, &messages, net)?, expected);
        Ok(())
    });
}

#[test]
fn masked_bytes_that_do_not_fit_are_refused() {
    passive().serve(|protocol, net| {
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

/// What a value was made of and what is stored of it: a client sees neither.
#[test]
fn messages_to_a_client_are_fresh_shares_of_the_value() {
    let blocks = noise("blocks", 16 * 16);
    let nodes = passive().serve(|protocol, net| {
        let value = given(&passive(), protocol, &blocks, net)?;
        let stored = protocol.save(&value).to_vec();
        let messages = [protocol.reveal_to_client(&value, net)?, protocol.reveal_to_client(&value, net)?];
        Ok((stored, messages))
    });
    let differing = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(a, b)| a != b).count();
    for (stored, [first, second]) in &nodes {
        assert!(differing(first, second) > 230, "of 256 bytes nearly all are new");
        // The first share, byte by byte; the cells come one after another, and blocks one after another.
        let rows = &stored[stored.len() - 512..][..256];
        let blocks: Vec<u8> = (0..256).map(|i| rows[i % 16 * 16 + i / 16]).collect();
        assert!(differing(&blocks, first) > 230 && differing(&blocks, second) > 230);
    }
    for message in 0..2 {
        let sum: Vec<u8> =
            (0..256).map(|i| nodes.iter().fold(0, |sum, (_, messages)| sum ^ messages[message][i])).collect();
        assert_eq!(sum, blocks);
    }
}

#[test]
fn a_client_refuses_messages_that_do_not_belong_together() {
    let all = PartySet::all(3);
    let combined = |messages: &[&[u8]]| passive().combine(all, messages).map(drop);
    assert_eq!(combined(&[&[1, 2], &[3, 4], &[5, 6]]), Ok(()));
    assert!(matches!(combined(&[&[1, 2], &[3, 4]]), Err(Error::Misuse(_))));
    assert!(matches!(combined(&[&[1], &[3, 4], &[5, 6]]), Err(Error::Peer { peer: Party(0), .. })));
    assert!(matches!(combined(&[&[1, 2], &[3, 4], &[]]), Err(Error::Peer { peer: Party(2), .. })));
    let two = PartySet::all(2);
    assert!(matches!(passive().combine(two, &[&[1], &[2]]), Err(Error::Misuse(_))));
    assert!(matches!(active().combine(two, &[&[1], &[2]]), Err(Error::Misuse(_))));
    assert!(passive().combine_elements(all, &[&[1u8; 15][..]; 3]).is_err());
}

/// Whatever one node changes of what it sends, the client accepts nothing else, and suspects two nodes of
/// which it is one.
#[test]
fn a_client_of_nodes_that_may_cheat_finds_a_wrong_share_and_a_wrong_digest() {
    let blocks = noise("blocks", 32);
    let messages: Vec<Vec<u8>> = active().serve(|protocol, net| {
        let value = given(&active(), protocol, &blocks, net)?;
        let first = protocol.reveal_bytes_to_client(&value, 20, net)?;
        Ok([first, protocol.reveal_to_client(&value, net)?].concat())
    });
    let all = PartySet::all(3);
    let right = [&blocks[..20], &blocks].concat();
    assert_eq!(combined(&active(), all, &messages), Ok(right));
    for cheater in Party::all(3) {
        for at in 0..messages[0].len() {
            let mut changed = messages.clone();
            changed[cheater.index()][at] ^= 1;
            match combined(&active(), all, &changed) {
                Err(Error::OneOfTwo { first, second, .. }) => {
                    assert!([first, second].contains(&cheater) && first != second, "{cheater} {at}");
                }
                refused => assert!(matches!(refused, Err(Error::CheckFailed { .. })), "{cheater} {at}"),
            }
            changed[cheater.index()].truncate(at);
            assert!(combined(&active(), all, &changed).is_err(), "{cheater} {at}");
        }
    }
}

#[test]
fn a_wrong_share_of_one_node_fails_the_check_of_the_mask() {
    let chi: [u8; 16] = noise("chi", 16).try_into().expect("sixteen");
    for len in [0, 16, 40] {
        passive().serve(|protocol, net| {
            let (mask, message) = protocol.mask_input(len, net)?;
            let (blind, blind_message) = protocol.arithmetic().random_for_client(net)?;
            let mut masks = client_hears(&message, net)?;
            let blinds = client_hears(&blind_message, net)?;
            let r = combined(&passive(), net.members(), &masks)?;
            let r_0 = combined_elements(&passive(), net.members(), &blinds)?[0];
            let wrong = match len {
                0 => None,
                _ => {
                    masks[1][len - 1] ^= 1;
                    Some(combined(&passive(), net.members(), &masks)?)
                }
            };
            let opened = protocol.open_mask_check(&mask, &blind, chi, net)?;
            assert_eq!(opened, mask_check(&r, r_0, chi));
            assert!(wrong.is_none_or(|wrong| opened != mask_check(&wrong, r_0, chi)));
            Ok(())
        });
    }
}

/// One block under a key, both from a client.
fn encrypted<S: Nodes>(
    config: &S,
    protocol: &mut S::Session,
    block: &[u8],
    key: &[u8],
    net: &mut dyn Net,
) -> Result<Shared> {
    let value = given(config, protocol, &[block, key].concat(), net)?;
    let inputs = [0, 1].map(|i| protocol.lanes(&value, i..i + 1));
    let aes = catalog::find("aes-128").expect("known");
    let circuit = aes.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    let compiled = compile(&circuit, protocol);
    let batch = prepare(protocol, &compiled, 1, net)?;
    Ok(evaluate(protocol, &compiled, 1, &inputs.each_ref().map(Input::Shared), batch, net)?.remove(0))
}

/// A result and its element are stored in one session, and used in another under the same setup, which was
/// stored, too.
#[test]
fn what_was_stored_serves_in_later_sessions() {
    check_stored(&passive());
    check_stored(&active());
}

fn check_stored<S: Nodes>(config: &S) {
    let (block, key) = (noise("block", 16), noise("key", 16));
    let aes = catalog::find("aes-128").expect("known");
    let expected = in_the_clear(
        &aes.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts"),
        &[&block, &key],
    );
    let learnt = run_parties(3, |net| {
        let setup = config.setup(net)?;
        let mut protocol = config.joined(&setup, net)?;
        let output = encrypted(config, &mut protocol, &block, &key, net)?;
        let elements = protocol.elements(&output, net)?;
        protocol.check(net)?;
        let (stored, stored_elements) = (protocol.save(&output), protocol.save_elements(&elements));

        let setup = config.renew(&config.restore_setup(net.me(), &config.save_setup(&setup))?, net)?;
        let mut later = config.joined(&setup, net)?;
        let output = later.restore(&stored)?;
        let message = later.reveal_to_client(&output, net)?;
        let bytes = client_learns(config, &message, net)?;
        let restored = later.restore_elements(&stored_elements)?;
        assert_eq!(bytes, learnt(config, &mut later, &restored, net)?.as_flattened());
        assert!(later.restore(&stored_elements).is_err() && later.restore_elements(&stored).is_err());
        Ok(bytes)
    });
    assert!(learnt.into_iter().all(|learnt| learnt == Ok(expected.clone())));
}

/// What the nodes of one protocol have stored is of no use to those of the other: they would verify nothing
/// of it, or take what nobody has verified.
#[test]
fn what_one_of_the_protocols_stored_is_refused_by_the_other_and_by_other_nodes() {
    run_parties(3, |net| {
        let setup = passive().setup(net)?;
        let stored = passive().save_setup(&setup);
        assert!(active().restore_setup(net.me(), &stored).is_err());
        assert!(passive().restore_setup(Party((net.me().0 + 1) % 3), &stored).is_err());
        assert!(passive().restore_setup(Party(3), &stored).is_err());
        let mut protocol = passive().joined(&setup, net)?;
        let value = given(&passive(), &mut protocol, &noise("block", 16), net)?;
        let elements = protocol.elements(&value, net)?;
        let (value, elements) = (protocol.save(&value), protocol.save_elements(&elements));
        let setup = active().setup(net)?;
        let other = active().joined(&setup, net)?;
        assert!(other.restore(&value).is_err() && other.restore_elements(&elements).is_err());
        Ok(())
    })
    .into_iter()
    .for_each(|outcome| outcome.expect("honest nodes finish"));
}

/// A node changes a byte of what it stored, from the end, and all nodes use it. Which of them notice.
fn after_a_change(
    from_end: usize,
    of_elements: bool,
    request: impl Fn(&mut <ReplicatedActiveConfig as ProtocolConfig>::Session, &[u8], &mut dyn Net) -> Result<()>
    + Sync,
) -> [bool; 3] {
    let outcomes = run_parties(3, |net| {
        let setup = active().setup(net)?;
        let mut protocol = active().joined(&setup, net)?;
        let value = given(&active(), &mut protocol, &noise("block", 16), net)?;
        let mut stored = match of_elements {
            true => {
                protocol.elements(&value, net).map(|elements| protocol.save_elements(&elements).to_vec())?
            }
            false => protocol.save(&value).to_vec(),
        };
        if net.me() == Party(1) {
            let at = stored.len() - from_end;
            stored[at] ^= 1;
        }
        request(&mut active().joined(&setup, net)?, &stored, net)
    });
    [0, 1, 2].map(|party| outcomes[party].is_err())
}

/// A node that changes a share that it stored is found before it is multiplied, and by a client that it goes
/// to.
#[test]
fn a_changed_byte_on_the_disk_is_found() {
    // The last byte of each share.
    for from_end in [1, 17] {
        let by_client = after_a_change(from_end, false, |protocol, stored, net| {
            let value = protocol.restore(stored)?;
            let message = protocol.reveal_to_client(&value, net)?;
            client_learns(&active(), &message, net).map(drop)
        });
        let by_circuit = after_a_change(from_end, false, |protocol, stored, net| {
            let value = protocol.restore(stored)?;
            let compiled = compile(&one_lookup(), protocol);
            let batch = prepare(protocol, &compiled, 1, net)?;
            evaluate(protocol, &compiled, 1, &[Input::Shared(&value)], batch, net).map(drop)
        });
        let by_product = after_a_change(from_end, true, |protocol, stored, net| {
            let elements = protocol.restore_elements(stored)?;
            protocol.arithmetic().multiply_elements(&elements, &elements, net)?;
            protocol.check(net)
        });
        // Each share is that of one other node, too; the third one cannot know.
        for by in [by_client, by_circuit, by_product] {
            assert!(by[1] && (by[0] || by[2]), "{from_end}: {by:?}");
        }
    }
}

fn one_lookup() -> Circuit {
    let mut b = Builder::new("one lookup");
    let table = b.table(&std::sync::Arc::new(aes::s_box()));
    let x = b.input("x", 16, 8);
    let y = b.lookup(table, x[0]);
    b.output("y", &[y]);
    b.finish()
}

/// A client that tells the nodes different masked inputs is found before anything is multiplied, and learns
/// nothing.
#[test]
fn different_masked_inputs_at_the_nodes_are_found() {
    for other in Party::all(3) {
        let outcomes = active().serve(|protocol, net| {
            let compiled = compile(&one_lookup(), protocol);
            let (mask, _) = protocol.mask_input(16, net)?;
            let masked = [u8::from(net.me() == other); 16];
            let value = protocol.unmask(&mask, 0, &masked, &compiled.inputs()[0])?;
            let batch = prepare(protocol, &compiled, 1, net)?;
            Ok(evaluate(protocol, &compiled, 1, &[Input::Shared(&value)], batch, net).map(drop))
        });
        // The masked input goes to share 0, which two nodes have.
        let holds = |party: Party| party != Party(1);
        let differ = holds(other);
        for (party, outcome) in Party::all(3).zip(outcomes) {
            let is_found = matches!(outcome, Err(Error::OneOfTwo { .. }));
            assert_eq!(is_found, differ && holds(party), "{party}: {outcome:?}");
        }
    }
}

/// A value and an element under one setup, and what they are under another.
fn carried<S: Nodes>(config: &S, net: &mut dyn Net) -> Result<Vec<u8>> {
    let (old, new) = (config.setup(net)?, config.setup(net)?);
    let mut session = config.session(net)?;
    let mut before = config.join(&old, session.stream(), net.members())?;
    let value = given(config, &mut before, &noise("block", 16), net)?;
    let elements = before.elements(&value, net)?;
    before.check(net)?;
    let (stored, stored_elements) = (before.save(&value), before.save_elements(&elements));

    // As nodes do: what was stored of the setups, renewed.
    let restored = |setup: &Setup, net: &mut dyn Net| {
        config.renew(&config.restore_setup(net.me(), &config.save_setup(setup))?, net)
    };
    let (old, new) = (restored(&old, net)?, restored(&new, net)?);
    let stored_values = [Stored::Value(&stored), Stored::Elements(&stored_elements)];
    let carried = config.refresh(&old, &new, session.stream(), &stored_values, net)?.stored;
    let [value, elements] = &carried[..] else { panic!("one for each") };
    for (old, new) in [(&stored, value), (&stored_elements, elements)] {
        let (old, new) = (&old[old.len() - 32..], &new[new.len() - 32..]);
        assert!(old.iter().zip(new).filter(|(old, new)| old == new).count() < 8, "both shares are fresh");
    }
    let mut after = config.join(&new, session.stream(), net.members())?;
    let (value, elements) = (after.restore(value)?, after.restore_elements(elements)?);
    let message = after.reveal_to_client(&value, net)?;
    let mut out = client_learns(config, &message, net)?;
    out.extend(learnt(config, &mut after, &elements, net)?.as_flattened());
    Ok(out)
}

#[test]
fn values_and_elements_get_fresh_shares_and_stay_the_same() {
    let right = [noise("block", 16), noise("block", 16)].concat();
    for outcomes in
        [run_parties(3, |net| carried(&passive(), net)), run_parties(3, |net| carried(&active(), net))]
    {
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(right.clone())), "{outcomes:?}");
    }
}

#[test]
fn no_fault_in_any_message_moves_a_value_to_another() {
    for cheater in Party::all(3) {
        let sweep = Sweep { drop_every: 16, ..Sweep::new(3, cheater, Promise::RightOrAborted) };
        let swept = sweep.run(|net| carried(&active(), net));
        assert!(swept.messages > 20 && swept.faults > 3 * swept.messages, "{swept:?}");
    }
}

/// A node that lost a refresh, or whose disk was changed, is found in the next one. All nodes hear which
/// values do not fit, and between which two nodes.
#[test]
fn a_refresh_of_shares_that_do_not_fit_ends_at_all_nodes_and_says_which_values() {
    // By the party whose disk is damaged: the second share of party i is the first one of party i + 1.
    for damaged in Party::all(3) {
        let outcomes = run_parties(3, |net| {
            let setup = passive().setup(net)?;
            let mut session = passive().session(net)?;
            let mut protocol = passive().join(&setup, session.stream(), net.members())?;
            let value = given(&passive(), &mut protocol, &noise("block", 16), net)?;
            let sound = protocol.save(&value);
            let elements = protocol.elements(&value, net)?;
            let elements = protocol.save_elements(&elements);
            let mut stored = sound.to_vec();
            if net.me() == damaged {
                *stored.last_mut().expect("there are shares") ^= 1;
            }
            let stored = [
                Stored::Value(&sound),
                Stored::Value(&stored),
                Stored::Elements(&elements),
                Stored::Value(&stored),
            ];
            passive().refresh(&setup, &setup, session.stream(), &stored, net).map(drop)
        });
        let next = Party((damaged.0 + 1) % 3);
        for outcome in outcomes {
            match outcome {
                Err(Error::SharesDiffer { first, second, values }) => {
                    assert_eq!(((first, second), values), ((damaged, next), vec![1, 3]));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Everything that a node does for a client, with the client; what it must come to, whatever is drawn.
fn requests(net: &mut dyn Net) -> Result<Vec<u8>> {
    let config = active();
    let setup = config.setup(net)?;
    let mut protocol = config.joined(&setup, net)?;
    let protocol = &mut protocol;
    let (mask, message) = protocol.mask_input(32, net)?;
    let (blind, of_blind) = protocol.arithmetic().random_for_client(net)?;
    let r = client_learns(&config, &message, net)?;
    let blinds = client_hears(&of_blind, net)?;
    let r_0 = combined_elements(&config, net.members(), &blinds)?[0];
    let opened = protocol.open_mask_check(&mask, &blind, [3; 16], net)?;
    let mut out = vec![u8::from(opened == mask_check(&r, r_0, [3; 16]))];

    let blocks = noise("blocks", 32);
    let masked: Vec<u8> = blocks.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    let compiled = compile(&one_lookup(), protocol);
    let value = protocol.unmask(&mask, 0, &masked, &compiled.inputs()[0])?;
    let batch = prepare(protocol, &compiled, 2, net)?;
    let looked_up = evaluate(protocol, &compiled, 2, &[Input::Shared(&value)], batch, net)?.remove(0);
    let elements = protocol.elements(&value, net)?;
    let product = protocol.arithmetic().multiply_elements(&elements.part(0..1), &elements.part(1..2), net)?;
    out.push(u8::from(protocol.arithmetic().is_zero(&product, net)?));
    out.extend(learnt(&config, protocol, &product, net)?.as_flattened());
    let message = protocol.reveal_to_client(&looked_up, net)?;
    out.extend(client_learns(&config, &message, net)?);
    Ok(out)
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_value_at_a_client() {
    let blocks = noise("blocks", 32);
    let [x, y] = [&blocks[..16], &blocks[16..]].map(|block| block.try_into().expect("sixteen"));
    let product = (Gf128::from_bytes(x) * Gf128::from_bytes(y)).to_bytes();
    let looked_up = [blocks[0], blocks[16]].map(|x| aes::s_box().entries()[usize::from(x)]);
    let right = [&[1, 0][..], &product, &looked_up].concat();
    assert!(run_parties(3, requests).into_iter().all(|outcome| outcome == Ok(right.clone())));
    std::thread::scope(|scope| {
        for cheater in Party::all(3) {
            scope.spawn(move || {
                let mut sweep = Sweep { drop_every: 8, ..Sweep::new(3, cheater, Promise::RightOrAborted) };
                sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
                let swept = sweep.run(requests);
                println!("{cheater} cheats: {swept:?}");
                assert!(swept.messages > 40 && swept.faults > 4 * swept.messages, "{swept:?}");
            });
        }
    });
}

/// What rests on products that nobody has proven is proven before it goes to a client, and refused in other
/// sessions.
#[test]
fn what_rests_on_unproven_products_is_proven_first_and_refused_elsewhere() {
    run_parties(3, |net| {
        let setup = active().setup(net)?;
        let mut first = active().joined(&setup, net)?;
        let value = encrypted(&active(), &mut first, &noise("block", 16), &noise("key", 16), net)?;
        let elements = first.elements(&value, net)?;
        let product = first.arithmetic().multiply_elements(&elements, &elements, net)?;
        let mut second = active().joined(&setup, net)?;
        assert!(matches!(second.elements(&value, net).map(drop), Err(Error::Misuse(_))));
        assert!(matches!(second.reveal_to_client(&value, net), Err(Error::Misuse(_))));
        assert!(matches!(second.reveal_elements(&product, net), Err(Error::Misuse(_))));
        assert!(matches!(second.arithmetic().open_elements(&product, net), Err(Error::Misuse(_))));
        first.reveal_elements(&product, net)?;
        second.reveal_elements(&product, net)?;
        second.reveal_to_client(&value, net)?;
        Ok(())
    })
    .into_iter()
    .for_each(|outcome| outcome.expect("honest nodes finish"));
}

/// Two blocks go from replicated sharing to Shamir sharing among the same parties, without a message, and are
/// encrypted there.
#[test]
fn values_go_on_under_shamir_sharing_without_a_message() {
    check_conversion(&passive(), |protocol, value, views| protocol.to_shamir(value, views));
    check_conversion(&active(), |protocol, value, views| protocol.to_shamir(value, views));
}

fn check_conversion<S: Nodes>(
    config: &S,
    to_shamir: impl Fn(&S::Session, &Shared, &[Matrix]) -> Result<shamir::Shared> + Sync,
) {
    let (block, key) = (noise("block", 16), noise("key", 16));
    let aes = catalog::find("aes-128").expect("known");
    let circuit = aes.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    let once = in_the_clear(&circuit, &[&block, &key]);
    let twice = in_the_clear(&circuit, &[&once, &key]);
    let other = crate::shamir_nodes::config(3, 1);
    let outcomes = run_parties(3, |net| {
        let setup = config.setup(net)?;
        let mut protocol = config.joined(&setup, net)?;
        let once = encrypted(config, &mut protocol, &block, &key, net)?;
        let early = to_shamir(&protocol, &once, &[Matrix::identity(8)]).map(drop);
        assert_eq!(early.is_err(), config.verifies(), "only what is verified leaves the protocol");
        protocol.check(net)?;

        let setup = other.setup(net)?;
        let mut session = hello(&other.handshake(HandshakeParameters::new(3)), net)?;
        let mut after = other.join(&setup, session.stream(), net.members())?;
        let compiled = compile(&circuit, &after);
        let once = to_shamir(&protocol, &once, &compiled.inputs()[0].views())?;
        let key = Cells::from_blocks(16, 8, &key).expect("a block");
        let batch = prepare(&mut after, &compiled, 1, net)?;
        let inputs = [Input::Shared(&once), Input::Public(&key)];
        let twice = evaluate(&mut after, &compiled, 1, &inputs, batch, net)?.remove(0);
        let released = release(&mut after, &twice, Owner::All, net)?.expect("it is for all");
        Ok(released.trust_all_parties().to_blocks())
    });
    assert!(outcomes.iter().all(|outcome| *outcome == Ok(twice.clone())), "{outcomes:?}");
}

#[test]
fn both_are_found_by_their_names_for_three_nodes() {
    for name in ["replicated", "replicated-active"] {
        let config = service(name, 3, 1).expect("it serves");
        assert_eq!((config.name(), config.quorum(), config.keeps_stock()), (name, 3, false));
        for (parties, threshold) in [(3, 0), (3, 2), (2, 1), (4, 1), (5, 2), (0, 0)] {
            let refused = service(name, parties, threshold);
            assert!(matches!(refused, Err(Error::Misuse(_))), "{parties}, {threshold}");
        }
    }
}

/// As many lanes as fit, and never none.
#[test]
fn more_memory_takes_more_lanes() {
    active().serve(|protocol, _| {
        let compiled = compile(&catalog::find("aes-128").expect("known").encrypt, protocol);
        let [none, some, more] = [0, 1 << 20, 1 << 22].map(|bytes| protocol.lanes_within(&compiled, bytes));
        assert!(none == 1 && some > 100 && more >= 4 * some, "{none} {some} {more}");
        Ok(())
    });
}
