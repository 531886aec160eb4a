//! What the protocol of a cluster promises, and among how many nodes.

use anyhow::{Result, bail};
use polyclave_protocol::Error;
use polyclave_protocol::service::{ServiceScheme, Visitor, with_scheme};

/// What a person ought to know of a protocol among so many nodes.
pub struct Properties {
    /// One sentence on whom it protects against.
    pub adversary: String,
    /// So many nodes serve a request.
    pub least_servers: usize,
    /// Whether answers are right whatever the other nodes do.
    pub verifies: bool,
    /// Whether the nodes make something afresh after each start of one of them, and keep material in stock.
    pub renews: bool,
}

/// The properties of a protocol; an error if so many nodes cannot serve with it.
pub fn properties(protocol: &str, nodes: usize, threshold: usize) -> Result<Properties> {
    struct Ask;
    impl Visitor for Ask {
        type Output = Properties;
        fn visit<S: ServiceScheme>(self, scheme: S) -> Result<Properties, Error> {
            Ok(Properties {
                adversary: scheme.adversary(),
                least_servers: scheme.least_servers(),
                verifies: scheme.verifies(),
                renews: scheme.renews(),
            })
        }
    }
    Ok(with_scheme(protocol, nodes, threshold, Ask)?)
}

/// One sentence on whom a protocol protects against; an error if so many nodes cannot serve with it.
pub fn adversary(protocol: &str, nodes: usize, threshold: usize) -> Result<String> {
    Ok(properties(protocol, nodes, threshold)?.adversary)
}

/// Whether a protocol shares among all nodes, so that only all of them together have a key.
pub fn takes_all(protocol: &str) -> bool {
    protocol.starts_with("spdz") || protocol.starts_with("tinytable")
}

/// The number of nodes that together learn nothing: as asked for, if the protocol allows a choice.
pub fn threshold(protocol: &str, nodes: usize, asked: Option<usize>, otherwise: usize) -> Result<usize> {
    if !takes_all(protocol) {
        return Ok(asked.unwrap_or(otherwise));
    }
    let most = nodes.saturating_sub(1);
    match asked {
        Some(asked) if asked != most => bail!(
            "under {protocol} any {most} of {nodes} nodes learn nothing, and all {nodes} serve; --threshold {asked} cannot be \
             chosen: leave it out"
        ),
        _ => Ok(most),
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
}
