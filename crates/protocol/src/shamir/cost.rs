//! What an evaluation will take, by arithmetic on the circuit alone. Tests hold the running protocol's counts to it.

use std::collections::BTreeMap;

use polyclave_cipher::{Compiled, Matrix, Slot};

use super::inversion::Inversion;
use super::masked_table;
use crate::tally::Cost;

/// Of all lookups of a circuit, inversions done in this way.
pub(super) fn cost(compiled: &Compiled, way: Inversion) -> Cost {
    let mut cost = Cost::default();
    let mut inverts = false;
    for layer in compiled.layers() {
        let mut rounds = BTreeMap::new();
        for lookup in &layer.lookups {
            let table = &compiled.tables()[lookup.table];
            let one = match table.inversion() {
                Some(inversion) => inversion_cost(way, inversion, &lookup.views),
                None => {
                    let (products, _) = masked_table::demux_cost(table.in_bits());
                    let material_bytes = masked_table::material_bytes(table.in_bits());
                    let (kind, online) = (Kind::MaskedTable, (1.0, 1.0));
                    LookupCost { kind, online, ahead: products as f64, material_bytes }
                }
            };
            inverts |= one.kind == Kind::Inversion;
            let most = rounds.entry(one.kind).or_insert(0.0);
            *most = one.online.1.max(*most);
            if !lookup.is_uniform() {
                cost.material_bytes_per_lane += one.material_bytes;
            }
            let (online, ahead) = match lookup.is_uniform() {
                true => (&mut cost.operations_uniform, &mut cost.preprocessing_uniform),
                false => (&mut cost.operations_per_lane, &mut cost.preprocessing_per_lane),
            };
            *online += one.online.0;
            *ahead += one.ahead;
        }
        cost.rounds += rounds.values().sum::<f64>();
    }
    cost.preprocessing_rounds = preprocessing_rounds(compiled, inverts, way);
    cost
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Inversion,
    MaskedTable,
}

struct LookupCost {
    kind: Kind,
    /// Operations and rounds.
    online: (f64, f64),
    /// Operations.
    ahead: f64,
    material_bytes: usize,
}

/// What a lookup takes; the table at the head of [`super::invert`].
fn inversion_cost(
    way: Inversion,
    inversion: &polyclave_cipher::Inversion,
    views: &[(Matrix, Slot)],
) -> LookupCost {
    let opening = |needed: bool| f64::from(u8::from(needed));
    let before = opening(inversion.before.matrix.as_scalar().is_none());
    let after = opening(views.iter().any(|(m, _)| m.after(&inversion.after.matrix).as_scalar().is_none()));
    let retries = 2.0 / 255.0;
    let (operations, rounds, ahead) = match way {
        Inversion::Views => (5.0, 4.0, 0.0),
        Inversion::CarriedSquares => (4.0, 3.0, 0.0),
        Inversion::Masking => (10.0 + retries + after, 6.0 + retries + after, 0.0),
        Inversion::MaskedExponentiation => (before + 7.0 + after, before + 4.0 + after, 7.0),
        chained => {
            let chain = chained.chain().expect("all other ways are chains");
            let (products, depth) = (chain.multiplications() as f64, chain.rounds().len() as f64);
            (before + products + after, before + depth + after, 0.0)
        }
    };
    let material_bytes = if way == Inversion::MaskedExponentiation { 8 } else { 0 };
    LookupCost { kind: Kind::Inversion, online: (operations, rounds), ahead, material_bytes }
}

/// Powers of masks take 7 rounds, and masked tables of each index width theirs.
fn preprocessing_rounds(compiled: &Compiled, inverts: bool, way: Inversion) -> f64 {
    let powers = if inverts && way == Inversion::MaskedExponentiation { 7 } else { 0 };
    let mut widths: Vec<u8> = compiled
        .lookups()
        .map(|lookup| &compiled.tables()[lookup.table])
        .filter(|table| table.inversion().is_none())
        .map(|table| table.in_bits())
        .collect();
    widths.sort_unstable();
    widths.dedup();
    (powers + widths.into_iter().map(|bits| masked_table::demux_cost(bits).1).sum::<usize>()) as f64
}
