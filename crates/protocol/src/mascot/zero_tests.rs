//! The check of values that were opened while material is made, and the products that its zero tests use up
//! (`authenticated/check.rs`, which also says why these are neither authenticated nor verified, and not
//! combined from several).
//!
//! A product is what [`Mascot::multiply`] makes of one a and one b: k transfers of 128 bits and k elements to
//! every peer. Eight are made at once, in five rounds, when a check finds none: beside what else was opened
//! before it, and nothing of them is noted, since no coins are tossed for them but those that check the
//! transfers, which are the same for all.

use polyclave_field::MacField;

use super::Mascot;
use crate::authenticated::{Product, check};
use crate::interface::net::Net;
use crate::{Error, Result};

/// Products that are made at once: a multiple of eight.
const AT_ONCE: usize = 8;

impl<F: MacField> Mascot<F> {
    /// Checks everything that was opened or noted since the last check. Six rounds; five more for every
    /// eighth check.
    pub(super) fn check_openings(&mut self, net: &mut dyn Net) -> Result<()> {
        if self.products.is_empty() {
            let made = self.multiply(1, AT_ONCE, net)?;
            let rows = made.a[0].iter().zip(made.b.iter()).zip(made.c[0].iter());
            self.products.extend(rows.map(|((a, b), c)| Product::new(*a, *b, *c)));
        }
        let product =
            self.products.pop().ok_or_else(|| Error::misuse("products are made, and none is there"))?;
        check(&self.key, &mut self.openings, product, net)
    }
}
