//! What all circuits have in common, and what they cost: `docs/reference/payments.md`.

use std::collections::BTreeSet;
use std::fmt::Write;

use polyclave_cipher::{
    Circuit, Compiled, CompiledPort, Direction, Maps, Matrix, Table, aes, boolean, compile,
    compile_with_views, modes,
};
use polyclave_payments::{Command, Payment};

use crate::runner::{FORMS, TestKey, cipher_in, with_facts};
use crate::vectors::{FILES, read};

/// Each circuit of the known answers once: a command and its keys.
fn commands() -> Vec<(String, Command, Vec<TestKey>)> {
    let mut known = BTreeSet::new();
    let mut commands = Vec::new();
    for vector in FILES.iter().flat_map(|name| read(name)) {
        let (command, keys) = (vector.command(), vector.keys());
        let name = with_facts(&keys, 8, |facts| command.payment().circuit_name(facts));
        let ciphers: Vec<String> = keys.iter().map(|key| key.cipher.clone()).collect();
        if known.insert((name.clone(), ciphers)) {
            commands.push((name, command, keys));
        }
    }
    commands
}

fn circuit(command: &Command, keys: &[TestKey], element_bits: u8) -> Circuit {
    with_facts(keys, element_bits, |facts| command.payment().circuit(facts, element_bits))
}

fn has_right_ports(payment: &dyn Payment, circuit: &Circuit, keys: &[TestKey], element_bits: u8) {
    let name = circuit.name();
    let mut expected: Vec<String> = (1..=keys.len()).map(|i| format!("round_keys {i}")).collect();
    expected.push("public".into());
    if payment.random_bytes() > 0 {
        expected.push("random".into());
    }
    let names: Vec<&str> = circuit.inputs().iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, expected, "{name}");
    for (port, key) in circuit.inputs().iter().zip(keys) {
        let cipher = cipher_in(&key.cipher, element_bits);
        let round_keys = &cipher.encrypt.inputs()[1];
        assert_eq!((port.bits, port.cells.len()), (round_keys.bits, round_keys.cells.len()), "{name}");
        assert!(port.uniform, "{name}");
    }
    assert!(circuit.inputs()[keys.len()..].iter().all(|port| port.bits == 1 && !port.uniform), "{name}");
    assert!(!circuit.outputs().is_empty(), "{name}");
    for port in circuit.outputs() {
        let bits = port.cells.len() * usize::from(port.bits);
        assert_eq!(port.bits, element_bits, "{name}");
        match port.name.as_str() {
            "check" => assert_eq!(bits, 128, "{name}"),
            "answer" => assert_eq!(bits % 8, 0, "{name}"),
            other => panic!("{name} puts out {other}"),
        }
    }
    let has_condition = circuit.outputs().iter().any(|port| port.name == "check");
    assert_eq!(!payment.counted().is_empty(), has_condition, "{name}");
    assert_eq!(payment.roles().len(), keys.len());
    assert!(payment.counted().iter().all(|place| *place < keys.len()));
}

/// Every table has polynomials, or is one of AES; or all are ANDs.
fn has_small_tables(circuit: &Circuit, element_bits: u8) {
    let s_boxes = [aes::s_box(), aes::inverse_s_box()];
    let and = boolean::and_table();
    for table in circuit.tables() {
        let is_small = table.in_bits() <= 6 && table.out_bits() <= 4;
        let is_right = match element_bits {
            1 => table.entries() == and.entries(),
            _ => is_small || s_boxes.iter().any(|s_box| s_box == &**table),
        };
        assert!(is_right, "{} has the table {}", circuit.name(), table.name());
    }
}

#[test]
fn each_key_pays_for_what_it_computes() {
    for (_, command, keys) in commands() {
        with_facts(&keys, 8, |facts| {
            let blocks = command.payment().blocks(facts);
            assert_eq!(blocks.len(), keys.len());
            // OPc is a value that computes nothing.
            let paid = keys.iter().zip(&blocks);
            let pays = |(key, blocks): (&TestKey, &u64)| {
                (*blocks > 0) != (key.purpose.to_string() == "milenage-operator")
            };
            assert!(paid.into_iter().all(pays), "{command:?}: {blocks:?}");
        });
    }
}

/// Shares of bytes, as of Shamir's sharing over GF(2^8): products by constants are free, and lookups start
/// from the images that they need.
struct Bytes;

impl Maps for Bytes {
    fn is_local(&self, m: &Matrix) -> bool {
        m.as_scalar().is_some()
    }

    fn split(&self, m: &Matrix) -> (Matrix, Matrix) {
        if self.is_local(m) {
            return (*m, Matrix::identity(m.ins()));
        }
        let factor = m.columns().into_iter().find(|c| *c != 0).filter(|_| m.outs() == 8).map(Matrix::scalar);
        match factor.and_then(|factor| Some((factor, factor.inverse()?))) {
            Some((factor, inverse)) => (factor, inverse.after(m)),
            None => (Matrix::identity(m.outs()), *m),
        }
    }

