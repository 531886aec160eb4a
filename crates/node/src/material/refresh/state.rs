//! Where each node stands in a refresh, and what all nodes conclude from it.

use polyclave_protocol::{Error, Party};

use crate::Result;

/// Where a node stands, as it tells the others. Encoded by hand, because all nodes exchange messages of one
/// known length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RefreshState {
    pub(super) wants: bool,
    pub(super) in_use: [u8; 32],
    pub(super) prepared: Option<[u8; 32]>,
}

/// What to do in a round.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// All nodes have stored what has this id. The nodes that have it prepared take it into use.
    Complete([u8; 32]),
    /// No node has taken anything into use that this node lacks.
    Begin,
    /// Some nodes do not want it (yet).
    Nothing,
}

/// What all nodes conclude from where each of them stands.
pub(super) fn next_step(all: &[(Party, RefreshState)]) -> Result<NextStep> {
    let prepared = all.iter().find_map(|(_, s)| s.prepared.filter(|p| all.iter().all(|(_, s)| s.stored(p))));
    if let Some(id) = prepared {
        return Ok(NextStep::Complete(id));
    }
    // Each node has said this of itself. It does not show whose word is true, or which node was left behind.
    if let Some((party, _)) = all.iter().find(|(_, s)| s.in_use != all[0].1.in_use) {
        return Err(Error::System(format!(
            "{party} says that it uses other common secrets than {}; restore the backup of the node that was left behind",
            all[0].0
        )));
    }
    Ok(if all.iter().all(|(_, s)| s.wants) { NextStep::Begin } else { NextStep::Nothing })
}

impl RefreshState {
    /// Whether the secrets with this id are on the node's disk.
    pub(super) fn stored(&self, id: &[u8; 32]) -> bool {
        self.in_use == *id || self.prepared == Some(*id)
    }

    pub(super) fn encode(&self) -> [u8; 65] {
        let mut bytes = [u8::from(self.wants); 65];
        bytes[1..33].copy_from_slice(&self.in_use);
        bytes[33..].copy_from_slice(&self.prepared.unwrap_or_default());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; 65]) -> RefreshState {
        let id = |from: usize| {
            let mut id = [0; 32];
            id.copy_from_slice(&bytes[from..from + 32]);
            id
        };
        let prepared = Some(id(33)).filter(|prepared| *prepared != [0; 32]);
        RefreshState { wants: bytes[0] == 1, in_use: id(1), prepared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: [u8; 32] = [1; 32];
    const P: [u8; 32] = [2; 32];

    /// Whether a refresh is wanted, the setup in use, and the prepared one.
    type Brief = (bool, [u8; 32], Option<[u8; 32]>);

    fn at(standings: &[Brief]) -> Result<NextStep> {
        let all = Party::all(standings.len()).zip(standings.iter());
        let all =
            all.map(|(party, &(wants, in_use, prepared))| (party, RefreshState { wants, in_use, prepared }));
        next_step(&all.collect::<Vec<_>>())
    }

    #[test]
    fn what_all_have_stored_is_completed_and_nothing_else() {
        let (wanted, ready, done) = ((true, S, None), (true, S, Some(P)), (false, P, None));
        assert_eq!(at(&[wanted, wanted]), Ok(NextStep::Begin));
        assert_eq!(at(&[wanted, (false, S, None)]), Ok(NextStep::Nothing));
        assert_eq!(at(&[ready, wanted]), Ok(NextStep::Begin), "nobody can be at P");
        assert_eq!(at(&[ready, ready]), Ok(NextStep::Complete(P)));
        assert_eq!(at(&[ready, done]), Ok(NextStep::Complete(P)));
        assert_eq!(at(&[done, ready, ready]), Ok(NextStep::Complete(P)));
        assert_eq!(at(&[ready, (true, S, Some([3; 32]))]), Ok(NextStep::Begin));
        assert!(at(&[done, wanted]).is_err(), "that one was restored from before");
    }

    #[test]
    fn a_standing_is_read_as_it_was_told() {
        for (wants, prepared) in [(true, None), (false, Some(P))] {
            let refresh_state = RefreshState { wants, in_use: S, prepared };
            assert!(RefreshState::decode(&refresh_state.encode()) == refresh_state);
        }
    }
}
