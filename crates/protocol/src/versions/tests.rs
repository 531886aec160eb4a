use super::*;

const ALL: &[(u8, &str)] = &[(5, "0.3.0"), (6, "0.4.0"), (7, "0.6.0"), (8, "0.7.0")];
const SOME: Versions = Versions { of: "the wire", brought: ALL, read: Read::LastTwo };
const FIRST: Versions = Versions { of: "the wire", brought: &[(5, "0.3.0")], read: Read::LastTwo };

fn spoken(oldest: u8, newest: u8) -> Spoken {
    Spoken { oldest, newest }
}

#[test]
fn a_program_speaks_its_own_version_and_the_one_before_and_reads_every_store() {
    assert_eq!(SOME.spoken(), spoken(7, 8));
    assert_eq!(FIRST.spoken(), spoken(5, 5));
    let store = Versions { of: "the store", brought: ALL, read: Read::All };
    assert_eq!(store.spoken(), spoken(5, 8));
}

#[test]
fn what_both_know_is_used() {
    assert_eq!(spoken(7, 8).meet(spoken(6, 7)), Some(7));
    assert_eq!(spoken(7, 8).meet(spoken(8, 9)), Some(8));
    assert_eq!(spoken(7, 8).meet(spoken(5, 6)), None);
    assert_eq!(spoken(5, 6).meet(spoken(7, 8)), None);
    assert!(spoken(7, 8).contains(7_u8) && !spoken(7, 8).contains(9_u16) && !spoken(7, 8).contains(263_u16));
}

/// The older one is named at both ends, with the releases on its way as far as the table has them.
#[test]
fn two_releases_apart_the_older_one_is_to_be_upgraded_through_those_between() {
    let newer = |theirs| SOME.apart((SOME.spoken(), "this party"), (theirs, "that one"));
    assert_eq!(
        newer(spoken(5, 6)),
        "it speaks versions 5 to 6 of the wire, and this party versions 7 to 8: upgrade that one, first to 0.6.0"
    );
    assert_eq!(
        newer(spoken(0, 4)),
        "it speaks version 4 of the wire, and this party versions 7 to 8: upgrade that one, first to 0.3.0, then to 0.4.0, then to 0.6.0"
    );
    assert_eq!(
        newer(spoken(10, 11)),
        "it speaks versions 10 to 11 of the wire, and this party versions 7 to 8: upgrade this party, first to a release that speaks version 9"
    );
    let message = FIRST.apart((FIRST.spoken(), "this party"), (spoken(6, 7), "that one"));
    assert!(message.ends_with("upgrade this party, first to a release that speaks version 6"), "{message}");
    assert_eq!(
        FIRST.apart((FIRST.spoken(), "this party"), (spoken(0, 4), "that one")),
        "it speaks version 4 of the wire, and this party version 5: upgrade that one"
    );
}

/// A release brings versions one by one, and no version of a release to come is in the table.
#[test]
fn the_table_grows_at_its_end() {
    let number = |release: &str| -> Vec<u32> {
        release.split('.').map(|part| part.parse().expect("a number")).collect()
    };
    for versions in [&NODES, &CLIENTS, &STORE, &CLUSTER_FILES] {
        let steps = versions.brought.windows(2);
        assert!(steps.clone().all(|two| two[1].0 == two[0].0 + 1 && number(two[0].1) < number(two[1].1)));
        let (_, release) = versions.brought.last().expect("one");
        assert!(number(release) <= number(env!("CARGO_PKG_VERSION")), "{}", versions.of());
    }
    let bits: std::collections::HashSet<u8> = FEATURES.iter().map(|feature| feature.bit).collect();
    assert!(bits.len() == FEATURES.len() && bits.iter().all(|bit| *bit < 63), "{FEATURES:?}");
}

#[test]
fn a_set_of_features_comes_back_as_it_was() {
    let of = |bit| Feature { name: "a feature", bit, release: "0.3.0", about: "" };
    let set: FeatureSet = [&of(0), &of(62)].into_iter().collect();
    assert!(set.has(&of(0)) && set.has(&of(62)) && !set.has(&of(1)));
    assert_eq!(FeatureSet::from_bytes(set.to_bytes()), set);
    let shared = set.shared([&of(62), &of(5)].into_iter().collect());
    assert!(shared.has(&of(62)) && !shared.has(&of(0)) && !shared.has(&of(5)));
    assert_eq!(set.without(shared), [&of(0)].into_iter().collect());
}
