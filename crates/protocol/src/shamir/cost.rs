//! What an evaluation will take, by arithmetic on the circuit alone. Tests hold the running protocol's counts
//! to it.

use polyclave_cipher::{Compiled, Matrix, Slot};

use super::inversion::Inversion;
use super::security::AdversaryModel;
use super::setup::Structure;
use super::tables::{LookupMethod, Tables};
use super::{masked_powers, masked_table, polynomial, product};
use crate::interface::tally::Cost;

/// The cost of all lookups of a circuit, with inversions and other tables done in these ways. For masking it
/// is the expectation of one lookup: a layer waits for the one that retries most.
pub(super) fn cost<S: AdversaryModel>(
    compiled: &Compiled,
    security: &S,
    structure: Structure,
    way: Inversion,
    tables: Tables,
) -> Cost {
    let mut cost = Cost::default();
    let images = security.products_bring_images();
    let (mut inverts, mut products) = (false, [0, 0]);
    for layer in compiled.layers() {
        // The parts of a round-by-round run; each waits for the lookup that takes longest in it.
        let mut rounds = [0.0f64; 6];
        for lookup in &layer.lookups {
            let table = &compiled.tables()[lookup.table];
            let one = match tables.way(table) {
                LookupMethod::Inversion(inversion) => inversion_cost(way, inversion, &lookup.views, images),
                LookupMethod::Product => product_cost(),
                LookupMethod::Polynomial(_) => polynomial_cost(images),
                LookupMethod::Masked => masked_table_cost(table.in_bits()),
            };
            inverts |= table.inversion().is_some();
            products[usize::from(lookup.is_uniform())] += products_online(way, tables.way(table));
            rounds.iter_mut().zip(one.rounds).for_each(|(most, r)| *most = most.max(r));
            if lookup.is_uniform() {
                cost.operations_uniform += one.operations;
                cost.preprocessing_uniform += one.ahead;
            } else {
                cost.operations_per_lane += one.operations;
                cost.preprocessing_per_lane += one.ahead;
                cost.material_bytes_per_lane += one.material_bytes;
            }
        }
        cost.rounds += rounds.iter().sum::<f64>();
    }
    cost.preprocessing_rounds = preprocessing_rounds(compiled, inverts, way, tables);
    security.cost_of_products(&mut cost, products[0], products[1], structure);
    cost
}

struct LookupCost {
    operations: f64,
    /// The rounds of an inversion: of the map before it, the power, and the map after it. Then the rounds of
    /// a product, of polynomials, and last of a masked table: the order in which a layer runs them.
    rounds: [f64; 6],
    /// Operations.
    ahead: f64,
    material_bytes: usize,
}

fn masked_table_cost(in_bits: u8) -> LookupCost {
    let (products, _) = masked_table::demux_cost(in_bits);
    let material_bytes = masked_table::material_bytes(in_bits);
    LookupCost {
        operations: 1.0,
        rounds: [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        ahead: products as f64,
        material_bytes,
    }
}

fn product_cost() -> LookupCost {
    let (operations, rounds) = product::COST;
    let rounds = [0.0, 0.0, 0.0, rounds as f64, 0.0, 0.0];
    LookupCost { operations: operations as f64, rounds, ahead: 0.0, material_bytes: 0 }
}

fn polynomial_cost(images: bool) -> LookupCost {
    let (operations, rounds) = polynomial::COST;
    // Images that are not multiples are wanted of each product.
    let more = if images { 0 } else { operations };
    let rounds = [0.0, 0.0, 0.0, 0.0, (rounds + more) as f64, 0.0];
    LookupCost { operations: (operations + more) as f64, rounds, ahead: 0.0, material_bytes: 0 }
}

/// The table at the head of [`super::invert`].
fn inversion_cost(
    way: Inversion,
    inversion: &polyclave_cipher::Inversion,
    views: &[(Matrix, Slot)],
    images: bool,
) -> LookupCost {
    let opening = |needed: bool| f64::from(u8::from(needed));
    let before = opening(inversion.before.matrix.as_scalar().is_none());
    let after = opening(views.iter().any(|(m, _)| m.after(&inversion.after.matrix).as_scalar().is_none()));
    let retries = 2.0 / 255.0;
    // Openings of products, one after another, for which images other than multiples are wanted: two in the
    // power of Rivain and Prouff, and the last one.
    let (cubes, last) = if images { (0.0, 0.0) } else { (2.0, after) };
    // Operations and rounds of the power alone.
    let (before, power, after) = match way {
        Inversion::Views => (1.0, (4.0 + cubes, 3.0 + cubes), last),
        Inversion::CarriedSquares => (0.0, (4.0 + cubes, 3.0 + cubes), last),
        Inversion::MaskedPowers => (0.0, (2.0, 2.0), last),
        Inversion::Masking => (1.0, (9.0 + retries, 5.0 + retries), after),
        Inversion::MaskedExponentiation => (before, (7.0, 4.0), after),
        chained => {
            let chain = chained.chain().expect("all other ways are chains");
            (before, (chain.multiplications() as f64, chain.rounds().len() as f64), after)
        }
    };
    let (ahead, material_bytes) = match way {
        Inversion::MaskedExponentiation => (7.0, 8),
        Inversion::MaskedPowers => (masked_powers::COST.0 as f64, masked_powers::EXPONENTS.len()),
        _ => (0.0, 0),
    };
    let operations = before + power.0 + after;
    LookupCost { operations, rounds: [before, power.1, after, 0.0, 0.0, 0.0], ahead, material_bytes }
}

/// Products of shared values that one lookup takes online, without retries.
pub(super) fn products_online(way: Inversion, table: LookupMethod<'_>) -> usize {
    match (table, way) {
        (LookupMethod::Masked, _) => 0,
        (LookupMethod::Product, _) => product::COST.0,
        (LookupMethod::Polynomial(_), _) => polynomial::COST.0,
        (LookupMethod::Inversion(_), Inversion::Views | Inversion::CarriedSquares) => 4,
        // Seven for the comparison with zero, one by the mask.
        (LookupMethod::Inversion(_), Inversion::Masking) => 8,
        (LookupMethod::Inversion(_), Inversion::MaskedExponentiation) => 6,
        (LookupMethod::Inversion(_), Inversion::MaskedPowers) => 1,
        (LookupMethod::Inversion(_), chained) => {
            chained.chain().expect("all other ways are chains").multiplications()
        }
    }
}

/// Powers of masks take theirs, and masked tables of each index width theirs.
fn preprocessing_rounds(compiled: &Compiled, inverts: bool, way: Inversion, tables: Tables) -> f64 {
    let powers = match way {
        Inversion::MaskedExponentiation if inverts => 7,
        Inversion::MaskedPowers if inverts => masked_powers::COST.1,
        _ => 0,
    };
    let mut widths: Vec<u8> = compiled
        .lookups()
        .map(|lookup| &compiled.tables()[lookup.table])
        .filter(|table| matches!(tables.way(table), LookupMethod::Masked))
        .map(|table| table.in_bits())
        .collect();
    widths.sort_unstable();
    widths.dedup();
    (powers + widths.into_iter().map(|bits| masked_table::demux_cost(bits).1).sum::<usize>()) as f64
}
