//! Commands of an issuer to a card (EMV Book 2, section 9).

use crate::payment::Role;
use crate::purpose::Purpose;

/// The role of the key for the integrity of scripts.
pub(crate) fn integrity_role() -> Role {
    let takes = |purpose: &Purpose| *purpose == Purpose::EmvIntegrity;
    Role { name: "master key for script integrity", takes }
}
