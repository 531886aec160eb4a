//! The paper's statements about its figures (section 7.1), compared with our points.

use polyclave_protocol::shamir::Inversion;
use serde::Serialize;

use super::{Curve, Point};

/// The paper's addition chains: its exponentiation.
const CHAINS: [Inversion; 4] =
    [Inversion::Standard, Inversion::Shortest, Inversion::ShortestLeastRounds, Inversion::LeastRounds];
/// The same with the paper's other variants.
const PAPER: [Inversion; 6] =
    [CHAINS[0], CHAINS[1], CHAINS[2], CHAINS[3], Inversion::Masking, Inversion::MaskedExponentiation];

/// Tolerance for times that are said to be equal.
const EQUAL: f64 = 0.05;
/// Tolerance for times that are said to differ little, or to be those of the bytes on the line.
const LITTLE: f64 = 0.1;

/// One statement of the paper, and whether it holds here.
#[derive(Serialize)]
pub struct Finding {
    agrees: bool,
    text: String,
}

/// The findings as a sentence.
pub fn sentence(findings: &[Finding]) -> String {
    let message = |agrees: bool, lead: &str| {
        let texts: Vec<&str> =
            findings.iter().filter(|f| f.agrees == agrees).map(|f| f.text.as_str()).collect();
        (!texts.is_empty()).then(|| format!("{lead} {}", texts.join(", and ")))
    };
    let parts = [message(true, "as in the paper,"), message(false, "unlike in the paper,")];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    match text.split_at_checked(1) {
        Some((first, rest)) => format!("{}{rest}.", first.to_uppercase()),
        None => text,
    }
}

/// "Inversion by exponentiation [...] turned out to be faster than inversion by masking", and "the number of
/// multiplications has more influence than the number of rounds".
pub fn figure_2(curves: &[Curve]) -> Vec<Finding> {
    let ends = Ends::last(curves, &PAPER);
    ends.masking().into_iter().chain([ends.influence()]).collect()
}

/// "There is little difference between variants performing the same number of elementary operations", "the
/// online time can be reduced [...] for masked exponentiation", and "the increase with more blocks in
/// parallel".
pub fn figure_3(curves: &[Curve]) -> Vec<Finding> {
    let (first, last) = (Ends::first(curves, &PAPER), Ends::last(curves, &PAPER));
    let equals = last.equally_many_operations(LITTLE);
    equals.into_iter().chain(last.least_online()).chain(last.growth_since(&first)).collect()
}

/// "The higher the number of rounds required for an S-box, the higher the time taken", if the delay is high
/// enough.
pub fn figure_4(curves: &[Curve]) -> Vec<Finding> {
    let all = Inversion::ALL;
    let (first, last) = (Ends::first(curves, &all), Ends::last(curves, &all));
    last.order("rounds", Point::rounds, "ms of added delay")
        .into_iter()
        .chain(last.slope_since(&first))
        .collect()
}

/// "The time to encrypt one block should be determined by the number of elementary operations", which "is the
/// case with a low enough bandwidth. Moreover, the number of rounds does not make a difference".
pub fn figure_5(curves: &[Curve]) -> Vec<Finding> {
    let slowest = Ends::first(curves, &Inversion::ALL);
    let order = slowest.order("operations", Point::operations, "kbit/s");
    order.into_iter().chain(slowest.line_time()).chain(slowest.equally_many_operations(EQUAL)).collect()
}

/// A point of every curve, at one abscissa.
struct Ends<'a>(Vec<(Inversion, &'a Point)>);

