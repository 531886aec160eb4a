//! Nodes that cheat, as far as their protocol withstands it: answers stay right, or are refused.

use polyclave_node::Cheat;

use super::chance::random;

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

/// One of the ways in which a node may cheat under a protocol with checks, or without.
pub(super) fn any(has_checks: bool) -> Cheat {
    let ways = match has_checks && random(4) > 0 {
        true => &LIES[..],
        false => &HINDERS[..],
    };
    ways[random(ways.len() as u64) as usize]
}
