//! The lightweight ciphers against published known answers, as tables and as Boolean circuits, and their
//! counts.

use polyclave_cipher::{
    AnyMap, Cells, Cipher, Circuit, CircuitCost, Direction, Maps, Matrix, Op, Table, boolean, catalog,
    cleartext, compile, compile_with_views, craft, gift, mantis, midori, piccolo, present, skinny, twine,
    wage,
};

#[derive(serde::Deserialize)]
struct KnownAnswer {
    cipher: String,
    key: String,
    #[serde(default)]
    tweak: String,
    plaintext: String,
    ciphertext: String,
}

impl KnownAnswer {
    fn name(&self) -> String {
        self.cipher.to_lowercase()
    }
}

fn known_answers() -> Vec<KnownAnswer> {
    serde_json::from_str(include_str!("../../../../vectors/lightweight-ciphers.json"))
        .expect("the vectors file is well-formed")
}

/// The ciphers of this file.
fn ciphers() -> Vec<Cipher> {
    [
        skinny::ciphers(),
        mantis::ciphers(),
        midori::ciphers(),
        craft::ciphers(),
        twine::ciphers(),
        piccolo::ciphers(),
        present::ciphers(),
        gift::ciphers(),
        wage::ciphers(),
    ]
    .concat()
}

fn known(name: &str) -> Cipher {
    catalog::find(name).expect("the catalog has it")
}

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).expect("vectors are hexadecimal")
}

/// Bytes that look random, are the same every time, and fit cells of 7 bits where a byte holds one.
fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (x >> 57) as u8
    };
    (0..count).map(next).collect()
}

/// Runs a circuit; one block per lane, uniform inputs one block.
fn run(circuit: &Circuit, maps: &impl Maps, inputs: &[&[u8]]) -> Vec<u8> {
    assert_eq!(circuit.inputs().len(), inputs.len(), "{}", circuit.name());
    let ports = circuit.inputs().iter().zip(inputs);
    let cells: Vec<Cells> =
        ports.map(|(p, x)| Cells::from_blocks(p.cells.len(), p.bits, x).expect("whole blocks")).collect();
    let lanes = circuit.inputs().iter().zip(&cells).filter(|(p, _)| !p.uniform).map(|(_, c)| c.lanes()).max();
    let compiled = compile(circuit, maps);
    cleartext::run(&compiled, lanes.unwrap_or(1), &cells).expect("the inputs fit").remove(0).to_blocks()
}

/// A cipher by its circuits, the key schedule apart or in it; a tweak or key of no bytes is no input.
fn crypt(
    cipher: &Cipher,
    direction: Direction,
    maps: &impl Maps,
    [key, tweak, blocks]: [&[u8]; 3],
    apart: bool,
) -> Vec<u8> {
    let circuit = match apart {
        true => (*cipher.circuit(direction).expect("it runs this way")).clone(),
        false => cipher.circuit_with_key_schedule(direction).expect("it runs this way"),
    };
    let expanded = match apart && !key.is_empty() {
        true => run(&cipher.key_schedule, maps, &[key]),
        false => key.to_vec(),
    };
    let inputs = [blocks, tweak, &expanded];
    let inputs: Vec<&[u8]> = inputs.into_iter().filter(|bytes| !bytes.is_empty()).collect();
    run(&circuit, maps, &inputs)
}

#[test]
fn every_cipher_is_in_the_catalog_and_has_a_known_answer() {
    let answers = known_answers();
    for cipher in ciphers() {
        assert_eq!(known(&cipher.name).encrypt.digest(), cipher.encrypt.digest());
        assert!(answers.iter().any(|answer| answer.name() == cipher.name), "{}", cipher.name);
    }
    assert_eq!(ciphers().len(), 22);
}

