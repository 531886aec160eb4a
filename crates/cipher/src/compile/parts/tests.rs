use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::key_wrap::{Padding, wrap};
use crate::{Cells, Cipher, aes, catalog, cleartext, compile, modes};

/// A protocol that has another way for some circuits.
struct Apart(HashMap<[u8; 32], Circuit>);

impl Maps for Apart {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }

    fn has_another_way(&self, circuit: &[u8; 32]) -> bool {
        self.0.contains_key(circuit)
    }
}

impl Apart {
    fn from(circuits: &[&Circuit]) -> Apart {
        Apart(circuits.iter().map(|circuit| (circuit.digest(), (*circuit).clone())).collect())
    }

    /// Evaluates the parts, and the circuits between them, in the clear.
    fn run(&self, parts: &Parts, lanes: usize, inputs: &[Cells]) -> Vec<Cells> {
        let mut values: Vec<Option<Cells>> = parts.uniform.iter().map(|_| None).collect();
        inputs.iter().enumerate().for_each(|(number, cells)| values[number] = Some(cells.clone()));
        let given = |values: &[Option<Cells>], takes: &[usize]| -> Vec<Cells> {
            takes.iter().map(|number| values[*number].clone().expect("it was made before")).collect()
        };
        for part in &parts.parts {
            let outputs = cleartext::run(&part.circuit, lanes, &given(&values, &part.takes));
            for (number, cells) in part.gives.iter().zip(outputs.expect("the inputs fit")) {
                values[*number] = Some(cells);
            }
            for one in &part.inserted {
                let lanes = if parts.uniform[one.gives] { 1 } else { lanes };
                let inserted = compile(&self.0[&one.circuit], &crate::AnyMap);
                let mut inputs = given(&values, &one.takes);
                for (cells, port) in inputs.iter_mut().zip(inserted.inputs()) {
                    // What is the same in all lanes goes into each, where each can have its own.
                    if !port.uniform && cells.lanes() < lanes {
                        let whole = cells.to_blocks().repeat(lanes);
                        *cells = Cells::from_blocks(cells.count(), cells.bits(), &whole).expect("whole");
                    }
                }
                let output = cleartext::run(&inserted, lanes, &inputs).expect("they fit").remove(0);
                values[one.gives] = Some(output);
            }
        }
        let last = parts.parts.last().expect("there is a part");
        given(&values, &last.gives)
    }
}

fn check(circuit: &Circuit, apart: &[&Circuit], (parts, inserted, looked_up): (usize, usize, usize)) {
    let apart = Apart::from(apart);
    let lanes = 3;
    let compiled = compile(circuit, &apart);
    let cells = |port: &Port| {
        let mut cells = Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes });
        let rows = cells.rows_mut().iter_mut().enumerate();
        rows.for_each(|(at, cell)| *cell = (at * 29 + 3) as u8 & (0xff >> (8 - port.bits)));
        cells
    };
    let inputs: Vec<Cells> = circuit.inputs().iter().map(cells).collect();
    let whole = cleartext::run(&compiled, lanes, &inputs).expect("they fit");
    let found = compiled.parts().expect("there is another way");
    assert_eq!(apart.run(found, lanes, &inputs), whole, "{}", circuit.name());
    let lookups = found.parts.iter().map(|part| part.circuit.lookups().count()).sum::<usize>();
    let count = found.parts.iter().map(|part| part.inserted.len()).sum::<usize>();
    assert_eq!((found.parts.len(), count, lookups), (parts, inserted, looked_up), "{}", circuit.name());
}

fn aes() -> Cipher {
    catalog::find("aes-128").expect("listed")
}

#[test]
fn parts_and_what_is_between_them_are_the_whole() {
    let (aes, des) = (aes(), catalog::find("3des-ede3").expect("listed"));
    check(&wrap(&aes, Padding::None, 16, (16, 8)), &[&aes.encrypt], (13, 12, 0));
    check(&modes::check_value(&des), &[&des.encrypt], (3, 2, 0));
    check(&of_two_ciphers(&aes, &des), &[&aes.encrypt, &des.encrypt], (2, 2, 0));
    // The outermost one counts.
    check(&modes::chain(&aes), &[&aes.encrypt], (2, 1, 0));
    check(&around(&modes::check_value(&aes)), &[&modes::check_value(&aes), &aes.encrypt], (2, 1, 0));
}

/// A block under each of two ciphers.
fn of_two_ciphers(one: &Cipher, other: &Cipher) -> Circuit {
    let mut b = Builder::new("of two ciphers");
    for (number, cipher) in [one, other].into_iter().enumerate() {
        let [block, keys] = cipher.encrypt.inputs() else { panic!("a block and round keys") };
        let x = b.input(&format!("block {number}"), block.cells.len(), block.bits);
        let keys = b.uniform_input(&format!("round_keys {number}"), keys.cells.len(), keys.bits);
        let y = b.call(&cipher.encrypt, &[&x, &keys]).remove(0);
        b.output(&format!("output {number}"), &y);
    }
    b.finish()
}

/// A circuit, called once.
fn around(circuit: &Circuit) -> Circuit {
    let mut b = Builder::new("around");
    let input = |b: &mut Builder, port: &Port| match port.uniform {
        true => b.uniform_input(&port.name, port.cells.len(), port.bits),
        false => b.input(&port.name, port.cells.len(), port.bits),
    };
    let inputs: Vec<Vec<Wire>> = circuit.inputs().iter().map(|port| input(&mut b, port)).collect();
    let output = b.call(circuit, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>()).remove(0);
    b.output("output", &output);
    b.finish()
}

/// Two circuits side by side, of which one is the same in all lanes; lookups before, between and behind;
/// cells that are carried over a part; and an output that is an input.
#[test]
fn values_are_carried_to_the_parts_that_need_them() {
    let aes = aes();
    let mut b = Builder::new("carried");
    let table = b.table(&Arc::new(aes::s_box()));
    let (x, y) = (b.input("x", 16, 8), b.uniform_input("y", 16, 8));
    let keys = b.uniform_input("round_keys", 176, 8);
    let before = b.lookup_each(table, &x);
    let first = b.call(&aes.encrypt, &[&before, &keys]).remove(0);
    let second = b.call(&aes.encrypt, &[&y, &keys]).remove(0);
    let between = b.xor_each(&first, &second);
    let between = b.lookup_each(table, &between);
    let third = b.call(&aes.encrypt, &[&between, &keys]).remove(0);
    let behind = b.xor_each(&third, &before);
    let behind = b.xor_each(&behind, &second);
    let behind = b.lookup_each(table, &behind);
    b.output("behind", &behind);
    b.output("x", &x);
    b.output("of one lane", &second);
    check(&b.finish(), &[&aes.encrypt], (3, 3, 48));
}

#[test]
fn without_another_way_and_with_very_many_there_are_no_parts() {
    let aes = aes();
    assert!(compile(&modes::check_value(&aes), &crate::AnyMap).parts().is_none());
    assert!(compile(&aes.encrypt, &Apart::from(&[&aes.encrypt])).parts().is_none());
    let mut b = Builder::new("many");
    let (mut x, keys) = (b.input("x", 16, 8), b.uniform_input("round_keys", 176, 8));
    for _ in 0..100 {
        x = b.call(&aes.encrypt, &[&x, &keys]).remove(0);
    }
    b.output("x", &x);
    assert!(compile(&b.finish(), &Apart::from(&[&aes.encrypt])).parts().is_none());
}
