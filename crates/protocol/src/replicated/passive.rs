//! Parties that follow the protocol: nothing is verified.

use polyclave_cipher::Cells;

use super::Setup;
use super::security::AdversaryModel;
use crate::release::Unverified;
use crate::session::Stream;

/// Against a party that only looks on.
pub struct Passive;

impl AdversaryModel for Passive {
    type Released = Unverified<Cells>;

    fn new(_: &Setup, _: &Stream) -> Passive {
        Passive
    }

    fn released(cells: Cells) -> Unverified<Cells> {
        Unverified::new(cells)
    }
}
