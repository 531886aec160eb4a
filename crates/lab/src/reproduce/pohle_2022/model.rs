//! The poster's formulas, by numbers of gates.

use super::counted::Work;

/// A cipher's gates.
#[derive(Clone, Copy)]
pub struct Model {
    /// ANDs of its Boolean circuit.
    pub ands: u64,
    /// S-boxes, and linear maps that are not sums.
    pub projections: u64,
    /// Bits of a cell.
    pub bits: u32,
    /// Bits of inputs that the evaluator gives: each takes a projection of one bit.
    pub conversions: u64,
}

impl Model {
    /// The work with projection gates.
    pub fn work(self) -> Work {
        let Model { projections, conversions, .. } = self;
        let values = 1 << self.bits;
        Work {
            garble: values * projections + 2 * conversions,
            send: (values - 1) * projections + conversions,
            eval: projections + conversions,
        }
    }

    /// The ratios as printed, compared with a scheme with this cost of an AND.
    pub fn ratios(self, of_and: [f64; 3]) -> [f64; 3] {
        ratios(self.ands, self.work(), of_and)
    }
}

/// Garble, Send and Eval as the poster prints them: by how much projections are better, or worse if negative,
/// to two decimal places.
pub fn ratios(ands: u64, work: Work, of_and: [f64; 3]) -> [f64; 3] {
    let work = [work.garble, work.send, work.eval].map(|count| count as f64);
    std::array::from_fn(|i| {
        let ratio = of_and[i] * ands as f64 / work[i];
        let signed = if ratio < 1.0 { -1.0 / ratio } else { ratio };
        (100.0 * signed).round() / 100.0
    })
}
