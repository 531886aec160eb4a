//! Clients that deal the mask of their first input: short messages go to the nodes in one step and come back
//! whole, and nodes that were dealt different things compute nothing.

use polyclave_api::{End, MESSAGE, Mode, Operation, Reply, Request, Step, Use};
use polyclave_client::Error;
use polyclave_node::Cheat;
use polyclave_protocol::dealt::DealtMask;
use polyclave_protocol::{Party, PartySet};

use crate::common::active::start_cheating;
use crate::common::messages::{ecb, gcm, open, seal, ungcm};
use crate::common::oracle::Oracle;
use crate::common::raw::{Ending, Raw, request, use_of};
use crate::common::{TestCluster, data, key, name_for};
use polyclave_client::Padding;

const NAME: &str = "dealt";

fn start(protocol: &str) -> TestCluster {
    let mut cluster = TestCluster::define_with(protocol, 3, 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    for mode in [Mode::Gcm, Mode::Ecb] {
        cluster.client().import(key(&name_for(NAME, mode), "aes-128", &[mode]), &data(16)).expect("imported");
    }
    cluster
}

/// A mask for three nodes, of which each two have a component in common.
fn deal() -> DealtMask {
    let components: Vec<PartySet> =
        (0..3).map(|j| [Party(j), Party((j + 2) % 3)].into_iter().collect()).collect();
    DealtMask::draw(&components).expect("the system has randomness")
}

fn encrypt() -> Operation {
    use_of(NAME, Use::GcmEncrypt { additional: Vec::new(), nonce: None })
}

/// A request whose first step is under a mask of this client.
fn dealt_request(mask: &DealtMask, text: &[u8]) -> Request {
    let masked = text.iter().zip(mask.mask(text.len()).iter()).map(|(t, m)| t ^ m).collect();
    let first = Some(Step::Message { masked });
    Request { dealt: mask.commitments(), ..request(encrypt(), first) }
}

fn tell(raw: &mut Raw, node: usize, request: &Request, seeds: &[u8]) {
    raw.tell(node, request);
    raw.tell_bytes(node, &(seeds.len() as u32).to_le_bytes());
    raw.tell_bytes(node, seeds);
}

/// Tells nodes something, and looks how they ended it, and that they go on serving.
fn attack(cluster: &TestCluster, attack: impl FnOnce(&mut Raw)) -> Vec<Ending> {
    let mut raw = Raw::call(cluster);
    attack(&mut raw);
    let endings = raw.endings();
    assert!(endings.iter().all(|ending| !ending.gave_data()), "{endings:?}");
    let again = gcm(&cluster.client(), &name_for(NAME, Mode::Gcm), b"", b"and afterwards");
    again.expect("they go on serving");
    endings
}

#[test]
fn short_messages_go_in_one_step_and_are_those_of_nodes_that_draw_all_masks() {
    let cluster = start("replicated");
    let (client, others) = (cluster.client(), TestCluster::shared());
    let (by_steps, name) = (others.client(), name_for(NAME, Mode::Gcm));
    by_steps.import(key(&name, "aes-128", &[Mode::Gcm]), &data(16)).expect("imported");
    for len in [0, 1, 15, 16, 17, 7 * 16, 7 * 16 + 1, MESSAGE - 1, MESSAGE, MESSAGE + 1] {
        for (from, to) in [(&client, &by_steps), (&by_steps, &client), (&client, &client)] {
            let mut message = gcm(from, &name, b"to", &data(len)).expect("encrypted");
            assert_eq!(message.len(), 12 + len + 16);
            assert_eq!(ungcm(to, &name, b"to", &message).expect("authentic"), data(len), "{len}");
            let whole = |message: &[u8]| to.key(&name)?.gcm().aad(b"to").decrypt(message);
            assert_eq!(whole(&message).expect("authentic")[..], data(len), "{len}");
            message[12] ^= 1;
            assert!(matches!(whole(&message), Err(Error::Unauthentic(_))), "{len}");
        }
        let sealed = seal(&client, &name, &data(len)).expect("sealed");
        assert_eq!(open(&client, &name, &sealed).expect("opened"), data(len), "{len}");
    }
    let blocks = ecb(&client, &name_for(NAME, Mode::Ecb), Padding::None, &data(300_000 & !15));
    assert!(blocks.expect("encrypted") == Oracle::new("aes-128", &data(16)).ecb(&data(300_000 & !15)));
}

#[test]
fn nodes_that_were_dealt_different_things_compute_nothing() {
    let cluster = start("replicated-active");
    let (mask, other) = (deal(), deal());
    let honest = dealt_request(&mask, b"a message");

    let mut raw = Raw::call(&cluster);
    (0..3).for_each(|node| tell(&mut raw, node, &honest, &mask.seeds_of(Party(node as u8))));
    for reply in raw.replies() {
        assert!(matches!(reply, Reply::Accepted { mask, .. } if mask.is_empty()), "there is one");
    }
    let opened: Vec<Vec<u8>> = raw
        .replies()
        .into_iter()
        .map(|reply| match reply {
            Reply::Data { opened, .. } => opened,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(opened.iter().all(|of_node| *of_node == opened[0] && of_node.len() == 9), "{opened:?}");
    drop(raw);

    for victim in 0..3 {
        let party = Party(victim as u8);
        // Other seeds than the commitments say.
        let request = Request { id: [victim as u8 + 1; 16], ..honest.clone() };
        let endings = attack(&cluster, |raw| {
            for node in 0..3 {
                let of = if node == victim { &other } else { &mask };
                tell(raw, node, &request, &of.seeds_of(Party(node as u8)));
            }
        });
        let message = endings[victim].message();
        assert!(message.contains("a seed does not fit its commitment"), "{message}");

        // Other commitments, which fit these seeds, and the same text under both masks.
        let request = dealt_request(&mask, b"a message");
        let different = Request { id: request.id, ..dealt_request(&other, b"a message") };
        let endings = attack(&cluster, |raw| {
            for node in (0..3).filter(|node| *node != victim) {
                tell(raw, node, &request, &mask.seeds_of(Party(node as u8)));
            }
            tell(raw, victim, &different, &other.seeds_of(party));
        });
        assert!(endings.iter().any(|ending| ending.message().contains("Disagreement")), "{endings:?}");
        assert!(endings.iter().all(|ending| ending.replies.is_empty()), "{endings:?}");
    }
}

#[test]
fn a_mask_is_dealt_for_a_first_step_under_it_and_for_no_other() {
    let cluster = start("replicated-active");
    let mask = deal();
    let (text, dealt) = (vec![1; 16], mask.commitments());
    let masked = || Some(Step::Masked { data: text.clone(), next: 0, end: End::No });
    let by_ecb = || use_of(NAME, Use::EcbEncrypt { mask: 16, tweak: Vec::new() });
    let another_way = "deals a mask in another way";
    let requests: Vec<(&str, Request, &str)> = vec![
        ("no mask", request(by_ecb(), masked()), "for a first step under it"),
        (
            "no first step",
            Request { dealt: dealt.clone(), ..request(by_ecb(), None) },
            "for a first step under it",
        ),
        (
            "another step",
            Request { dealt: dealt.clone(), ..request(encrypt(), Some(Step::Tag)) },
            "for a first step under it",
        ),
        (
            "too few commitments",
            Request { dealt: dealt[..2].to_vec(), ..request(by_ecb(), masked()) },
            another_way,
        ),
        (
            "a use without masks",
            Request { dealt: dealt.clone(), ..request(encrypt(), masked()) },
            "does not belong here",
        ),
        (
            "an empty message",
            Request {
                dealt: dealt.clone(),
                ..request(encrypt(), Some(Step::Message { masked: Vec::new() }))
            },
            "in one step",
        ),
        (
            "a long message",
            Request {
                dealt: dealt.clone(),
                ..request(encrypt(), Some(Step::Message { masked: vec![0; MESSAGE + 1] }))
            },
            "in one step",
        ),
    ];
    for (what, request, expected) in requests {
        let endings = attack(&cluster, |raw| {
            for node in 0..3 {
                match request.dealt.is_empty() {
                    true => raw.tell(node, &request),
                    false => tell(raw, node, &request, &mask.seeds_of(Party(node as u8))),
                }
            }
        });
        assert!(endings.iter().all(|ending| ending.message().contains(expected)), "{what}: {endings:?}");
    }
    let cut = Request { dealt: dealt.clone(), ..request(by_ecb(), masked()) };
    let endings = attack(&cluster, |raw| {
        (0..3).for_each(|node| tell(raw, node, &cut, &mask.seeds_of(Party(node as u8))[1..]));
    });
    assert!(endings.iter().all(|ending| ending.message().contains(another_way)), "{endings:?}");

    // A whole message later, under a mask that nobody dealt.
    let endings = attack(&cluster, |raw| {
        raw.tell_all(&request(encrypt(), None));
        raw.replies();
        raw.tell_all(&Step::Message { masked: vec![1; 16] });
    });
    assert!(endings.iter().all(|ending| ending.message().contains("nobody has dealt")), "{endings:?}");
}

#[test]
fn under_other_protocols_the_nodes_draw_all_masks() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    let mask = deal();
    let how = use_of("k", Use::EcbEncrypt { mask: 16, tweak: Vec::new() });
    let first = Some(Step::Masked { data: vec![1; 16], next: 0, end: End::No });
    let request = Request { dealt: mask.commitments(), ..request(how, first) };
    let mut raw = Raw::call(&cluster);
    (0..3).for_each(|node| tell(&mut raw, node, &request, &mask.seeds_of(Party(node as u8))));
    for ending in raw.endings() {
        assert!(ending.message().contains("the nodes draw all masks"), "{ending:?}");
    }
}

#[test]
fn a_ciphertext_that_one_node_tells_otherwise_is_not_taken() {
    let mut cluster = start("replicated-active");
    for cheater in 0..3 {
        cluster.stop(cheater);
        start_cheating(&mut cluster, cheater, Cheat::InAnswers);
        cluster.wait_until_ready();
        let message = gcm(&cluster.client(), &name_for(NAME, Mode::Gcm), b"", b"a message");
        let Err(Error::Answers(why)) = message else { panic!("{message:?}") };
        assert!(why.contains(&format!("node-{} tells another ciphertext", cheater + 1)), "{why}");
        cluster.stop(cheater);
        cluster.restart(cheater);
        cluster.wait_until_ready();
    }
}
