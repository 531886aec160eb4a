//! The list of all protocols. A new protocol is a folder with a [`Descriptor`], and one line here.

#[cfg(feature = "testkit")]
use std::sync::atomic::{AtomicBool, Ordering};

use crate::interface::any::AnyServiceConfig;
use crate::interface::descriptor::Descriptor;
#[cfg(feature = "testkit")]
use crate::testkit::additive;
use crate::{Error, Result, garbled, lut, replicated, shamir, spdz, tinytable};

/// All of them, in the order in which they are listed.
pub static ALL: &[&Descriptor] = &[
    &shamir::PASSIVE,
    &shamir::ACTIVE,
    &replicated::PASSIVE,
    &replicated::ACTIVE,
    &spdz::MASKED_TABLES,
    &spdz::BIT_DECOMPOSITION,
    &spdz::RIVAIN_PROUFF,
    &spdz::PULKUS_VIVEK,
    &spdz::UNIVARIATE,
    &spdz::TOWER,
    &tinytable::WITHOUT_MACS,
    &tinytable::LOOKUP_32,
    &tinytable::LOOKUP_64,
    &tinytable::LINEAR_64,
    #[cfg(feature = "testkit")]
    &tinytable::MINIMAC,
    &lut::OP,
    &lut::SP,
    &garbled::HALF,
    &garbled::THREE_HALVES,
    &garbled::PROJECTION,
];

/// Whether the toy protocol can be chosen in this process. It protects nothing, and nodes can serve with it. Cargo may add its code to any program
/// of this workspace; but only the laboratory and tests let it be chosen, and never `polyclave`.
#[cfg(feature = "testkit")]
static TOY_CAN_BE_CHOSEN: AtomicBool = AtomicBool::new(false);

/// From now on the toy protocol can be chosen in this process.
#[cfg(feature = "testkit")]
pub fn add_toy() {
    TOY_CAN_BE_CHOSEN.store(true, Ordering::Relaxed);
}

fn toy() -> Option<&'static Descriptor> {
    #[cfg(feature = "testkit")]
    if TOY_CAN_BE_CHOSEN.load(Ordering::Relaxed) {
        return Some(&additive::DESCRIPTOR);
    }
    None
}

/// The protocol of a name.
pub fn find(name: &str) -> Option<&'static Descriptor> {
    ALL.iter().copied().chain(toy()).find(|descriptor| descriptor.name.eq_ignore_ascii_case(name))
}

/// The protocols with which nodes can serve.
pub fn serving() -> impl Iterator<Item = &'static Descriptor> {
    ALL.iter().copied().filter(|descriptor| descriptor.serves())
}

/// The protocol of a cluster for which nobody has chosen one. Two nodes have no honest majority, so each of them has to bear that the
/// other cheats.
pub fn default_among(nodes: usize) -> &'static Descriptor {
    match nodes {
        2 => &spdz::TOWER,
        _ => &shamir::PASSIVE,
    }
}

/// The protocol with this name, as this number of nodes serve with it.
pub fn service(name: &str, nodes: usize, threshold: usize) -> Result<AnyServiceConfig> {
    let unknown = || {
        let names: Vec<&str> = serving().map(|descriptor| descriptor.name).collect();
        Error::Misuse(format!(
            "nodes cannot serve with a protocol '{name}'; choose one of {}",
            names.join(", ")
        ))
    };
    find(name).filter(|descriptor| descriptor.serves()).ok_or_else(unknown)?.service(nodes, threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_found_by_its_name_and_made_as_it_is_described() {
        for descriptor in ALL {
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
    fn the_default_protocol_serves_among_as_many_nodes_as_there_are() {
        for nodes in 2..=*shamir::PASSIVE.parties.end() {
            let default = default_among(nodes);
            service(default.name, nodes, default.threshold.most(nodes)).expect("it serves");
        }
        use crate::interface::protocol::Adversary;
        assert_eq!(default_among(2).adversary, Adversary::Abort, "two nodes are not trusted");
        assert_eq!(default_among(3).name, ALL[0].name, "the first that is listed");
    }

    #[test]
    fn an_option_that_a_protocol_does_not_have_is_refused_with_those_it_has() {
        let refused = |name: &str, chosen| {
            find(name).expect("listed").config(None, None, &[chosen]).err().expect("no option")
        };
        let told = refused("shamir", ("kappa", "64")).to_string();
        assert!(told.contains("--kappa") && told.contains("--inversion, --tables"), "{told}");
        let told = refused("spdz-lt", ("expansion", "3")).to_string();
        assert!(told.contains("'3'; choose one of 1, 2, 4, 8"), "{told}");
        let told = find("tinytable-minimac")
            .expect("listed")
            .config(None, None, &[])
            .err()
            .expect("it has to be chosen");
        assert!(told.to_string().contains("needs --preprocessing"), "{told}");
    }
}
