//! Predicts the cost of an evaluation by counting on the circuit alone. Tests compare the running protocol's
//! counts with it.

use polyclave_cipher::{Compiled, Lookup};
use polyclave_field::MacField;

use super::lookup_method::{LookupMethod, Route};
use super::masked::{Packing, demux_cost};
use super::tower;
use crate::authenticated::{Inverses, RowShape, Units};
use crate::interface::tally::Cost;

/// The cost of all lookups of a circuit. Checks are not included; they are counted where they run.
pub(super) fn cost<F: MacField>(
    compiled: &Compiled,
    method: LookupMethod,
    packing: Packing,
    shape: impl Fn(usize) -> RowShape,
) -> Cost {
    let mut cost = Cost::default();
    let table = |lookup: &Lookup| &compiled.tables()[lookup.table];
    for layer in compiled.layers() {
        let goes = |routes: &[Route]| layer.lookups.iter().any(|l| routes.contains(&method.route(table(l))));
        if goes(&[Route::Products]) {
            cost.rounds += method.cost().0 as f64;
        }
        if goes(&[Route::Tower]) {
            cost.rounds += tower::ROUNDS as f64;
        }
        if goes(&[Route::Rows, Route::Units]) {
            cost.rounds += 1.0;
        }
    }
    let mut widths = Vec::new();
    for lookup in compiled.lookups() {
        let in_bits = table(lookup).in_bits();
        let mac_bytes = size_of::<F::Word>();
        let route = method.route(table(lookup));
        let [triples, bits, openings, ahead, bytes] = match route {
            Route::Products => {
                let (_, openings, triples) = method.cost();
                let bits = method.bits::<F>();
                [triples, bits, openings, 0, (3 * triples + bits) * 2 * mac_bytes]
            }
            Route::Tower => [0, 0, tower::ROUNDS, 0, Inverses::<F>::MEMORY],
            Route::Rows | Route::Units => {
                let [triples, bits, openings, rounds] = demux_cost::<F>(in_bits, packing);
                widths.push((in_bits, route == Route::Rows, rounds, lookup.table));
                let bytes = match route {
                    Route::Rows => 1 + mac_bytes + shape(lookup.table).bytes::<F>(),
                    _ => Units::<F>::bytes(in_bits),
                };
                [triples, bits, 1, openings, bytes]
            }
        };
        let numbers = [openings, ahead, triples, bits].map(|count| count as f64);
        let of = match lookup.is_uniform() {
            true => [
                &mut cost.operations_uniform,
                &mut cost.preprocessing_uniform,
                &mut cost.triples_uniform,
                &mut cost.bits_uniform,
            ],
            false => {
                cost.material_bytes_per_lane += bytes;
                [
                    &mut cost.operations_per_lane,
                    &mut cost.preprocessing_per_lane,
                    &mut cost.triples_per_lane,
                    &mut cost.bits_per_lane,
                ]
            }
        };
        of.into_iter().zip(numbers).for_each(|(sum, count)| *sum += count);
    }
    // Unit vectors of one width are made together, masked tables table by table.
    widths.sort_unstable();
    widths.dedup_by(|a, b| a.0 == b.0 && a.1 == b.1 && (!a.1 || a.3 == b.3));
    cost.preprocessing_rounds = widths.iter().map(|(_, _, rounds, _)| *rounds as f64).sum();
    cost
}
