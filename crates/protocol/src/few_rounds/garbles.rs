//! What circuits on the values of a protocol have to do.

use polyclave_cipher::{Cells, Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::Kept;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Session};
use crate::interface::service::ServiceSession;
use crate::{Error, Result};

/// A value of the protocol whose values go in and out.
pub type Shared<G> = <<G as Garbles>::Rounds as Session>::Shared;

/// A mask of the protocol, and bytes under it.
pub type Masked<'a, G> = (&'a <<G as Garbles>::Rounds as ServiceSession>::Mask, &'a [u8]);

/// One party in a session of a protocol and of garbled circuits on its values.
pub trait Garbles: Send + 'static {
    /// Values that go in and out.
    type Rounds: ServiceSession;
    /// A garbled circuit of one lane that waits for its only use.
    type Circuit: Send + 'static;
    /// An evaluation of a circuit for each lane.
    type Evaluations: 'static;

    /// The session of the protocol.
    fn rounds(&self) -> &Self::Rounds;

    /// The same.
    fn rounds_mut(&mut self) -> &mut Self::Rounds;

    /// This party's parts of new circuits, to be stored.
    fn make(&mut self, kept: &Kept, count: usize, net: &mut dyn Net) -> Result<Vec<Zeroizing<Vec<u8>>>>;

    /// Bytes of each part.
    fn item_bytes(&self, kept: &Kept) -> usize;

    /// Reads such a part. The stock has marked it as spent, durably.
    fn restore(&self, item: &[u8]) -> Result<Self::Circuit>;

    /// Begins to evaluate.
    fn begin(&mut self, kept: &Kept, circuits: Vec<Self::Circuit>) -> Result<Self::Evaluations>;

    /// Shares of an input, which all parties see alike.
    fn share(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared<Self>>,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared<Self>>;

    /// The sum of two values of one shape.
    fn plus(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>>;

    /// The outputs of a circuit without lookups. Local.
    fn sums(
        &mut self,
        circuit: &Compiled,
        inputs: &[&Shared<Self>],
        lanes: usize,
    ) -> Result<Vec<Shared<Self>>>;

    /// Some cells of a value, which fits a port and has these cells. Local.
    fn cells(&self, value: &Shared<Self>, port: &CompiledPort, cells: &[usize]) -> Result<Shared<Self>>;

    /// Gives the block and the cells of round keys of each lane to its circuit. What has to be checked of
    /// them before is checked here.
    fn give(
        &mut self,
        kept: &Kept,
        values: [Value<Shared<Self>>; 2],
        evaluations: &mut Self::Evaluations,
        net: &mut dyn Net,
    ) -> Result<()>;

    /// Evaluates, and shares the outputs.
    fn settle(&mut self, kept: &Kept, evaluations: &mut Self::Evaluations, net: &mut dyn Net) -> Result<()>;

    /// The output of all lanes, in the cells of a port.
    fn output(
        &mut self,
        kept: &Kept,
        port: &CompiledPort,
        evaluations: &mut Self::Evaluations,
    ) -> Result<Shared<Self>>;

    /// Whether circuits can open sums as soon as they are evaluated.
    const OPENS_SUMS: bool = false;

    /// Blocks through a circuit for each, all but the first opened in their sum with what is under a mask
    /// ([`ServiceSession::evaluate_and_open_sum`]).
    fn open_sums(
        &mut self,
        _kept: &Kept,
        _circuits: Vec<Self::Circuit>,
        _values: [Value<Shared<Self>>; 2],
        _masked: Masked<'_, Self>,
        _net: &mut dyn Net,
    ) -> Result<(Shared<Self>, Vec<u8>)> {
        Err(Error::misuse("these circuits open no sums"))
    }

    /// After an error of a peer, or of a claim, nothing more is computed or released.
    fn or_give_up<T>(&mut self, outcome: Result<T>) -> Result<T>;
}

/// What circuits get.
pub enum Value<S> {
    /// In all lanes.
    Public(Cells),
    /// In all lanes, or the same for all.
    Shared(S),
}

impl<S> Value<S> {
    /// Of a public value, the bits of one lane.
    pub fn bits_of_lane(cells: &Cells, lane: usize) -> Result<Cells> {
        let bytes = cells.part(lane..lane + 1).to_blocks();
        Cells::from_blocks(8 * bytes.len(), 1, &bytes).map_err(|error| Error::Misuse(error.to_string()))
    }
}

/// Refuses a value of more or fewer lanes than an input has.
pub fn refuse_other_lanes(port: &CompiledPort, given: usize, wanted: usize) -> Result<()> {
    match given == wanted {
        true => Ok(()),
        false => Err(Error::Misuse(format!("input {} has {wanted} lanes, and {given} are given", port.name))),
    }
}
