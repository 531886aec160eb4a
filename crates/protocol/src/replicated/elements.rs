//! Shared elements of GF(2^128). They are shared like bits, x = x_0 + x_1 + x_2, and multiplied in one round
//! like elements of any other field: P_i sends z_i = x_i (y_i + y_(i+1)) + x_(i+1) y_i + F(k_i) + F(k_(i+1))
//! to P_(i-1). Bytes are elements as they are: no conversion, no round.
//!
//! Adversary: the model's. In a product a party receives a value that is masked under a key that it lacks. In
//! an opening it receives the share that it lacks, which follows from the value and from its own shares. A
//! party that cheats can only add errors to products, which the active model finds before anything is opened
//! (`active/sacrifice.rs`).
//!
//! Cost of a product: 16 bytes to one neighbour.

use polyclave_kernels::gf128;
use zeroize::Zeroizing;

use super::Replicated;
use super::client::of_shares;
use super::ring::{Ring, add};
use super::security::AdversaryModel;
use crate::interface::elements::{Element, ElementArithmetic, Elements};
use crate::interface::net::Net;
use crate::interface::protocol::Owner;
use crate::unchecked::Unchecked;
use crate::{Error, Result};

impl<A: AdversaryModel> ElementArithmetic for Replicated<A> {
    /// Local.
    fn random_elements(&mut self, count: usize, _: &mut dyn Net) -> Result<Elements> {
        Ok(self.ring.random_elements(count))
    }

    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        self.ring.add_public_elements(a, public)
    }

    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        a.same_count(b)?;
        self.model.refuse_foreign(&a.unchecked)?;
        self.model.refuse_foreign(&b.unchecked)?;
        let Replicated { ring, model, .. } = self;
        let done = (|| {
            ring.counts().multiplications += a.count() as u64;
            let mut products = ring.multiply_elements(a, b, net)?;
            model.mark(&mut products.unchecked);
            model.remember_elements([a, b], &products);
            model.relieve(ring, net)?;
            Ok(products)
        })();
        self.or_give_up(done)
    }

    /// Two rounds after the checks of what was computed before.
    fn are_zero(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<bool>> {
        self.verify(&elements.unchecked, net)?;
        let Replicated { ring, model, .. } = self;
        let counts = ring.counts();
        counts.multiplications += elements.count() as u64;
        counts.openings += elements.count() as u64;
        let are_zero = model.are_zero(elements, ring, net);
        self.or_give_up(are_zero)
    }

    fn open_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.verify(&elements.unchecked, net)?;
        let Replicated { ring, model, .. } = self;
        ring.counts().openings += elements.count() as u64;
        let opened = open(elements, model, ring, net);
        self.or_give_up(opened)
    }

    fn elements_for_client(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.verify(&elements.unchecked, net)?;
        self.ring.counts().openings += elements.count() as u64;
        self.blinded([&elements.shares, &elements.macs])
    }
}

impl<A: AdversaryModel> Replicated<A> {
    /// Verifies everything before a value leaves the protocol. Values that another session has not verified
    /// are refused.
    pub(super) fn verify(&mut self, value: &Unchecked, net: &mut dyn Net) -> Result<()> {
        self.model.refuse_foreign(value)?;
        let checked = self.model.check(&mut self.ring, net);
        self.or_give_up(checked)
    }
}

/// Opens elements to all parties.
pub(super) fn open(
    elements: &Elements,
    model: &mut impl AdversaryModel,
    ring: &mut Ring,
    net: &mut dyn Net,
) -> Result<Vec<Element>> {
    if elements.count() == 0 {
        return Ok(Vec::new());
    }
    let third = model.third_share([&elements.shares, &elements.macs], Owner::All, ring, net)?;
    let mut opened = third.ok_or_else(|| Error::misuse("an opening for all did not come"))?;
    add(&mut opened, &elements.shares);
    add(&mut opened, &elements.macs);
    Ok(opened.as_chunks().0.to_vec())
}

impl Ring {
    /// Both shares of random elements that no party knows. Local.
    pub(super) fn random_elements(&mut self, count: usize) -> Elements {
        of_shares(self.random_shares(crate::interface::elements::ELEMENT_BYTES * count), Unchecked::default())
    }

    /// Sums with public elements, which go to share 0.
    pub(super) fn add_public_elements(&self, a: &Elements, public: &[Element]) -> Elements {
        let mut sum = a.clone();
        match self.share_zero() {
            Some(0) => add(&mut sum.shares, public.as_flattened()),
            Some(_) => add(&mut sum.macs, public.as_flattened()),
            None => {}
        }
        sum
    }

    /// Products, which nobody has verified. One round.
    pub(super) fn multiply_elements(
        &mut self,
        a: &Elements,
        b: &Elements,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        let own = self.own_products(a, b);
        let received = Zeroizing::new(self.pass_back(&own, net)?.to_vec());
        Ok(of_shares([own, received], Unchecked::join([&a.unchecked, &b.unchecked])))
    }

    /// This party's first share of products, which goes to the party before. Local.
    pub(super) fn own_products(&mut self, a: &Elements, b: &Elements) -> Zeroizing<Vec<u8>> {
        let len = a.shares.len();
        let mut own = Zeroizing::new(self.zero_share(len).to_vec());
        let (mut sum, mut product) = (Zeroizing::new(b.shares.to_vec()), Zeroizing::new(vec![0; len]));
        add(&mut sum, &b.macs);
        for (x, y) in [(&a.shares, &sum), (&a.macs, &b.shares)] {
            gf128::multiply(&mut product, x, y);
            add(&mut own, &product);
        }
        own
    }
}
