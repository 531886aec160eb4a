//! Rows of lanes, as shared values hold them: one for each cell, and for each image of it.

/// The `selected` lanes of every row, in this order. A row has `lanes` lanes.
///
/// # Panics
/// If there is no such lane.
pub(crate) fn select<T: Copy>(rows: &[T], lanes: usize, selected: &[usize]) -> Vec<T> {
    // Sized at once: growing would leave copies of shares behind.
    let mut all = Vec::with_capacity(rows.len() / lanes * selected.len());
    rows.chunks_exact(lanes).for_each(|row| all.extend(selected.iter().map(|lane| row[*lane])));
    all
}

/// Joins the lanes of all parts in every row, one part after another. A part is its rows and the number of
/// its lanes. All parts have the same number of rows.
pub(crate) fn join<T: Copy>(parts: &[(&[T], usize)]) -> Vec<T> {
    // Sized at once, as above.
    let mut joined = Vec::with_capacity(parts.iter().map(|(rows, _)| rows.len()).sum());
    for row in 0..parts.first().map_or(0, |(rows, lanes)| rows.len() / lanes) {
        parts.iter().for_each(|(rows, lanes)| joined.extend_from_slice(&rows[row * lanes..][..*lanes]));
    }
    joined
}