#[test]
fn published_answers_hold_as_tables_and_as_gates_in_both_directions() {
    for answer in known_answers() {
        let name = answer.name();
        let [key, tweak, plaintext, ciphertext] =
            [&answer.key, &answer.tweak, &answer.plaintext, &answer.ciphertext].map(|text| bytes(text));
        for cipher in [known(&name), boolean::cipher(&name).expect("the catalog has it")] {
            assert_eq!((key.len(), tweak.len()), (cipher.key_bytes, cipher.tweak_bytes), "{name}");
            for apart in [true, false] {
                let encrypted =
                    crypt(&cipher, Direction::Encrypt, &AnyMap, [&key, &tweak, &plaintext], apart);
                assert_eq!(hex::encode(encrypted), answer.ciphertext, "{name}");
                if cipher.decrypt.is_some() {
                    let decrypted =
                        crypt(&cipher, Direction::Decrypt, &AnyMap, [&key, &tweak, &ciphertext], apart);
                    assert_eq!(hex::encode(decrypted), answer.plaintext, "{name} decryption");
                }
            }
        }
    }
}

/// Keys, tweaks and blocks without any pattern, many blocks and a tweak for each: what a published answer is
/// blind to, at least the two directions and the two forms see alike.
#[test]
fn decryption_undoes_encryption_on_blocks_side_by_side() {
    for (seed, cipher) in (1..).zip(ciphers()) {
        let gates = boolean::cipher(&cipher.name).expect("the catalog has it");
        let (key, lanes) = (noise(cipher.key_bytes, seed), 9);
        let (tweak, blocks) =
            (noise(lanes * cipher.tweak_bytes, seed + 100), noise(lanes * cipher.block_bytes, seed + 200));
        let encrypted = crypt(&cipher, Direction::Encrypt, &AnyMap, [&key, &tweak, &blocks], true);
        assert_eq!(
            crypt(&gates, Direction::Encrypt, &AnyMap, [&key, &tweak, &blocks], true),
            encrypted,
            "{}",
            cipher.name
        );
        if cipher.decrypt.is_some() {
            let inputs = [&key[..], &tweak, &encrypted];
            for cipher in [&cipher, &gates] {
                let name = &cipher.name;
                assert_eq!(crypt(cipher, Direction::Decrypt, &AnyMap, inputs, true), blocks, "{name}");
            }
        }
    }
}

#[test]
fn each_block_has_its_own_tweak() {
    for name in ["mantis7", "craft"] {
        let cipher = known(name);
        let (key, block, tweaks) = (noise(16, 1), noise(8, 2), noise(16, 3));
        let both = crypt(
            &cipher,
            Direction::Encrypt,
            &AnyMap,
            [&key, &tweaks, &[&block[..], &block].concat()],
            true,
        );
        let alone = |tweak: &[u8]| crypt(&cipher, Direction::Encrypt, &AnyMap, [&key, tweak, &block], true);
        assert_eq!(both, [alone(&tweaks[..8]), alone(&tweaks[8..])].concat());
        assert_ne!(both[..8], both[8..]);
    }
}

/// Nibbles and bytes of the published keys of TWINE, Piccolo and PRESENT are alike: with a key whose are not,
/// swapping them must change the answer.
#[test]
fn nibbles_and_bytes_of_keys_are_told_apart() {
    for name in ["twine-80", "twine-128", "piccolo-80", "piccolo-128", "present-80", "present-128"] {
        let cipher = known(name);
        let key: Vec<u8> = (0..cipher.key_bytes as u8).map(|i| 0x1f ^ i.wrapping_mul(0x2b)).collect();
        let swapped: Vec<u8> = key.iter().map(|x| x.rotate_left(4)).collect();
        let reversed: Vec<u8> = key.iter().rev().copied().collect();
        let [plain, nibbles, order] = [&key, &swapped, &reversed]
            .map(|key| crypt(&cipher, Direction::Encrypt, &AnyMap, [key, &[], &[0; 8]], true));
        assert!(plain != nibbles && plain != order && nibbles != order, "{name}");
    }
}

#[test]
fn first_block_of_a_skinny_tweakey_meets_no_lfsr() {
    let maps = |name: &str| {
        let schedule = &known(name).key_schedule;
        let is_map =
            |op: &&Op| matches!(op, Op::Linear { terms, .. } if terms.iter().any(|(_, m)| !m.is_identity()));
        schedule.ops().iter().filter(is_map).count()
    };
    assert_eq!(maps("skinny-64-64"), 0);
    assert_eq!(maps("skinny-128-128"), 0);
    // Eight cells of each other block, after every round; the last ones are made for nobody.
    assert_eq!(maps("skinny-64-128"), 8 * 36);
    let needed = CircuitCost::of(&compile(&known("skinny-64-128").key_schedule, &AnyMap)).maps;
    assert_eq!(needed, 280);
}