impl<'a> Ends<'a> {
    fn first(curves: &'a [Curve], among: &[Inversion]) -> Ends<'a> {
        Ends::of(curves, among, <[Point]>::first)
    }

    fn last(curves: &'a [Curve], among: &[Inversion]) -> Ends<'a> {
        Ends::of(curves, among, <[Point]>::last)
    }

    fn of(curves: &'a [Curve], among: &[Inversion], end: fn(&[Point]) -> Option<&Point>) -> Ends<'a> {
        let among = curves.iter().filter(|curve| among.contains(&curve.inversion));
        Ends(among.filter_map(|curve| Some((curve.inversion, end(&curve.points)?))).collect())
    }

    fn get(&self, inversion: Inversion) -> Option<&'a Point> {
        self.0.iter().find(|(i, _)| *i == inversion).map(|(_, point)| *point)
    }

    fn x(&self) -> f64 {
        self.0.first().map_or(0.0, |(_, point)| point.x)
    }

    fn chains(&self) -> impl Iterator<Item = (Inversion, &'a Point)> {
        self.0.iter().copied().filter(|(inversion, _)| CHAINS.contains(inversion))
    }

    /// Among all pairs with different counts: how many are in the same order by time, and how many there are.
    fn ordered_by(&self, count: fn(&Point) -> f64) -> (usize, usize) {
        let differing = pairs(&self.0).map(|((_, a), (_, b))| (a, b)).filter(|(a, b)| count(a) != count(b));
        let (mut ordered, mut all) = (0, 0);
        for (a, b) in differing {
            all += 1;
            ordered += usize::from((count(a) - count(b)) * (a.total() - b.total()) > 0.0);
        }
        (ordered, all)
    }

    fn masking(&self) -> Option<Finding> {
        let masking = self.get(Inversion::Masking)?;
        let (chain, quickest) = self.chains().min_by(|a, b| a.1.total().total_cmp(&b.1.total()))?;
        let quotient = masking.total() / quickest.total();
        let compared = match quotient {
            q if q > 1.0 + EQUAL => "slower",
            q if q < 1.0 - EQUAL => "quicker (as its analysis has it)",
            _ => "hardly slower or quicker",
        };
        let agrees = quotient > 1.0 + EQUAL;
        let text = format!(
            "masking is {compared} than {chain}, the quickest chain: {:.2} against {:.2} ms a block, with {:.0} against {:.0} \
             operations a block and {} against {} rounds",
            masking.total(),
            quickest.total(),
            masking.operations(),
            quickest.operations(),
            masking.rounds(),
            quickest.rounds()
        );
        Some(Finding { agrees, text })
    }

    fn influence(&self) -> Finding {
        let (operations, rounds) = (self.ordered_by(Point::operations), self.ordered_by(Point::rounds));
        let share = |(ordered, all): (usize, usize)| ordered as f64 / all.max(1) as f64;
        let agrees = share(operations) > share(rounds);
        let text = format!(
            "operations have {} influence than rounds: of pairs of the paper's variants that differ in them, operations order {} of \
             {} as time does, rounds {} of {}",
            if agrees { "more" } else { "no more" },
            operations.0,
            operations.1,
            rounds.0,
            rounds.1
        );
        Finding { agrees, text }
    }

    /// Whether the paper's chains with equally many operations take the same time.
    fn equally_many_operations(&self, within: f64) -> Option<Finding> {
        let chains: Vec<_> = self.chains().collect();
        let equal = pairs(&chains).filter(|((_, a), (_, b))| a.operations() == b.operations());
        let differences: Vec<(String, f64)> = equal
            .map(|((i, a), (j, b))| {
                let (more, less) = (a.total().max(b.total()), a.total().min(b.total()));
                (format!("{i} and {j} by {:.0} %", 100.0 * (more / less - 1.0)), more / less - 1.0)
            })
            .collect();
        let agrees =
            !differences.is_empty() && differences.iter().all(|(_, difference)| *difference <= within);
        let listed: Vec<&str> = differences.iter().map(|(text, _)| text.as_str()).collect();
        let text = format!(
            "chains of equally many operations differ by {} than {:.0} %: {}",
            if agrees { "no more" } else { "more" },
            100.0 * within,
            listed.join(", ")
        );
        (!listed.is_empty()).then_some(Finding { agrees, text })
    }

    fn least_online(&self) -> Option<Finding> {
        let ours = self.get(Inversion::MaskedExponentiation)?;
        let (name, least) = self.0.iter().min_by(|a, b| a.1.online().total_cmp(&b.1.online()))?;
        let agrees = *name == Inversion::MaskedExponentiation;
        let (online, total) = (ours.online(), ours.total());
        let text = match agrees {
            true => format!(
                "masked-exponentiation has the least online time of the paper's variants, {online:.2} of {total:.2} ms a block"
            ),
            false => format!(
                "masked-exponentiation does not have the least online time, with {online:.2} of {total:.2} ms a block against \
                 {:.2} of {name}",
                least.online()
            ),
        };
        Some(Finding { agrees, text })
    }

    fn growth_since(&self, first: &Ends<'_>) -> Option<Finding> {
        let (least, most) = range(self.since(first).map(|(last, first)| last.total() / first.total()))?;
        let text =
            format!("a block among {} takes {least:.2} to {most:.2} times as long as one alone", self.x());
        Some(Finding { agrees: least > 1.0, text })
    }

    /// Whether the order by time equals the order by a count.
    fn order(&self, name: &str, count: fn(&Point) -> f64, unit: &str) -> Option<Finding> {
        let (ordered, all) = self.ordered_by(count);
        let agrees = ordered == all;
        let text = format!(
            "at {} {unit} the one with more {name} is {} the slower of two variants ({ordered} of {all} pairs)",
            self.x(),
            if agrees { "always" } else { "not always" }
        );
        (all > 0).then_some(Finding { agrees, text })
    }

    /// Whether every round takes longer by the added delay.
    fn slope_since(&self, first: &Ends<'_>) -> Option<Finding> {
        let slope = |(last, first): (&Point, &Point)| {
            (last.total() - first.total()) / (last.x - first.x) / last.rounds()
        };
        let (least, most) = range(self.since(first).map(slope))?;
        let text = format!("a ms of delay adds {least:.2} to {most:.2} ms for every round that is counted");
        Some(Finding { agrees: least >= 1.0 - EQUAL && most <= 1.0 + EQUAL, text })
    }

    /// Whether a block takes as long as its bytes on the line.
    fn line_time(&self) -> Option<Finding> {
        let of_line = |point: &Point| point.total() / point.line_ms_per_block;
        let (least, most) = range(self.0.iter().map(|(_, point)| of_line(point)))?;
        let agrees = least >= 1.0 - LITTLE && most <= 1.0 + LITTLE;
        let text = format!(
            "a block {} its bytes on the line, one an operation: it takes {least:.2} to {most:.2} times as long as they do",
            if agrees { "takes as long as" } else { "does not take as long as" }
        );
        Some(Finding { agrees, text })
    }

    /// The points of this abscissa, each with the corresponding point of another.
    fn since(&self, first: &Ends<'a>) -> impl Iterator<Item = (&'a Point, &'a Point)> {
        self.0.iter().filter_map(|(inversion, last)| Some((*last, first.get(*inversion)?)))
    }
}

impl Point {
    fn total(&self) -> f64 {
        self.measured.total_ms_per_block.median
    }

    fn online(&self) -> f64 {
        self.measured.online_ms_per_block.median
    }

    fn rounds(&self) -> f64 {
        self.measured.rounds.median
    }

    fn operations(&self) -> f64 {
        self.measured.operations_per_block
    }
}

/// All pairs of two different elements.
fn pairs<T: Copy>(items: &[T]) -> impl Iterator<Item = (T, T)> {
    (0..items.len()).flat_map(move |i| items[i + 1..].iter().map(move |b| (items[i], *b)))
}

/// The minimum and maximum of some values.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, v| {
        let (least, most) = range.unwrap_or((v, v));
        Some((v.min(least), v.max(most)))
    })
}

#[cfg(test)]
mod tests;
