//! The list of all protocols. A new protocol is a folder with a [`Descriptor`], and one line here. Those that
//! no node serves with are in the crate `polyclave-protocol-lab`, which adds them ([`add`]).

use parking_lot::RwLock;

use crate::interface::any::AnyServiceConfig;
use crate::interface::descriptor::Descriptor;
use crate::interface::stock::Transfers;
use crate::{Error, Result, replicated, shamir, spdz, tinytable};

/// Those of this crate, in the order in which they are listed.
static OWN: &[&Descriptor] = &[
    &shamir::PASSIVE,
    &shamir::ACTIVE,
    &replicated::PASSIVE,
    &replicated::ACTIVE,
    &replicated::FOUR,
    &replicated::GARBLED,
    &spdz::MASKED_TABLES,
    &spdz::BIT_DECOMPOSITION,
    &spdz::RIVAIN_PROUFF,
    &spdz::PULKUS_VIVEK,
    &spdz::UNIVARIATE,
    &spdz::TOWER,
    &spdz::GARBLED,
    &tinytable::WITHOUT_MACS,
    &tinytable::LOOKUP_32,
    &tinytable::LOOKUP_64,
    &tinytable::LINEAR_64,
];

/// What another crate has added: whether it is listed, and the protocol.
static ADDED: RwLock<Vec<(bool, &'static Descriptor)>> = RwLock::new(Vec::new());

/// From now on these protocols are in the catalog of this process, after the others. One that has the name of
/// another takes its place.
pub fn add(protocols: impl IntoIterator<Item = &'static Descriptor>) {
    add_as(true, protocols);
}

/// From now on a protocol can be chosen in this process by its name, and is not listed.
pub fn add_unlisted(protocol: &'static Descriptor) {
    add_as(false, [protocol]);
}

fn add_as(listed: bool, protocols: impl IntoIterator<Item = &'static Descriptor>) {
    let mut added = ADDED.write();
    for protocol in protocols {
        if !added.iter().any(|(_, other)| other.name == protocol.name) {
            added.push((listed, protocol));
        }
    }
}

/// All that are listed, in their order.
pub fn all() -> Vec<&'static Descriptor> {
    let added = ADDED.read();
    let in_place = |own: &'static Descriptor| {
        added.iter().find(|(_, other)| other.name == own.name).map_or(own, |(_, other)| *other)
    };
    let is_new =
        |(listed, other): &&(bool, &Descriptor)| *listed && OWN.iter().all(|own| own.name != other.name);
    OWN.iter().map(|own| in_place(own)).chain(added.iter().filter(is_new).map(|(_, other)| *other)).collect()
}

/// The protocol of a name.
pub fn find(name: &str) -> Option<&'static Descriptor> {
    let unlisted = ADDED.read().iter().map(|(_, other)| *other).collect::<Vec<_>>();
    all().into_iter().chain(unlisted).find(|descriptor| descriptor.name.eq_ignore_ascii_case(name))
}

/// The protocols with which nodes can serve.
pub fn serving() -> impl Iterator<Item = &'static Descriptor> {
    all().into_iter().filter(|descriptor| descriptor.serves())
}

/// The protocol of a cluster for which nobody has chosen one. Two nodes have no honest majority, so each of
/// them has to bear that the other cheats. Four can bear one that cheats or is gone at little cost.
pub fn default_among(nodes: usize) -> &'static Descriptor {
    match nodes {
        2 => &spdz::TOWER,
        4 => &replicated::FOUR,
        _ => &shamir::PASSIVE,
    }
}

/// The protocol with this name, as this number of nodes serve with it.
pub fn service(name: &str, nodes: usize, threshold: usize) -> Result<AnyServiceConfig> {
    service_with(name, nodes, threshold, Transfers::Quick)
}

