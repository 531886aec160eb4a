//! The part of a protocol that a client runs: putting together what the nodes send.

use polyclave_protocol::service::{Element, ServiceScheme, Visitor};
use polyclave_protocol::{PartySet, Result};
use zeroize::Zeroizing;

/// A [`ServiceScheme`] without its types.
pub(crate) trait Combine: Send + Sync {
    fn least_servers(&self) -> usize;
    fn corrects(&self) -> bool;
    fn bytes(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>>;
    fn elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>>;
}

impl<S: ServiceScheme> Combine for S {
    fn least_servers(&self) -> usize {
        ServiceScheme::least_servers(self)
    }

    fn corrects(&self) -> bool {
        ServiceScheme::corrects(self)
    }

    fn bytes(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        self.combine(serving, messages)
    }

    fn elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        self.combine_elements(serving, messages)
    }
}

/// Makes one.
pub(crate) struct Combiner;

impl Visitor for Combiner {
    type Output = Box<dyn Combine>;

    fn visit<S: ServiceScheme>(self, scheme: S) -> Result<Box<dyn Combine>> {
        Ok(Box::new(scheme))
    }
}
