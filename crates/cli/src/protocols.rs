//! Descriptions of the protocols that nodes can serve with: their names, what they promise, and for how many
//! nodes.

use anyhow::{Result, bail};
use polyclave_protocol::catalog;
use polyclave_protocol::descriptor::{Descriptor, Threshold};
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::ServiceConfig;

use crate::say;

/// What a user should know about a protocol for a number of nodes.
pub struct Properties {
    /// One sentence on whom it protects against.
    pub adversary: String,
    /// How many nodes a request needs.
    pub quorum: usize,
    /// Whether answers are right whatever the other nodes do.
    pub verifies: bool,
    /// Whether the nodes keep material in stock.
    pub keeps_stock: bool,
    /// Whether correct answers still come if some of the nodes send anything, or nothing.
    pub guarantees_output: bool,
}

/// The properties of a protocol; an error if this number of nodes cannot serve with it.
pub fn properties(protocol: &str, nodes: usize, threshold: usize) -> Result<Properties> {
    let config = catalog::service(protocol, nodes, threshold)?;
    Ok(Properties {
        adversary: config.promise(),
        quorum: config.quorum(),
        verifies: config.verifies(),
        keeps_stock: config.keeps_stock(),
        guarantees_output: config.adversary() == Adversary::GuaranteedOutput,
    })
}

/// One sentence on whom a protocol protects against; an error if this number of nodes cannot serve with it.
pub fn adversary(protocol: &str, nodes: usize, threshold: usize) -> Result<String> {
    Ok(properties(protocol, nodes, threshold)?.adversary)
}

/// The protocol of a new cluster, and its number of nodes.
pub struct Chosen {
    /// The name of the protocol.
    pub protocol: String,
    /// How many nodes.
    pub nodes: usize,
    /// Whether nobody asked for this protocol.
    pub by_default: bool,
}

/// What was asked for, and defaults for the rest: the protocol goes by the number of nodes, which is
/// `otherwise` if nothing says more.
pub fn chosen(protocol: Option<&str>, nodes: Option<usize>, otherwise: usize) -> Chosen {
    match protocol.map(str::to_ascii_lowercase) {
        Some(protocol) => {
            let nodes = nodes.unwrap_or_else(|| parties(&protocol, otherwise));
            Chosen { protocol, nodes, by_default: false }
        }
        None => {
            let nodes = nodes.unwrap_or(otherwise);
            Chosen { protocol: catalog::default_among(nodes).name.into(), nodes, by_default: true }
        }
    }
}

impl Chosen {
    /// Says which protocol was taken if nobody asked for it.
    pub fn tell(&self) {
        if self.by_default {
            say!(
                "The protocol is {}, the default of {} nodes (--protocol chooses another).",
                self.protocol,
                self.nodes
            );
        }
    }
}

/// A line for each protocol that nodes can serve with.
pub fn table() -> String {
    let line = |protocol: &Descriptor| {
        format!("  {}: {}; {}", protocol.name, protocol.party_range(), protocol.adversary)
    };
    catalog::serving().map(line).collect::<Vec<_>>().join("\n")
}

/// The same, with advice for choosing one.
pub fn advice() -> String {
    let line = |protocol: &Descriptor| {
        let advice = protocol.serving.as_ref().map_or("", |serving| serving.advice);
        format!("  {}: {}; {}; {advice}", protocol.name, protocol.party_range(), protocol.adversary)
    };
    format!("Protocols:\n{}", catalog::serving().map(line).collect::<Vec<_>>().join("\n"))
}

/// The protocols against such an adversary that nodes can serve with.
pub fn names_of(adversary: Adversary) -> String {
    let names = catalog::serving().filter(|protocol| protocol.adversary == adversary);
    names.map(|protocol| protocol.name).collect::<Vec<_>>().join(", ")
}

/// Help text of the option for the nodes' protocol.
pub fn option_help() -> String {
    let names: Vec<&str> = catalog::serving().map(|protocol| protocol.name).collect();
    let [two, four, others] = [2, 4, 3].map(|nodes| catalog::default_among(nodes).name);
    format!(
        "The protocol between the nodes: {} [default: {two} between two nodes, {four} among four, else {others}]",
        names.join(", ")
    )
}

/// Help text of the option for the number of nodes; `otherwise` is the default where a protocol takes any
/// number.
pub fn parties_help(otherwise: usize) -> String {
    let usual = catalog::serving().map(|protocol| (protocol.name, parties(protocol.name, otherwise)));
    let others = usual.filter(|(_, usual)| *usual != otherwise);
    let others: Vec<String> = others.map(|(name, usual)| format!("{usual} for {name}")).collect();
    format!("Number of nodes [default: {otherwise}; {}]", others.join(", "))
}