#[test]
fn last_rounds_end_where_the_papers_say() {
    // CRAFT's last round stops before the S-boxes, Midori's and MANTIS's have no matrix, SKINNY's is whole.
    let lookups_and_layers = |name: &str| (known(name).encrypt.lookups(), known(name).encrypt.layers());
    assert_eq!(lookups_and_layers("craft"), (31 * 16, 31));
    assert_eq!(lookups_and_layers("midori64"), (16 * 16, 16));
    assert_eq!(lookups_and_layers("skinny-64-128"), (36 * 16, 36));
}

#[test]
fn lookups_are_as_many_as_the_rounds_make() {
    let expected = [
        ("skinny-64-64", 512, 0),
        ("skinny-64-128", 576, 0),
        ("skinny-64-192", 640, 0),
        ("skinny-128-128", 640, 0),
        ("skinny-128-256", 768, 0),
        ("skinny-128-384", 896, 0),
        ("mantis5", 192, 0),
        ("mantis6", 224, 0),
        ("mantis7", 256, 0),
        ("mantis8", 288, 0),
        ("midori64", 256, 0),
        ("midori128", 320, 0),
        ("craft", 496, 0),
        ("twine-80", 288, 70),
        ("twine-128", 288, 105),
        ("piccolo-80", 400, 0),
        ("piccolo-128", 496, 0),
        ("present-80", 496, 31),
        ("present-128", 496, 62),
        ("gift-64", 448, 0),
        ("gift-128", 1280, 0),
        ("wage-permutation", 222 + 444, 0),
    ];
    for cipher in ciphers() {
        let lookups = (cipher.name.as_str(), cipher.encrypt.lookups(), cipher.key_schedule.lookups());
        assert!(expected.contains(&lookups), "{lookups:?}");
        if let Some(decrypt) = cipher.decrypt {
            assert_eq!(decrypt.lookups(), cipher.encrypt.lookups(), "{}", cipher.name);
        }
    }
}

/// Only sums of unchanged cells and maps of single bits are free.
struct XorOnly;

impl Maps for XorOnly {
    fn is_local(&self, m: &Matrix) -> bool {
        m.is_identity() || m.ins() == 1
    }
}

/// Views of lookups, encrypting and decrypting, and of the lookups of a key schedule that feeds both.
fn views(name: &str) -> (usize, Option<usize>, usize) {
    let cipher = known(name);
    let mut wanted = Vec::new();
    let mut of = |circuit: &Circuit| {
        let compiled = compile(circuit, &XorOnly);
        wanted.extend(compiled.inputs().iter().filter(|port| port.uniform).flat_map(|port| port.views()));
        CircuitCost::of(&compiled).views
    };
    let (encrypt, decrypt) = (of(&cipher.encrypt), cipher.decrypt.as_deref().map(&mut of));
    let schedule = compile_with_views(&cipher.key_schedule, &XorOnly, |_| wanted.clone());
    (encrypt, decrypt, CircuitCost::of(&schedule).views)
}

#[test]
fn views_stay_few_where_only_xor_is_free() {
    for cipher in ciphers() {
        let (encrypt, decrypt, _) = views(&cipher.name);
        let lookups = cipher.encrypt.lookups();
        // A binary linear layer takes one view of a lookup, one that moves bits four, the feedback of WAGE at
        // most four.
        let most = match cipher.name.split_once('-').map_or("", |(family, _)| family) {
            "present" | "gift" | "wage" => 4 * lookups,
            "piccolo" => lookups + lookups / 2,
            _ => lookups,
        };
        assert!(encrypt <= most && decrypt.is_none_or(|views| views <= most), "{}", cipher.name);
    }
    // 496 S-boxes and 248 doublings; 288 and the 105 of the key schedule, of which two are made for nobody.
    assert_eq!(views("piccolo-128"), (496 + 248, Some(496 + 248), 0));
    assert_eq!(views("twine-128"), (288, Some(288), 103));
}