/// The same with these transfers.
pub fn service_with(
    name: &str,
    nodes: usize,
    threshold: usize,
    transfers: Transfers,
) -> Result<AnyServiceConfig> {
    let unknown = || {
        let names: Vec<&str> = serving().map(|descriptor| descriptor.name).collect();
        Error::Misuse(format!(
            "nodes cannot serve with a protocol '{name}'; choose one of {}",
            names.join(", ")
        ))
    };
    let descriptor = find(name).filter(|descriptor| descriptor.serves()).ok_or_else(unknown)?;
    descriptor.service_with(nodes, threshold, transfers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_found_by_its_name_and_made_as_it_is_described() {
        for descriptor in OWN {
            assert!(std::ptr::eq(find(&descriptor.name.to_uppercase()).expect("it is listed"), *descriptor));
            let needed: Vec<(&str, &str)> = descriptor
                .options
                .iter()
                .filter(|option| option.default.is_none())
                .map(|option| (option.name, (option.values)()[0]))
                .collect();
            let config = descriptor.config(None, None, &needed).expect("by default it can be made");
            use crate::interface::protocol::ProtocolConfig;
            assert_eq!(config.name(), descriptor.name);
            assert_eq!(config.adversary(), descriptor.adversary);
            assert_eq!(config.parties(), descriptor.usual_parties);
            assert!(descriptor.parties.contains(&descriptor.usual_parties));
            for parties in [descriptor.parties.start() - 1, descriptor.parties.end() + 1] {
                let refused =
                    descriptor.config(Some(parties), None, &needed).err().expect("too few, or too many");
                assert!(refused.to_string().contains("runs among"), "{refused}");
            }
            for option in descriptor.options {
                for value in (option.values)() {
                    descriptor
                        .parameters(None, None, &[&needed[..], &[(option.name, value)]].concat())
                        .expect("it is a value");
                }
                assert!(option.default.is_none_or(|default| (option.values)().contains(&default)));
            }
        }
    }

    #[test]
    fn what_nodes_serve_with_is_made_by_its_name() {
        for descriptor in serving() {
            let nodes = descriptor.usual_parties;
            let config =
                service(descriptor.name, nodes, descriptor.threshold.most(nodes)).expect("it serves");
            use crate::interface::protocol::ProtocolConfig;
            assert_eq!((config.name(), config.adversary()), (descriptor.name, descriptor.adversary));
        }
        let unknown = service("spdz", 3, 1).err().expect("there is none").to_string();
        assert!(unknown.contains("'spdz'") && unknown.contains("shamir-active"), "{unknown}");
    }

    #[test]
    fn the_crate_s_readme_has_what_nodes_serve_with() {
        let readme = include_str!("../README.md");
        for descriptor in OWN.iter().filter(|descriptor| descriptor.serving.is_some()) {
            assert!(readme.contains(&format!("`{}`", descriptor.name)), "{} is missing", descriptor.name);
        }
    }

    #[test]
    fn the_default_protocol_serves_among_as_many_nodes_as_there_are() {
        for nodes in 2..=*shamir::PASSIVE.parties.end() {
            let default = default_among(nodes);
            service(default.name, nodes, default.threshold.most(nodes)).expect("it serves");
        }
        use crate::interface::protocol::Adversary;
        assert_eq!(default_among(2).adversary, Adversary::Abort, "two nodes are not trusted");
        assert_eq!(default_among(3).name, OWN[0].name, "the first that is listed");
    }

    #[test]
    fn an_option_that_a_protocol_does_not_have_is_refused_with_those_it_has() {
        let refused = |name: &str, chosen| {
            find(name).expect("listed").config(None, None, &[chosen]).err().expect("no option")
        };
        let message = refused("shamir", ("kappa", "64")).to_string();
        assert!(message.contains("--kappa") && message.contains("--inversion, --tables"), "{message}");
        let message = refused("spdz-lt", ("expansion", "3")).to_string();
        assert!(message.contains("'3'; choose one of 1, 2, 4, 5, 6, 8"), "{message}");
    }
}
