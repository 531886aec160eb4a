//! Permutations of cells.

/// The i-th of the result is the one at `from[i]`.
pub(crate) fn gathered<T: Copy>(cells: &[T], from: &[u8]) -> Vec<T> {
    from.iter().map(|at| cells[usize::from(*at)]).collect()
}

/// The inverse: the i-th goes to `to[i]`.
pub(crate) fn scattered<T: Copy>(cells: &[T], to: &[u8]) -> Vec<T> {
    let mut result = cells.to_vec();
    to.iter().zip(cells).for_each(|(at, cell)| result[usize::from(*at)] = *cell);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_undoes_gathering() {
        let order = [2, 0, 3, 1];
        assert_eq!(gathered(b"abcd", &order), b"cadb");
        assert_eq!(scattered(&gathered(b"abcd", &order), &order), b"abcd");
    }
}
