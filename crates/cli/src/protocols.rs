//! What the protocol of a cluster promises.

use anyhow::Result;
use polyclave_protocol::Error;
use polyclave_protocol::service::{ServiceScheme, Visitor, with_scheme};

/// One sentence on whom a protocol protects against; an error if so many nodes cannot serve with it.
pub fn adversary(protocol: &str, nodes: usize, threshold: usize) -> Result<String> {
    struct Ask;
    impl Visitor for Ask {
        type Output = String;
        fn visit<S: ServiceScheme>(self, scheme: S) -> Result<String, Error> {
            Ok(scheme.adversary())
        }
    }
    Ok(with_scheme(protocol, nodes, threshold, Ask)?)
}
