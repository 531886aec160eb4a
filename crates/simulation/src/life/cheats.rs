//! Nodes that cheat, as far as their protocol withstands it: answers stay right, or are refused.

use std::time::Duration;

use polyclave_node::Cheat;

use super::chance::{random, random_time};
use crate::cluster::Cluster;
use crate::machines::clock::{elapsed, sleep};

/// How long a node that cheats may take until all nodes serve.
const START: Duration = Duration::from_secs(30);
/// How long clients meet it at least, and how much longer at most, before something else happens.
const MEETING: Duration = Duration::from_secs(10);
const LONGER: Duration = Duration::from_secs(30);

/// What a node does that brings about no wrong answer under any protocol: it hinders, or is late.
const HINDERS: [Cheat; 6] = [
    Cheat::RefusesSteps,
    Cheat::ClaimsToWork,
    Cheat::Hangs,
    Cheat::AnswersLate,
    Cheat::HoldsNothing,
    Cheat::LeavesHellos,
];
/// What only protocols with checks withstand.
const LIES: [Cheat; 4] = [Cheat::InOpenings, Cheat::InProducts, Cheat::InCircuits, Cheat::InAnswers];

/// Lets clients meet the node that cheats: it takes a while to start.
pub(super) fn let_clients_meet(cluster: &Cluster) {
    let until = elapsed() + START;
    while !cluster.is_ready() && elapsed() < until {
        sleep(Duration::from_secs(1));
    }
    sleep(MEETING + random_time(LONGER));
}

/// One of the ways in which a node may cheat under a protocol with checks, or without.
pub(super) fn any(has_checks: bool) -> Cheat {
    let ways = match has_checks && random(4) > 0 {
        true => &LIES[..],
        false => &HINDERS[..],
    };
    ways[random(ways.len() as u64) as usize]
}