    fn wants(&self, table: &Table) -> Vec<Matrix> {
        let bits = table.in_bits();
        if let Some(inversion) = table.inversion() {
            let before = inversion.before.matrix;
            return vec![before, Matrix::frobenius(1).after(&before)];
        }
        let polynomials = table.pulkus_vivek().expect("all tables have polynomials");
        let element = Matrix::of(bits, 8, |x| x);
        let images =
            [Matrix::frobenius(1), Matrix::frobenius(2), polynomials.p1.maps[0], polynomials.p2.maps[0]];
        [Matrix::identity(bits)].into_iter().chain(images.iter().map(|m| m.after(&element))).collect()
    }
}

/// Keys are stored with the images that their own circuits need, and have no others.
#[test]
fn no_view_of_a_round_key_is_needed_that_is_not_stored() {
    for (name, command, keys) in commands() {
        let compiled = compile(&circuit(&command, &keys, 8), &Bytes);
        for (port, key) in compiled.inputs().iter().zip(&keys) {
            let cipher = cipher_in(&key.cipher, 8);
            let decrypt = cipher.circuit(Direction::Decrypt).expect("it decrypts");
            let last = compile(&modes::last_of_cmac(&cipher), &Bytes);
            let subkeys = compile_with_views(&modes::subkeys(&cipher), &Bytes, |_| last.inputs()[2].views());
            let own: Vec<Compiled> = [&*cipher.encrypt, &*decrypt]
                .map(|circuit| compile(circuit, &Bytes))
                .into_iter()
                .chain([subkeys, last])
                .collect();
            let of_round_keys = |c: &Compiled| c.inputs().last().map(CompiledPort::views).unwrap_or_default();
            let stored: Vec<Matrix> = own.iter().flat_map(of_round_keys).collect();
            for view in port.views() {
                assert!(stored.contains(&view), "{name} needs {view:?} of {}", port.name);
            }
        }
    }
}

/// Each kind of command, with known answers as examples: one for each choice of purposes of keys.
fn examples() -> String {
    let mut page = String::from(
        "\n# Examples\n\nKnown answers of each command, as `polyclave pay` takes it: one for each choice of keys, \
         which come in this order.\n",
    );
    let mut kinds: Vec<(&str, Vec<(String, String)>)> = Vec::new();
    let commands = commands();
    for (_, command, keys) in &commands {
        let payment = command.payment();
        let roles = payment.roles();
        let of_keys: Vec<String> =
            roles.iter().zip(keys).map(|(role, key)| format!("{} (`{}`)", role.name, key.purpose)).collect();
        let right = if payment.issues() { "issue" } else { "pay" };
        let takes = format!("Right `{right}`. Keys: {}.", of_keys.join(", "));
        let text = serde_json::to_string_pretty(command).expect("it can be written");
        let at = kinds.iter().position(|(kind, _)| *kind == payment.kind()).unwrap_or_else(|| {
            kinds.push((payment.kind(), Vec::new()));
            kinds.len() - 1
        });
        if kinds[at].1.iter().all(|(known, _)| *known != takes) {
            kinds[at].1.push((takes, text));
        }
    }
    for (kind, examples) in kinds {
        write!(page, "\n## {kind}\n").expect("a text takes all");
        for (takes, text) in examples {
            write!(page, "\n{takes}\n\n```json\n{text}\n```\n").expect("a text takes all");
        }
    }
    page
}

/// The page of the reference. Also: circuits put out a check and an answer, and have small tables.
#[test]
fn circuits_are_as_they_should_be_and_cost_what_is_documented() {
    let mut page = String::from(
        "<!-- A test writes this page: see CONTRIBUTING.md. -->\n\n# Payment commands\n\n\
         What the circuits of payment commands take: layers are exchanges of lookups, one after the other. \
         Tables are evaluated as they are under `shamir`, and as gates under protocols of bits, where each \
         gate is an AND. The circuits are those of the known answers in `crates/payments/tests/vectors`; \
         longer messages and more bits in a KSN take more.\n\n\
         | command | ciphers | layers | lookups | layers of ANDs | ANDs |\n|---|---|---:|---:|---:|---:|\n",
    );
    for (name, command, keys) in commands() {
        let [tables, gates] = FORMS.map(|element_bits| circuit(&command, &keys, element_bits));
        for (circuit, element_bits) in [&tables, &gates].into_iter().zip(FORMS) {
            has_right_ports(command.payment(), circuit, &keys, element_bits);
            has_small_tables(circuit, element_bits);
        }
        let ciphers: Vec<&str> = keys.iter().map(|key| key.cipher.as_str()).collect();
        writeln!(
            page,
            "| {name} | {} | {} | {} | {} | {} |",
            ciphers.join(", "),
            tables.layers(),
            tables.lookups(),
            gates.layers(),
            gates.lookups()
        )
        .expect("a text takes all");
    }
    page += &examples();
    polyclave_harness::book::compare(
        "reference/payments.md",
        &page,
        "--release -p polyclave-payments --test it documented",
    );
}
