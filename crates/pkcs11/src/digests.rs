//! Digests, computed in the process.

use cryptoki_sys::*;
use sha2::Digest as _;
use sha2::{Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

use crate::mechanism::{Mechanism, entry_for};
use crate::rv::{Result, Rv};

/// A digest under way.
#[derive(Clone)]
pub(crate) struct Digest {
    state: State,
    /// Whether it got its first part by an update.
    pub(crate) is_multipart: bool,
}

#[derive(Clone)]
enum State {
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Digest {
    pub(crate) fn begin(mechanism: &Mechanism) -> Result<Digest> {
        entry_for(mechanism.kind, CKF_DIGEST)?;
        let state = match mechanism.kind {
            CKM_SHA256 => State::Sha256(Sha256::new()),
            CKM_SHA384 => State::Sha384(Sha384::new()),
            CKM_SHA512 => State::Sha512(Sha512::new()),
            _ => return Err(Rv(CKR_MECHANISM_INVALID)),
        };
        Ok(Digest { state, is_multipart: false })
    }

    pub(crate) fn bytes(&self) -> usize {
        match self.state {
            State::Sha256(_) => 32,
            State::Sha384(_) => 48,
            State::Sha512(_) => 64,
        }
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        match &mut self.state {
            State::Sha256(state) => state.update(data),
            State::Sha384(state) => state.update(data),
            State::Sha512(state) => state.update(data),
        }
    }

    pub(crate) fn finish(self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match self.state {
            State::Sha256(state) => state.finalize().to_vec(),
            State::Sha384(state) => state.finalize().to_vec(),
            State::Sha512(state) => state.finalize().to_vec(),
        })
    }
}
