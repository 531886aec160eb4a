//! Where each node stands in a move of all keys, and what all nodes conclude from it.

use polyclave_protocol::{Error, Party};

use super::plan::Plan;
use crate::Result;

/// Where a node stands, as it tells the others. Encoded by hand, because all nodes exchange messages of one
/// known length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReshareState {
    /// The old cluster's common secrets; zeros at a node that is new, or done.
    pub(crate) in_use: [u8; 32],
    /// Those of a refresh that was prepared and not taken into use.
    pub(crate) refresh: Option<[u8; 32]>,
    /// The move that is prepared, or done.
    pub(crate) prepared: Option<[u8; 32]>,
    pub(crate) is_done: bool,
}

const BYTES: usize = 3 * 32 + 1;

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// All nodes have stored what has this id. Those that are not done take it into use.
    Complete([u8; 32]),
    /// No node is done: all begin anew. Before that, the old nodes finish a refresh that all of them have
    /// stored.
    Begin(Option<[u8; 32]>),
}

/// What all nodes conclude from where each of them stands.
pub(crate) fn next_step(all: &[ReshareState], plan: &Plan) -> Result<NextStep> {
    let name = |place: usize| plan.name(Party(place as u8));
    let done = all.iter().find(|s| s.is_done).and_then(|s| s.prepared);
    let common =
        all.first().and_then(|s| s.prepared).filter(|id| all.iter().all(|s| s.prepared == Some(*id)));
    if let Some(id) = common {
        return Ok(NextStep::Complete(id));
    }
    if let Some(id) = done {
        let lacking = all.iter().position(|s| s.prepared != Some(id)).unwrap_or_default();
        return Err(Error::System(format!(
            "some nodes are done with this reshare, and {} says that it has prepared nothing: it runs on another disk, or a backup of it was \
             restored. Restore the one that it had at the reshare, or reshare again from the nodes that are done, without it",
            name(lacking)
        )));
    }
    let old: Vec<(usize, &ReshareState)> = plan
        .roles()
        .zip(all)
        .filter(|((_, role), _)| role.old.is_some())
        .map(|((place, _), reshare_state)| (place.index(), reshare_state))
        .collect();
    let has = |s: &ReshareState, id: [u8; 32]| s.in_use == id || s.refresh == Some(id);
    let refreshed = old.iter().find_map(|(_, s)| s.refresh.filter(|id| old.iter().all(|(_, s)| has(s, *id))));
    if refreshed.is_some() {
        return Ok(NextStep::Begin(refreshed));
    }
    // Each has said this of itself. It does not show which of them was left behind.
    let most_used = |id: [u8; 32]| old.iter().filter(|(_, s)| s.in_use == id).count();
    let usual = old.iter().map(|(_, s)| s.in_use).max_by_key(|id| most_used(*id)).unwrap_or_default();
    match old.iter().find(|(_, s)| s.in_use != usual) {
        Some((place, _)) => Err(Error::System(format!(
            "{} has other common secrets than the other old nodes: it runs on a disk or backup from before a refresh. Restore its backup from \
             after the refresh, or leave it out (--lost {0})",
            name(*place)
        ))),
        None => Ok(NextStep::Begin(None)),
    }
}

impl ReshareState {
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [u8::from(self.is_done); BYTES];
        bytes[1..33].copy_from_slice(&self.in_use);
        bytes[33..65].copy_from_slice(&self.refresh.unwrap_or_default());
        bytes[65..].copy_from_slice(&self.prepared.unwrap_or_default());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; BYTES]) -> ReshareState {
        let id = |from: usize| {
            let mut id = [0; 32];
            id.copy_from_slice(&bytes[from..from + 32]);
            id
        };
        let some = |from: usize| Some(id(from)).filter(|id| *id != [0; 32]);
        ReshareState { in_use: id(1), refresh: some(33), prepared: some(65), is_done: bytes[0] == 1 }
    }
}
