//! The hash of GCM under a shared key against the field's reference and the published values.

use polyclave_field::{Gf2_64, Gf128};
use polyclave_protocol::ghash::{Ghash, GhashKey, SEGMENT_BLOCKS, hash_once};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{ProtocolConfig, Session};
use polyclave_protocol::replicated::{Passive, ReplicatedActiveConfig, ReplicatedConfig};
use polyclave_protocol::service::{Element, Elements, ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, ShamirConfig, Structure, Tables};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use polyclave_protocol::tally::Counts;
use polyclave_protocol::{Error, Party, PartySet, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::faults::{Promise, Sweep};

fn shamir() -> ShamirConfig {
    let structure = Structure::new(3, 1).expect("it is valid");
    ShamirConfig { structure, inversion: Inversion::Views, tables: Tables::Masked }
}

fn replicated() -> ReplicatedConfig<Passive> {
    ReplicatedConfig::default()
}

fn replicated_active() -> ReplicatedActiveConfig {
    ReplicatedActiveConfig::default()
}

fn spdz() -> SpdzConfig<Gf2_64> {
    let packing = Packing::of::<Gf2_64>(64).expect("it is valid");
    SpdzConfig::new(2, LookupMethod::MaskedTables, Preprocessing::Dealt(&InsecureDealing), packing)
        .expect("it is valid")
}

/// Runs all parties, and puts together the elements that they send to a client.
fn values<S: ServiceConfig>(
    config: &S,
    party: impl Fn(&mut S::Session, &mut dyn Net) -> Result<Vec<Elements>> + Sync,
) -> impl Iterator<Item = Element> {
    let n = config.parties();
    let messages = run_parties(n, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(n)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let elements = party(&mut protocol, net)?;
        let elements = Elements::join(&elements.iter().collect::<Vec<_>>());
        protocol.reveal_elements(&elements, net)
    });
    let messages: Vec<Vec<u8>> = messages.into_iter().map(|m| m.expect("honest parties finish")).collect();
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    config.combine_elements(PartySet::all(n), &messages).expect("the messages fit").into_iter()
}

/// SP 800-38D, section 6.4, block by block.
fn reference(h: Element, blocks: &[u8]) -> Element {
    let blocks = blocks.as_chunks().0.iter().map(|block| Gf128::from_bytes(*block));
    blocks.fold(Gf128::ZERO, |hash, block| (hash + block) * Gf128::from_bytes(h)).to_bytes()
}

