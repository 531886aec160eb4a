//! What nodes tell each other outside of requests: that they are alive, and which channels to open.
//!
//! Every node sends one control stream to every other. It begins with a greeting in both directions: the
//! digest of the cluster, and what the node's store remembers. From that, peers recognise a node that was put
//! back to an old copy of its disk, and refuse it until an operator readmits it. Then the sender sends
//! orders, or a beat when there are none. A beat has what the others must know about the sender's state: its
//! epoch, the levels of its stock, whether it is under quarantine, how far a rotation has come, the mark of
//! its store, and which mark of the receiver it holds ([`crate::peers::marks`]).

#[cfg(test)]
mod fuzz;

use polyclave_api as api;
use polyclave_protocol::versions::FeatureSet;
use polyclave_protocol::{Party, PartySet};
use polyclave_store::{Mark, Past};
use polyclave_transport::TlsNet;
use serde::{Deserialize, Serialize};

use crate::Result;

/// Kinds of material that a beat has a level for: the first ones of a protocol. No protocol has more in which
/// nodes go by each other's levels.
pub(super) const KINDS: usize = 8;

/// The longest release of another program that people are shown.
const MAX_SHOWN: usize = 32;

/// By kind: material in stock, in thousandths of the target level.
pub(crate) type Levels = [u16; KINDS];

/// What a node asks of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Nothing: the sender is alive, and in this state.
    Beat(Beat),
    /// Open a channel among a set of nodes. The sender is the first of them.
    Channel { serving: PartySet, name: [u8; 16] },
    /// Agree on common secrets, all nodes together.
    Setup { name: [u8; 16] },
    /// Make an epoch, all nodes together.
    Renew { name: [u8; 16] },
    /// Make a number of items of a kind of material, all nodes together: for the stock, or for the request
    /// with this id of another worker of each node.
    Fill { name: [u8; 16], kind: u8, count: u32, request: Option<[u8; 16]> },
    /// Take part in a round of a rotation, all nodes together.
    Rotate { name: [u8; 16] },
    /// Give keys to the standby pair of this number, all nodes together.
    Standby { name: [u8; 16], pair: u8 },
}

/// What a node tells one peer while nothing else is to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) state: State,
    /// The latest change of its store.
    pub(crate) mark: Mark,
    /// The latest change of the peer's store that the sender remembers durably.
    pub(crate) holds: u64,
    /// The sender's clock, in seconds since 1970.
    pub(crate) now: u64,
}

/// What a node tells its peers about itself with every beat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The id of its epoch; zeros if it has none.
    pub(crate) epoch: [u8; 32],
    /// It serves nothing, because a check failed.
    pub(crate) quarantined: bool,
    /// Its operator wants fresh common secrets.
    pub(crate) wants_refresh: bool,
    /// It has stored fresh common secrets that are not yet in use.
    pub(crate) prepared: bool,
    /// The levels of its stock.
    pub(crate) levels: Levels,
    /// How many keys it has.
    pub(crate) keys: u32,
    /// For which of the standby pairs it lacks shares of keys, a bit each, by their numbers.
    pub(crate) lacks_standby: u8,
    /// The features that its operator has switched on.
    pub(crate) features: FeatureSet,
}

/// What a node says of itself at the beginning of a control stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// Digest of everything that must be equal between nodes.
    pub(crate) cluster: [u8; 32],
    /// What its store remembers of its changes and starts.
    pub(crate) past: Past,
    /// As [`Beat::holds`].
    pub(crate) holds: u64,
    /// The id of the agreed common secrets, or zeros.
    pub(crate) setup: [u8; 32],
    /// The id of the common secrets that are stored and not yet in use, or zeros.
    pub(crate) prepared: [u8; 32],
    /// The state that its beats report from then on.
    pub(crate) state: State,
    /// The release that its program is, for people. What it speaks, the transport has found out.
    pub(crate) release: String,
    /// The features that its program knows.
    pub(crate) knows: FeatureSet,
    /// A digest of the last certificate of the receiver in the sender's cluster file
    /// ([`Members::digest_of_last`](crate::members::Members::digest_of_last)).
    pub(crate) lists: [u8; 32],
}

impl Greeting {
    /// The release that its sender says it is, as people may be shown it.
    pub(crate) fn shown_release(&self) -> String {
        let printable = |c: &char| c.is_ascii_graphic() || *c == ' ';
        self.release.chars().filter(printable).take(MAX_SHOWN).collect()
    }

    /// Exchanges greetings with the only peer of a control stream.
    pub(crate) fn exchange(&self, peer: Party, net: &mut TlsNet) -> Result<Greeting> {
        api::send(net, peer, self)?;
        api::decode(&api::receive_bytes(net, peer)?, peer)
    }
}

/// The name of the control stream from one node to another.
pub(crate) fn control_stream(from: Party, to: Party) -> String {
    format!("orders of {from} to {to}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_store::Start;

    #[test]
    fn orders_come_back_and_others_are_refused() {
        let mark = Mark { number: 1 << 40 | 7, value: [9; 16] };
        let beat = |state| Order::Beat(Beat { state, mark, holds: 1 << 50 | 3, now: 1 << 31 });
        let orders = [
            Order::Beat(Beat::default()),
            beat(State { epoch: [3; 32], quarantined: true, prepared: true, ..State::default() }),
            beat(State { keys: 70_000, lacks_standby: 5, ..State::default() }),
            beat(State { features: FeatureSet::from_bytes([1; 8]), ..State::default() }),
            beat(State { levels: [1, 0, 1000, 4, 5, 6, 7, u16::MAX], ..State::default() }),
            beat(State { wants_refresh: true, ..State::default() }),
            Order::Channel { serving: PartySet::all(3), name: [7; 16] },
            Order::Setup { name: [9; 16] },
            Order::Renew { name: [1; 16] },
            Order::Fill { name: [2; 16], kind: 3, count: 640, request: None },
            Order::Fill { name: [2; 16], kind: 3, count: 640, request: Some([5; 16]) },
            Order::Rotate { name: [4; 16] },
            Order::Standby { name: [6; 16], pair: 2 },
        ];
        for order in orders {
            let bytes = api::encode(&order).expect("it is small");
            assert_eq!(api::decode(&bytes[4..], Party(1)), Ok(order));
        }
        assert!(api::decode::<Order>(&[9; 64], Party(1)).is_err());
    }

    #[test]
    fn a_greeting_is_read_as_it_was_written() {
        let starts = vec![Start { first: 7, boot: [5; 16] }, Start { first: 1, boot: [6; 16] }];
        let past = Past { number: 9, recent: vec![[1; 16], [2; 16]], starts };
        let state = State { epoch: [4; 32], quarantined: true, ..State::default() };
        let greeting = Greeting {
            cluster: [1; 32],
            past,
            holds: 5,
            setup: [2; 32],
            prepared: [3; 32],
            state,
            release: "0.2.0".into(),
            knows: FeatureSet::from_bytes([5; 8]),
            lists: [6; 32],
        };
        let bytes = api::encode(&greeting).expect("encoded");
        assert_eq!(api::decode::<Greeting>(&bytes[4..], Party(1)), Ok(greeting.clone()));
        assert!(api::decode::<Greeting>(&bytes[4..bytes.len() - 1], Party(1)).is_err());

        let other = Greeting { release: format!("9.9\n\u{1b}{}", "x".repeat(1000)), ..greeting };
        let shown = other.shown_release();
        assert!(shown.starts_with("9.9xxx") && shown.len() == MAX_SHOWN, "{shown}");
    }
}
