//! Polynomials over GF(2) in a slow and simple form, and Rabin's test of irreducibility.

/// Coefficients from X^0 upwards, the last one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Polynomial(Vec<bool>);

impl Polynomial {
    /// The sum of the powers of X.
    pub(super) fn new(exponents: impl IntoIterator<Item = u32>) -> Polynomial {
        let mut coefficients = vec![false; 129];
        exponents.into_iter().for_each(|exponent| coefficients[exponent as usize] ^= true);
        Polynomial(coefficients).trimmed()
    }

    pub(super) fn exponents(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, set)| **set).map(|(exponent, _)| exponent)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn trimmed(mut self) -> Polynomial {
        while self.0.last() == Some(&false) {
            self.0.pop();
        }
        self
    }

    fn add_shifted(&mut self, other: &Polynomial, by: usize) {
        self.0.resize(self.0.len().max(other.0.len() + by), false);
        other.exponents().for_each(|exponent| self.0[exponent + by] ^= true);
    }

    pub(super) fn times(&self, other: &Polynomial) -> Polynomial {
        let mut product = Polynomial(Vec::new());
        self.exponents().for_each(|exponent| product.add_shifted(other, exponent));
        product.trimmed()
    }

    pub(super) fn modulo(&self, modulus: &Polynomial) -> Polynomial {
        let mut rest = self.clone();
        while rest.0.len() >= modulus.0.len() {
            rest.add_shifted(modulus, rest.0.len() - modulus.0.len());
            rest = rest.trimmed();
        }
        rest
    }

    fn gcd(self, other: Polynomial) -> Polynomial {
        if other.is_zero() {
            return self;
        }
        let rest = self.modulo(&other);
        other.gcd(rest)
    }

    /// Rabin 1980: of degree n, it divides X^(2^n) - X and has no factor with X^(2^(n/p)) - X, for the primes
    /// p of n.
    pub(super) fn is_irreducible(&self) -> bool {
        let (degree, x) = (self.0.len() - 1, Polynomial::new([1]));
        // X^(2^k) - X.
        let conjugate = |k: usize| {
            let mut power = (0..k).fold(x.clone(), |power, _| power.times(&power).modulo(self));
            power.add_shifted(&x, 0);
            power.trimmed()
        };
        let is_prime = |p: usize| (2..p).all(|q| !p.is_multiple_of(q));
        let mut primes = (2..=degree).filter(|p| degree.is_multiple_of(*p) && is_prime(*p));
        conjugate(degree).modulo(self).is_zero()
            && primes.all(|p| self.clone().gcd(conjugate(degree / p)) == Polynomial::new([0]))
    }
}