fn blocks(count: usize) -> Vec<u8> {
    (0..16 * count as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Rounds and multiplications of a hash of segments of so many blocks.
fn hash<P: ServiceSession>(
    protocol: &mut P,
    key: &GhashKey,
    segments: &[usize],
    net: &mut dyn Net,
) -> Result<(Elements, Counts)> {
    let before = protocol.tally();
    let mut hash = Ghash::new(key);
    let all = blocks(segments.iter().sum());
    let mut rest = &all[..];
    for segment in segments {
        let (blocks, further) = rest.split_at(16 * segment);
        hash.update(protocol.arithmetic(), blocks, net)?;
        rest = further;
    }
    Ok((hash.finish(), (protocol.tally() - before).preprocessing))
}

/// Hashes all of these under one random key, and compares.
fn check<S: ServiceConfig>(config: &S, messages: &[&[usize]]) {
    let mut values = values(config, |protocol, net| {
        let h = protocol.arithmetic().random_for_client(net)?.0;
        let key = GhashKey::derive(protocol.arithmetic(), &h, net)?;
        let mut elements = vec![h];
        for segments in messages {
            elements.push(hash(protocol, &key, segments, net)?.0);
        }
        Ok(elements)
    });
    let h = values.next().expect("the key comes first");
    for (segments, value) in messages.iter().zip(values) {
        assert!(value == reference(h, &blocks(segments.iter().sum())), "segments {segments:?}");
    }
}

#[test]
fn one_segment_hashes_to_the_reference() {
    let lengths: Vec<[usize; 1]> = (0..41).chain([127, 128, 129, 255, 256, 257]).map(|m| [m]).collect();
    let lengths: Vec<&[usize]> = lengths.iter().map(|m| &m[..]).collect();
    check(&shamir(), &lengths);
    check(&spdz(), &lengths);
    check(&replicated(), &lengths);
    check(&replicated_active(), &lengths);
    check(&shamir(), &[&[SEGMENT_BLOCKS - 1], &[SEGMENT_BLOCKS]]);
    check(&spdz(), &[&[SEGMENT_BLOCKS - 1], &[SEGMENT_BLOCKS]]);
}

#[test]
fn segments_of_any_lengths_hash_to_the_reference() {
    let segments: [&[usize]; 6] =
        [&[1, 1], &[3, 128, 5], &[130, 129], &[0, 256, 0, 300, 1], &[127, 385], &[1, 128, 127, 129, 2]];
    check(&shamir(), &segments);
    check(&spdz(), &segments);
    check(&replicated(), &segments);
    check(&replicated_active(), &segments);
    check(&shamir(), &[&[SEGMENT_BLOCKS, SEGMENT_BLOCKS, 777], &[5, SEGMENT_BLOCKS - 1]]);
    check(&spdz(), &[&[SEGMENT_BLOCKS, SEGMENT_BLOCKS, 777], &[5, SEGMENT_BLOCKS - 1]]);
}

/// Under a key for one hash the blocks are shared.
#[test]
fn shared_blocks_under_a_key_for_one_hash_hash_to_the_reference() {
    check_once(&shamir());
    check_once(&spdz());
    check_once(&replicated());
    check_once(&replicated_active());
}

fn check_once<S: ServiceConfig>(config: &S) {
    let lengths: Vec<usize> = (1..10).chain([31, 32, 33, 127, 129]).collect();
    let mut values = values(config, |protocol, net| {
        let h = protocol.arithmetic().random_for_client(net)?.0;
        let zero = h.weighted_sums(&[[0; 16]]);
        let mut elements = vec![h.clone()];
        for count in &lengths {
            let zeros = Elements::join(&vec![&zero; *count]);
            let shared = protocol.arithmetic().add_public(&zeros, blocks(*count).as_chunks().0);
            elements.push(hash_once(&h, &shared, protocol.arithmetic(), net)?);
        }
        assert!(hash_once(&h, &zero.part(0..0), protocol.arithmetic(), net).is_err());
        Ok(elements)
    });
    let h = values.next().expect("the key comes first");
    for (count, value) in lengths.iter().zip(values) {
        assert!(value == reference(h, &blocks(*count)), "{count} blocks");
    }
}

/// The powers of many keys come together, by products or otherwise.
#[test]
fn keys_that_are_derived_together_hash_to_the_reference() {
    check_together(&shamir());
    check_together(&spdz());
    check_together(&replicated());
    check_together(&replicated_active());
}

fn check_together<S: ServiceConfig>(config: &S) {
    let segments = [3, SEGMENT_BLOCKS, 130];
    let values: Vec<Element> = values(config, |protocol, net| {
        let keys = protocol.arithmetic().random_elements(3, net)?;
        assert!(GhashKey::derive_all(protocol.arithmetic(), &keys.part(0..0), net)?.is_empty());
        let derived = GhashKey::derive_all(protocol.arithmetic(), &keys, net)?;
        let mut elements = vec![keys];
        for key in &derived {
            elements.push(hash(protocol, key, &segments, net)?.0);
        }
        Ok(elements)
    })
    .collect();
    let (keys, hashes) = values.split_at(3);
    for (h, hash) in keys.iter().zip(hashes) {
        assert!(*hash == reference(*h, &blocks(segments.iter().sum())));
    }
    assert_eq!(hashes.len(), 3);
}

#[test]
fn a_key_takes_the_triples_and_bits_documented_if_many_are_derived_together() {
    let _ = values(&spdz(), |protocol, net| {
        let keys = protocol.arithmetic().random_elements(2, net)?;
        let before = protocol.tally();
        GhashKey::derive_all(protocol.arithmetic(), &keys, net)?;
        let spent = (protocol.tally() - before).online;
        assert_eq!((spent.rounds, spent.triples, spent.bits), (8, 2 * 3 * 63, 2 * 8320));
        Ok(vec![keys])
    });
}

/// Every message of either party is changed, cut, repeated and withheld.
#[test]
fn no_fault_in_any_message_makes_wrong_powers() {
    let h = [0x5a; 16];
    let party = move |net: &mut dyn Net| -> Result<Vec<u8>> {
        let config = spdz();
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let arithmetic = protocol.arithmetic();
        let random = arithmetic.random_elements(1, net)?;
        let zero = random.add(&random);
        let key = arithmetic.add_public(&zero, &[h]);
        let zeros = Elements::join(&[&zero; 5]);
        let shared = arithmetic.add_public(&zeros, blocks(5).as_chunks().0);
        let once = hash_once(&key, &shared, arithmetic, net)?;
        let key = GhashKey::derive_all(arithmetic, &key, net)?.remove(0);
        let hash = hash(&mut protocol, &key, &[300], net)?.0;
        let both = Elements::join(&[&once, &hash]);
        let opened = protocol.arithmetic().open_elements(&both, net)?.concat();
        // Of everything that was opened, the hash too.
        protocol.check(net)?;
        Ok(opened)
    };
    let right = [reference(h, &blocks(5)), reference(h, &blocks(300))].concat();
    assert_eq!(run_parties(2, party), [Ok(right.clone()), Ok(right)]);
    for cheater in Party::all(2) {
        let sweep = Sweep { drop_every: 16, ..Sweep::new(2, cheater, Promise::RightOrAborted) };
        let swept = sweep.run(party);
        assert!(swept.messages > 10 && swept.faults > 3 * swept.messages, "{swept:?}");
    }
}

/// McGrew and Viega 2004, appendix B, test case 2.
#[test]
fn the_published_hash_comes_out() {
    check_published(&shamir());
    check_published(&spdz());
    check_published(&replicated());
    check_published(&replicated_active());
}

fn check_published<S: ServiceConfig>(config: &S) {
    let h = 0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e_u128.to_be_bytes();
    let blocks =
        [0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78_u128.to_be_bytes(), 0x80_u128.to_be_bytes()].concat();
    let values = values(config, |protocol, net| {
        let random = protocol.arithmetic().random_for_client(net)?.0;
        let zero = random.add(&random);
        let arithmetic = protocol.arithmetic();
        let h = arithmetic.add_public(&zero, &[h]);
        let key = GhashKey::derive(arithmetic, &h, net)?;
        let mut hash = Ghash::new(&key);
        hash.update(protocol.arithmetic(), &blocks, net)?;
        Ok(vec![hash.finish()])
    });
    let values: Vec<u128> = values.map(u128::from_be_bytes).collect();
    assert_eq!(values, [0xf38c_bb1a_d692_23dc_c345_7ae5_b6b0_f885]);
}

#[test]
fn rounds_and_multiplications_are_those_documented() {
    let _ = values(&shamir(), |protocol, net| {
        let h = protocol.arithmetic().random_for_client(net)?.0;
        let key = GhashKey::derive(protocol.arithmetic(), &h, net)?;
        let spent = protocol.tally().preprocessing;
        assert_eq!((spent.rounds, spent.multiplications), (14, 254));
        let cases: [(&[usize], u64); 9] = [
            (&[0], 0),
            (&[1], 0),
            (&[128], 0),
            (&[129], 1),
            (&[SEGMENT_BLOCKS], 1),
            (&[128, 128], 1),
            (&[128, 256], 1),
            (&[128, 129], 2),
            (&[SEGMENT_BLOCKS, SEGMENT_BLOCKS, 130], 4),
        ];
        for (segments, rounds) in cases {
            let spent = hash(protocol, &key, segments, net)?.1;
            assert_eq!(
                spent,
                Counts { rounds, multiplications: rounds, ..Counts::default() },
                "{segments:?}"
            );
        }
        let zero = h.weighted_sums(&[[0; 16]]);
        for (count, rounds) in [(1, 1), (2, 2), (5, 4), (129, 9)] {
            let before = protocol.tally();
            let shared = Elements::join(&vec![&zero; count as usize]);
            hash_once(&h, &shared, protocol.arithmetic(), net)?;
            let spent = (protocol.tally() - before).preprocessing;
            // The products of the sum are opened as one.
            assert_eq!((spent.rounds, spent.multiplications), (rounds, count), "{count} blocks");
        }
        Ok(vec![h])
    });
}

#[test]
fn a_stored_key_hashes_alike_and_other_bytes_are_refused() {
    check_stored(&shamir());
    check_stored(&spdz());
    check_stored(&replicated());
    check_stored(&replicated_active());
}

fn check_stored<S: ServiceConfig>(config: &S) {
    let values: Vec<Element> = values(config, |protocol, net| {
        let h = protocol.arithmetic().random_for_client(net)?.0;
        let key = GhashKey::derive(protocol.arithmetic(), &h, net)?;
        let stored = key.save(protocol);
        let restored = GhashKey::restore(protocol, &stored)?;
        for bytes in [&stored[1..], &stored[..stored.len() - 16], &protocol.save_elements(&h)] {
            assert!(matches!(GhashKey::restore(protocol, bytes), Err(Error::Misuse(_))));
        }
        let hashes = [&key, &restored].map(|key| hash(protocol, key, &[1000, 500], net));
        hashes.into_iter().map(|hash| Ok(hash?.0)).collect()
    })
    .collect();
    assert_eq!(values[0], values[1]);
    assert_ne!(values[0], [0; 16]);
}

#[test]
fn what_is_no_segment_is_refused() {
    check_refused(&shamir());
    check_refused(&spdz());
    check_refused(&replicated());
    check_refused(&replicated_active());
}

fn check_refused<S: ServiceConfig>(config: &S) {
    let _ = values(config, |protocol, net| {
        let h = protocol.arithmetic().random_for_client(net)?.0;
        let key = GhashKey::derive(protocol.arithmetic(), &h, net)?;
        for len in [1, 15, 17, 16 * (SEGMENT_BLOCKS + 1)] {
            let outcome = Ghash::new(&key).update(protocol.arithmetic(), &vec![0; len], net);
            assert!(matches!(outcome, Err(Error::Misuse(_))), "{len} bytes");
        }
        let two = Elements::join(&[&h, &h]);
        assert!(matches!(GhashKey::derive(protocol.arithmetic(), &two, net), Err(Error::Misuse(_))));
        Ok(vec![h])
    });
}
