//! Evaluations of many lanes, cut into pieces that fit into a request's memory.
//!
//! All nodes cut the lanes in the same way: what a lane takes follows from the circuit and the protocol, and
//! the nodes compare a request's memory in the hello round. Pieces are independent evaluations in one
//! session, as the steps of a client are. They are nearly equal in size, so that one piece can reuse the
//! memory of the one before.
//!
//! A node whose client is gone may end a request when it has the material of a piece, before it computes the
//! piece ([`Progress::refuse_ended`]). Then it has taken part in every check and in every claim of material
//! that another node has begun: a node that is behind has been sent all that it waits for, and a node that is
//! ahead waits for this one's part of the evaluation.

use std::ops::Range;

use crate::Result;
use polyclave_cipher::{Cells, Compiled};
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;

use crate::computation::progress::Progress;

/// Evaluates a circuit on some lanes in about `bytes` bytes of memory. Its outputs have all lanes.
pub(crate) fn evaluate_within(
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuit: &Compiled,
    lanes: usize,
    inputs: &[Input<'_, AnyShared>],
    (bytes, progress): (usize, &Progress),
) -> Result<Vec<AnyShared>> {
    let most = protocol.lanes_within(circuit, bytes);
    progress.begin(lanes);
    if lanes <= most {
        let outputs = run_wanted(protocol, net, circuit, lanes, inputs, progress)?;
        progress.advance(lanes);
        return Ok(outputs);
    }
    let mut parts: Vec<Vec<AnyShared>> = circuit.outputs().iter().map(|_| Vec::new()).collect();
    for piece in cut(lanes, most) {
        let of_piece: Vec<Part<AnyShared>> = circuit
            .inputs()
            .iter()
            .zip(inputs)
            .map(|(port, input)| match input {
                Input::Public(cells) if !port.uniform => Part::Public(cells.part(piece.clone())),
                Input::Shared(shared) if !port.uniform => Part::Shared(protocol.lanes(shared, piece.clone())),
                _ => Part::Whole,
            })
            .collect();
        let inputs: Vec<Input<'_, AnyShared>> =
            inputs.iter().zip(&of_piece).map(|(input, part)| part.or(input)).collect();
        let outputs = run_wanted(protocol, net, circuit, piece.len(), &inputs, progress)?;
        parts.iter_mut().zip(outputs).for_each(|(parts, output)| parts.push(output));
        progress.advance(piece.len());
    }
    Ok(parts.iter().map(|parts| protocol.join_lanes(&parts.iter().collect::<Vec<_>>())).collect())
}

/// The same in one piece, unless the request is to end.
fn run_wanted(
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuit: &Compiled,
    lanes: usize,
    inputs: &[Input<'_, AnyShared>],
    progress: &Progress,
) -> Result<Vec<AnyShared>> {
    let batch = prepare(protocol, circuit, lanes, net)?;
    progress.refuse_ended()?;
    evaluate(protocol, circuit, lanes, inputs, batch, net)
}

/// A value that does not fit a circuit is the caller's mistake. A shared value stays shared.
pub(crate) fn run(
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuit: &Compiled,
    lanes: usize,
    inputs: &[Input<'_, AnyShared>],
) -> Result<Vec<AnyShared>> {
    let batch = prepare(protocol, circuit, lanes, net)?;
    evaluate(protocol, circuit, lanes, inputs, batch, net)
}

/// The part of an input that a piece uses.
enum Part<S> {
    Public(Cells),
    Shared(S),
    /// The same in every piece.
    Whole,
}

impl<S> Part<S> {
    fn or<'a>(&'a self, whole: &'a Input<'a, S>) -> Input<'a, S> {
        match self {
            Part::Public(cells) => Input::Public(cells),
            Part::Shared(shared) => Input::Shared(shared),
            Part::Whole => reborrow(whole),
        }
    }
}

pub(crate) fn reborrow<'b, S>(input: &Input<'b, S>) -> Input<'b, S> {
    match input {
        Input::Public(cells) => Input::Public(cells),
        Input::Mine(cells) => Input::Mine(cells),
        Input::From(party) => Input::From(*party),
        Input::Shared(shared) => Input::Shared(shared),
    }
}

/// Cuts the lanes into as few pieces as possible of at most `most` lanes. Their lengths differ by at most
/// one.
fn cut(lanes: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let pieces = lanes.div_ceil(most.max(1)).max(1);
    (0..pieces).map(move |i| lanes * i / pieces..lanes * (i + 1) / pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_few_and_nearly_equal_and_have_every_lane_once() {
        for (lanes, most, expected) in
            [(5, 5, vec![5]), (16_385, 16_384, vec![8192, 8193]), (7, 3, vec![2, 2, 3]), (3, 1, vec![1; 3])]
        {
            let pieces: Vec<Range<usize>> = cut(lanes, most).collect();
            assert_eq!(pieces.iter().map(Range::len).collect::<Vec<_>>(), expected);
            assert!(pieces.iter().flat_map(Clone::clone).eq(0..lanes));
        }
    }
}