/// Doubling in GF(2^4) and moving bits are folded back into views: the answers stay.
#[test]
fn folding_maps_into_views_changes_no_answer() {
    for answer in known_answers() {
        let cipher = known(&answer.name());
        let [key, tweak, plaintext, ciphertext] =
            [&answer.key, &answer.tweak, &answer.plaintext, &answer.ciphertext].map(|text| bytes(text));
        let encrypted = crypt(&cipher, Direction::Encrypt, &XorOnly, [&key, &tweak, &plaintext], false);
        assert_eq!(encrypted, ciphertext, "{}", cipher.name);
        if cipher.decrypt.is_some() {
            let decrypted = crypt(&cipher, Direction::Decrypt, &XorOnly, [&key, &tweak, &ciphertext], false);
            assert_eq!(decrypted, plaintext, "{}", cipher.name);
        }
    }
}

/// ANDs of a table as gates, and their depth.
fn ands(table: &Table) -> (usize, usize) {
    let mut b = polyclave_cipher::Builder::new(table.name());
    let t = b.table(&std::sync::Arc::new(table.clone()));
    let x = b.input("x", 1, table.in_bits())[0];
    let y = b.lookup(t, x);
    b.output("y", &[y]);
    let circuit = boolean::expand(&b.finish());
    (circuit.lookups(), circuit.layers())
}

#[test]
fn s_boxes_take_so_many_ands() {
    let tables = [
        (skinny::s_box(4), (4, 2)),
        (skinny::inverse_s_box(4), (4, 2)),
        (skinny::s_box(8), (8, 4)),
        (skinny::inverse_s_box(8), (8, 4)),
        (midori::s_box_0(), (4, 2)),
        (midori::s_box_1(), (5, 3)),
        (midori::s_box_of_cell(0), (10, 3)),
        (midori::s_box_of_cell(1), (10, 3)),
        (midori::s_box_of_cell(2), (10, 3)),
        (midori::s_box_of_cell(3), (10, 3)),
        (twine::s_box(), (5, 3)),
        (piccolo::s_box(), (4, 2)),
        (present::s_box(), (4, 2)),
        (present::inverse_s_box(), (4, 2)),
        (gift::s_box(), (4, 3)),
        (gift::inverse_s_box(), (4, 3)),
        (wage::s_box(), (18, 6)),
        (wage::wgp(), (48, 4)),
    ];
    let counted: Vec<_> = tables.iter().map(|(table, _)| (table.name(), ands(table))).collect();
    let expected: Vec<_> = tables.iter().map(|(table, expected)| (table.name(), *expected)).collect();
    assert_eq!(counted, expected);
}

#[test]
fn ands_of_whole_ciphers_are_those_of_their_s_boxes() {
    for cipher in ciphers() {
        let gates = boolean::cipher(&cipher.name).expect("the catalog has it");
        // The last lookups of TWINE's key schedule are made for nobody.
        let s_boxes = |circuit: &Circuit| -> usize {
            let needed = compile(circuit, &AnyMap);
            let each: Vec<usize> = needed.tables().iter().map(|table| ands(table).0).collect();
            needed.lookups().map(|lookup| each[lookup.table]).sum()
        };
        let (encrypt, schedule) = (gates.encrypt.lookups(), gates.key_schedule.lookups());
        // WAGE looks most words up in both tables, which share products of bits.
        let expected = if cipher.key_bytes == 0 { 17_997 } else { s_boxes(&cipher.encrypt) };
        assert_eq!(encrypt, expected, "{}", cipher.name);
        assert_eq!(schedule, s_boxes(&cipher.key_schedule), "{}", cipher.name);
    }
}

#[test]
fn permutation_has_no_key() {
    let cipher = known("wage-permutation");
    assert_eq!(cipher.key_bytes, 0);
    assert!(cipher.key_schedule.inputs().is_empty() && cipher.key_schedule.outputs().is_empty());
    let whole = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it runs one way");
    assert_eq!(whole.inputs().len(), 1);
    assert!(cipher.circuit(Direction::Decrypt).is_none());
}
