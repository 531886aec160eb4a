//! Random bytes from all nodes that answer: their sum (`crates/node/src/server/random.rs` says why that is
//! enough).

use polyclave_api::{MAX_RANDOM, Operation, Reply, operations};
use polyclave_protocol::service::ServiceConfig;
use zeroize::Zeroizing;

use crate::client::Client;
use crate::{Error, Result};

impl Client {
    /// Random bytes, at most [`MAX_RANDOM`]. As many nodes contribute as serve a request, at least; so at
    /// least one of them is honest wherever the cluster protects a key, and nobody else knows the bytes or
    /// could choose any.
    pub fn random(&self, bytes: usize) -> Result<Zeroizing<Vec<u8>>> {
        if bytes == 0 || bytes > MAX_RANDOM {
            return Err(Error::Misuse(format!("{bytes} random bytes; a request gets 1 to {MAX_RANDOM}")));
        }
        let answers = self.ask_each(
            &Operation::Random(operations::Random { bytes: bytes as u32 }),
            |reply| match reply {
                Reply::Random(drawn) => Some(Zeroizing::new(drawn)).filter(|drawn| drawn.len() == bytes),
                _ => None,
            },
        );
        let (nodes, needed) = (answers.len(), self.groups[0].config.quorum());
        let (mut sum, mut reached, mut failed) = (Zeroizing::new(vec![0; bytes]), 0, Vec::new());
        for (node, answer) in answers {
            match answer {
                Ok(drawn) => {
                    sum.iter_mut().zip(drawn.iter()).for_each(|(sum, drawn)| *sum ^= drawn);
                    reached += 1;
                }
                Err(e) => failed.push((node, e)),
            }
        }
        if reached >= needed {
            return Ok(sum);
        }
        // Why a node refused says more than how many did.
        match failed.iter().position(|(_, e)| matches!(e, Error::Refused { .. })) {
            Some(first) => Err(failed.swap_remove(first).1),
            None => Err(Error::TooFewNodes { reached, nodes, needed, why: self.first().why_not(&failed) }),
        }
    }
}
