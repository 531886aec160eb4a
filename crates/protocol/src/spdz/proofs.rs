//! Messages that prove a value to a client and were made ahead, with the circuit that the value came out of
//! (`garbled/behind.rs`). They go with the value, and out of it with the first answer.

use std::sync::Arc;

use parking_lot::Mutex;
use zeroize::Zeroizing;

/// Of all lanes of a value, or of none.
#[derive(Clone, Default)]
pub(super) struct Proofs(Vec<OfLane>);

#[derive(Clone)]
struct OfLane {
    /// Of the session: in another one, parties could come to it in another order.
    stream: [u8; 40],
    message: Arc<Mutex<Option<Zeroizing<Vec<u8>>>>>,
}

impl Proofs {
    /// A message for each lane of a value, in a session.
    pub(super) fn of(stream: [u8; 40], messages: impl IntoIterator<Item = Zeroizing<Vec<u8>>>) -> Proofs {
        let of_lane = |message| OfLane { stream, message: Arc::new(Mutex::new(Some(message))) };
        Proofs(messages.into_iter().map(of_lane).collect())
    }

    /// Of the lanes of these numbers.
    pub(super) fn select(&self, lanes: &[usize]) -> Proofs {
        match self.0.is_empty() {
            true => Proofs::default(),
            false => Proofs(lanes.iter().map(|lane| self.0[*lane].clone()).collect()),
        }
    }

    /// Of the lanes of all parts.
    pub(super) fn join<'a>(parts: impl Iterator<Item = &'a Proofs> + Clone) -> Proofs {
        match parts.clone().any(|part| part.0.is_empty()) {
            true => Proofs::default(),
            false => Proofs(parts.flat_map(|part| part.0.iter().cloned()).collect()),
        }
    }

    /// The messages of all lanes, for their only use; `None` if one is missing. All parties take the same in
    /// the same order, and so find the same missing.
    pub(super) fn take(&self, stream: &[u8; 40]) -> Option<Vec<u8>> {
        if self.0.is_empty() || self.0.iter().any(|lane| lane.stream != *stream) {
            return None;
        }
        let taken: Vec<_> = self.0.iter().map(|lane| lane.message.lock().take()).collect();
        let messages: Vec<_> = taken.into_iter().collect::<Option<_>>()?;
        // Its full size at once: growing would leave shares behind.
        let mut all = Vec::with_capacity(messages.iter().map(|message| message.len()).sum());
        messages.iter().for_each(|message| all.extend_from_slice(message));
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stream: u8, messages: &[u8]) -> Proofs {
        Proofs::of([stream; 40], messages.iter().map(|message| Zeroizing::new(vec![*message])))
    }

    #[test]
    fn a_message_is_taken_once_whoever_has_the_lane_and_in_its_session_alone() {
        let all = of(1, &[1, 2, 3]);
        let some = all.select(&[2, 0]);
        assert_eq!(all.take(&[2; 40]), None, "of another session");
        assert_eq!(some.take(&[1; 40]), Some(vec![3, 1]));
        assert!(some.take(&[1; 40]).is_none() && all.take(&[1; 40]).is_none());
        assert!(of(1, &[7]).select(&[0, 0]).take(&[1; 40]).is_none(), "a lane twice");
    }

    #[test]
    fn a_value_has_proofs_of_all_its_lanes_or_none() {
        let parts = [of(1, &[1, 2]), of(1, &[3]), Proofs::default()];
        assert!(Proofs::join(parts.iter()).take(&[1; 40]).is_none());
        assert_eq!(Proofs::join(parts[..2].iter()).take(&[1; 40]), Some(vec![1, 2, 3]));
        assert!(Proofs::default().select(&[]).take(&[1; 40]).is_none());
    }
}