/// Help text of the option for the threshold; `otherwise` is the default, or says that a choice is required,
/// where a protocol allows a choice.
pub fn threshold_help(otherwise: &str) -> String {
    let fixed = catalog::serving().filter_map(|protocol| match protocol.threshold {
        Threshold::Minority if leaves_no_choice(protocol) => Some(format!("for {} always 1", protocol.name)),
        Threshold::Minority => None,
        Threshold::FewerThanAThird => Some(format!("for {} as many as can be", protocol.name)),
        Threshold::AllButOne => Some(format!("for {} always all but one", protocol.name)),
    });
    format!("Nodes that together learn nothing [{otherwise}; {}]", fixed.collect::<Vec<_>>().join("; "))
}

/// Whether the user has to choose the threshold of a protocol for real nodes.
pub fn needs_threshold(protocol: &str) -> bool {
    catalog::find(protocol)
        .is_some_and(|protocol| protocol.threshold == Threshold::Minority && !leaves_no_choice(protocol))
}

/// Whether a protocol is for one number of nodes, and of three only one is a minority.
fn leaves_no_choice(protocol: &Descriptor) -> bool {
    protocol.parties == (3..=3)
}

/// The default number of nodes to try a protocol with; `otherwise` where it takes any number.
pub fn parties(protocol: &str, otherwise: usize) -> usize {
    match catalog::find(protocol) {
        Some(protocol) if protocol.threshold == Threshold::Minority && !leaves_no_choice(protocol) => {
            otherwise
        }
        None => otherwise,
        Some(descriptor) => descriptor.usual_parties,
    }
}

/// The number of nodes that together learn nothing: the requested one, if the protocol allows a choice.
pub fn threshold(protocol: &str, nodes: usize, asked: Option<usize>, otherwise: usize) -> Result<usize> {
    let rule = catalog::find(protocol).map_or(Threshold::Minority, |descriptor| descriptor.threshold);
    let most = rule.most(nodes);
    match (rule, asked) {
        (Threshold::AllButOne, Some(asked)) if asked != most => bail!(
            "under {protocol} any {most} of {nodes} nodes learn nothing, and all {nodes} serve; --threshold {asked} cannot be \
             chosen: leave it out"
        ),
        (Threshold::AllButOne, _) => Ok(most),
        // Among fewer than four nodes none may cheat, and the protocol says so.
        (Threshold::FewerThanAThird, asked) => Ok(asked.unwrap_or(most.max(1))),
        (Threshold::Minority, asked) => Ok(asked.unwrap_or(otherwise)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authenticated_sharing_leaves_no_choice_of_a_threshold() {
        assert_eq!(threshold("spdz-lt", 3, None, 1).expect("given"), 2);
        assert_eq!(threshold("spdz-lt", 2, Some(1), 1).expect("the same"), 1);
        let error = threshold("spdz-lt", 3, Some(1), 1).expect_err("no choice").to_string();
        assert!(error.contains("any 2 of 3") && error.contains("leave it out"), "{error}");
        assert_eq!(threshold("shamir", 5, Some(2), 1).expect("a choice"), 2);
        assert_eq!(threshold("shamir", 5, None, 1).expect("a default"), 1);
        assert_eq!(threshold("tinytable-linear64", 2, None, 1).expect("given"), 1);
    }

    #[test]
    fn the_default_protocol_goes_by_the_number_of_nodes() {
        let of = |protocol, nodes| {
            let Chosen { protocol, nodes, by_default } = chosen(protocol, nodes, 3);
            assert!(properties(&protocol, nodes, threshold(&protocol, nodes, None, 1).expect("one")).is_ok());
            (protocol, nodes, by_default)
        };
        assert_eq!(of(None, None), ("shamir".into(), 3, true));
        assert_eq!(of(None, Some(2)), ("spdz-tower".into(), 2, true));
        assert_eq!(of(None, Some(5)), ("shamir".into(), 5, true));
        assert_eq!(of(Some("SPDZ-LT"), None), ("spdz-lt".into(), 2, false));
    }

    #[test]
    fn replicated_sharing_is_among_three_nodes_and_leaves_no_choice_of_a_threshold() {
        for protocol in ["replicated", "replicated-active"] {
            assert_eq!(parties(protocol, 5), 3);
            assert!(!needs_threshold(protocol) && needs_threshold("shamir"));
            let of = |asked| threshold(protocol, 3, asked, 1).expect("the protocol judges it");
            let Properties { quorum, keeps_stock, .. } =
                properties(protocol, 3, of(None)).expect("it serves");
            assert_eq!((quorum, keeps_stock), (3, false));
            assert!(properties(protocol, 3, of(Some(2))).is_err() && properties(protocol, 4, 1).is_err());
        }
    }

    #[test]
    fn of_nodes_that_correct_each_other_fewer_than_a_third_may_cheat_and_no_fewer() {
        let of = |nodes| threshold("shamir-active", nodes, None, 1).expect("a default");
        assert_eq!([4, 6, 7, 9].map(of), [1, 1, 2, 2]);
        assert_eq!(threshold("shamir-active", 7, Some(1), 1).expect("a choice"), 1);
        assert!(properties("shamir-active", 3, of(3)).is_err());
        let four = properties("shamir-active", parties("shamir-active", 3), 1).expect("four nodes");
        assert!(four.guarantees_output && four.keeps_stock && four.verifies && four.quorum == 3);
    }
}
