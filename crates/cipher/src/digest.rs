//! A digest of everything that determines what is computed and which messages the parties send. They compare
//! it before they start.

use crate::circuit::{Op, Port};
use crate::gates::Form;
use crate::{Affine, Circuit, Matrix, Table};

impl Circuit {
    /// The same for equal circuits, and no others.
    pub fn digest(&self) -> [u8; 32] {
        let mut d = Digest(blake3::Hasher::new_derive_key("polyclave 2026 circuit digest"));
        d.sequence(self.ops(), Digest::op);
        d.sequence(self.inputs(), Digest::port);
        d.sequence(self.outputs(), Digest::port);
        d.sequence(self.tables(), |d, table| d.table(table));
        *d.0.finalize().as_bytes()
    }
}

/// Hashes numbers of fixed size and sequences with their lengths, so that nothing can be read in two ways.
struct Digest(blake3::Hasher);

impl Digest {
    fn number(&mut self, x: u64) {
        self.0.update(&x.to_le_bytes());
    }

    fn sequence<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Digest, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|x| item(self, x));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Input { bits, uniform } => self.bytes(&[0, *bits, u8::from(*uniform)]),
            Op::Linear { terms, constant, bits } => {
                self.bytes(&[1, *constant, *bits]);
                self.sequence(terms, |d, (wire, matrix)| {
                    d.number(wire.index() as u64);
                    d.matrix(matrix);
                });
            }
            Op::Lookup { table, x } => {
                self.bytes(&[2]);
                self.number(table.index() as u64);
                self.number(x.index() as u64);
            }
        }
    }

    fn port(&mut self, port: &Port) {
        self.bytes(port.name.as_bytes());
        self.bytes(&[port.bits, u8::from(port.uniform)]);
        self.sequence(&port.cells, |d, wire| d.number(wire.index() as u64));
    }

    fn table(&mut self, table: &Table) {
        self.bytes(&[table.in_bits(), table.out_bits()]);
        self.bytes(table.entries());
        self.number(u64::from(table.inversion().is_some()) | u64::from(table.gates().is_some()) << 1);
        if let Some(inversion) = table.inversion() {
            self.affine(&inversion.before);
            self.affine(&inversion.after);
        }
        if let Some(gates) = table.gates() {
            let form = |d: &mut Digest, form: &Form| {
                d.number(form.terms());
                d.number(form.is_negated().into());
            };
            self.sequence(gates.products(), |d, factors| factors.iter().for_each(|f| form(d, f)));
            self.sequence(gates.outputs(), form);
        }
    }

    fn affine(&mut self, affine: &Affine) {
        self.matrix(&affine.matrix);
        self.bytes(&[affine.constant]);
    }

    fn matrix(&mut self, matrix: &Matrix) {
        self.bytes(&[matrix.ins(), matrix.outs()]);
        self.bytes(&matrix.columns());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Builder;

    fn lookup_of(table: Table) -> [u8; 32] {
        let mut b = Builder::new("lookup");
        let t = b.table(&Arc::new(table));
        let x = b.input("x", 1, 8)[0];
        let y = b.lookup(t, x);
        b.output("y", &[y]);
        b.finish().digest()
    }

    #[test]
    fn a_table_with_algebra_differs_from_its_entries_alone() {
        let s_box = crate::aes::s_box();
        let entries = Table::new(s_box.name(), 8, 8, s_box.entries().to_vec());
        assert_ne!(lookup_of(s_box), lookup_of(entries));
    }

    #[test]
    fn gates_of_a_table_are_in_the_digest() {
        let table = || Table::new("NOT", 8, 8, (0..=255u8).map(|x| !x).collect());
        assert_ne!(lookup_of(table()), lookup_of(table().with_gates(|_, x: [_; 8]| x.map(|bit| !bit))));
    }

    /// Names apart: PRESENT, TWINE and MANTIS share circuits among their versions.
    #[test]
    fn circuits_of_the_catalog_have_the_same_digest_only_if_they_are_the_same() {
        let circuits = crate::catalog::all()
            .into_iter()
            .flat_map(|c| [Some(c.encrypt), c.decrypt, Some(c.key_schedule)])
            .flatten();
        let circuits: Vec<_> = circuits.map(|c| (c.digest(), c)).collect();
        let (mut same, mut other) = (0, 0);
        for (i, (digest, a)) in circuits.iter().enumerate() {
            for (other_digest, b) in &circuits[..i] {
                let unnamed = Circuit { name: a.name.clone(), ..(**b).clone() };
                assert_eq!(digest == other_digest, **a == unnamed, "{} and {}", a.name(), b.name());
                *(if digest == other_digest { &mut same } else { &mut other }) += 1;
            }
        }
        // Both directions of PRESENT and of TWINE, and the key schedules of MANTIS.
        assert_eq!(same, 2 + 2 + 6);
        assert!(other > 1000);
    }
}
