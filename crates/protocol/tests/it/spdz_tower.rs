//! `spdz-tower` against the cleartext evaluator, its counts, what its openings look like, and parties that
//! open something else.

use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::{Builder, Cells, Circuit, Direction, Table, catalog, compile};
use polyclave_field::{Gf2_40, Gf2_64, Gf256};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::conformance::{self, Run, check_circuit};
use polyclave_protocol_lab::testkit::faults::{LATE, run_over};
use polyclave_protocol_lab::testkit::record::{Direction as Way, Record};

use crate::cheat::{Act, Cheat};
use crate::lookups::{config, inverse_table_of, table_of};

const FAILED: Error = Error::CheckFailed { what: "the MACs of opened values" };

fn tower() -> SpdzConfig<Gf2_64> {
    config(2, LookupMethod::Tower)
}

#[test]
fn aes_of_every_size_is_right_in_both_directions() {
    for name in ["aes-128", "aes-192", "aes-256"] {
        let cipher = catalog::find(name).expect("the catalog has it");
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
            for lanes in [1, 3, 70] {
                check_circuit(&tower(), &circuit, lanes, 7);
            }
        }
    }
}

/// FIPS 197, appendix C.1, with its key schedule.
#[test]
fn the_known_answer_is_right_among_three_and_four_parties_with_real_material() {
    for (parties, expansion) in [(3, 4), (4, 2)] {
        let packing = Packing::of::<Gf2_64>(64).expect("the field has this packing");
        let material = Preprocessing::Mascot { expansion };
        let config = SpdzConfig::<Gf2_64>::new(parties, LookupMethod::Tower, material, packing);
        let config = config.expect("it is valid").with_kappa(Kappa::Bits40);
        let cipher = catalog::find("aes-128").expect("listed");
        let circuit = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
        let input = |port: &polyclave_cipher::Port| {
            let bytes: Vec<u8> = match port.name.as_str() {
                "block" => (0..16).map(|i| 0x11 * i).collect(),
                _ => (0..16).collect(),
            };
            Cells::from_blocks(port.cells.len(), port.bits, &bytes).expect("one block")
        };
        let inputs: Vec<Cells> = circuit.inputs().iter().map(input).collect();
        let run = conformance::run(&config, &circuit, 1, &inputs).expect("honest parties finish");
        let answer = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes();
        assert_eq!(run.outputs[0].to_blocks(), answer, "{parties} parties");
    }
}

/// The other tables by masked tables.
#[test]
fn ciphers_of_all_tables_are_right_among_three_parties() {
    for name in ["aes-128", "skinny-128-128", "3des-ede3"] {
        let cipher = catalog::find(name).expect("listed");
        let circuit = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
        check_circuit(&config::<Gf2_64>(3, LookupMethod::Tower), &circuit, 3, 7);
    }
}

#[test]
fn both_tables_are_right_for_every_input() {
    for (circuit, table) in [
        (table_of("aes-128"), catalog::find("aes-128").expect("listed").encrypt.tables()[0].clone()),
        (
            inverse_table_of("aes-128"),
            catalog::find("aes-128").expect("listed").decrypt.expect("listed").tables()[0].clone(),
        ),
    ] {
        let all: Vec<u8> = (0..=255).collect();
        let inputs = [all, vec![0; 256]].map(|cells| Cells::from_blocks(1, 8, &cells).expect("cells"));
        let run = conformance::run(&tower(), &circuit, 256, &inputs).expect("honest parties finish");
        assert_eq!(run.outputs[0].to_blocks(), table.entries());
    }
}

/// Both tables in one layer, beside a table of 4 bits and one of 8 that is not built on inversion.
#[test]
fn tables_of_all_kinds_are_looked_up_side_by_side() {
    let mut b = Builder::new("all kinds");
    let aes = catalog::find("aes-128").expect("listed");
    let plain = Table::new("eight bits", 8, 8, (0..=255_u8).map(|x| x.wrapping_mul(77) ^ x >> 3).collect());
    let narrow = Table::new("four bits", 4, 4, (0..16_u8).map(|x| (x * 7) & 15).collect());
    let tables =
        [aes.encrypt.tables()[0].clone(), aes.decrypt.expect("listed").tables()[0].clone(), Arc::new(plain)]
            .map(|table| b.table(&table));
    let narrow = b.table(&Arc::new(narrow));
    let x = b.input("x", 1, 8)[0];
    let small = b.input("small", 1, 4)[0];
    let ys = tables.map(|table| b.lookup(table, x));
    let sum = b.xor(&ys);
    let again = b.lookup(tables[0], sum);
    let y = b.lookup(narrow, small);
    b.output("wide", &[ys[0], ys[1], ys[2], again]);
    b.output("narrow", &[y]);
    check_circuit(&tower(), &b.finish(), 33, 5);
}

/// 5 rounds a layer, 5 openings and 26 bits a lookup: 520 bytes a block of AES-128 each way.
#[test]
fn counts_are_those_of_the_specification() {
    let circuit = &catalog::find("aes-128").expect("listed").encrypt;
    for lanes in [1, 6] {
        let Run { tallies, cost, .. } = check_circuit(&tower(), circuit, lanes, 9);
        for tally in tallies {
            assert_eq!((tally.online.rounds, tally.online.openings), (50, 800 * lanes as u64));
            assert_eq!((cost.rounds, cost.operations_per_lane), (50.0, 800.0));
            assert_eq!((cost.triples_per_lane, cost.bits_per_lane), (0.0, 0.0));
        }
        assert_eq!(cost.material_bytes_per_lane, 160 * 164);
        for parties in [2, 3] {
            for bytes in run_parties(parties, |net| Ok(sent(net, circuit, lanes))) {
                assert_eq!(bytes, Ok(520 * lanes as u64 * (parties as u64 - 1)), "to every other party");
            }
        }
    }
}

/// Payload that this party sends between the inputs, which are public, and the output.
fn sent(net: &mut dyn Net, circuit: &Circuit, lanes: usize) -> u64 {
    let parties = net.parties();
    let mut net = Metered::new(Forwarded(net));
    let config = config::<Gf2_64>(parties, LookupMethod::Tower);
    let run = |net: &mut Metered<Forwarded<'_>>| -> Result<u64> {
        let mut session = hello(&config.handshake(HandshakeParameters::new(parties)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(circuit, &protocol);
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        let port = |port: &polyclave_cipher::Port| {
            Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes })
        };
        let cells: Vec<Cells> = circuit.inputs().iter().map(port).collect();
        let inputs: Vec<_> = cells.iter().map(Input::Public).collect();
        let before = net.meter().snapshot().payload_sent;
        evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?;
        Ok(net.meter().snapshot().payload_sent - before)
    };
    run(&mut net).expect("honest parties finish")
}

/// A borrowed network, owned.
struct Forwarded<'a>(&'a mut dyn Net);

impl Net for Forwarded<'_> {
    polyclave_protocol::forward_net!(self => self.0; me, parties, send, recv, exchange, fork);
}

const LANES: usize = 4096;
/// Exchanges of a session of one lookup on public inputs: hello (two), setup, and then the openings.
const OPENINGS: usize = 3;
/// The field, bits of a cell.
const KINDS: [u32; 5] = [8, 4, 2, 4, 8];

/// A session that looks the same public cell up in all lanes.
fn same_cell(x: u8, lanes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
    let config = tower();
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let circuit = table_of("aes-128");
    let compiled = compile(&circuit, &protocol);
    let batch = prepare(&mut protocol, &compiled, lanes, net)?;
    let cells = [x, 0].map(|x| Cells::from_blocks(1, 8, &vec![x; lanes]).expect("cells"));
    let inputs: Vec<_> = cells.iter().map(Input::Public).collect();
    let output = evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?.remove(0);
    Ok(release(&mut protocol, &output, Owner::All, net)?.expect("it is for all").accept().to_blocks())
}

/// The five openings of every lane, as coordinates, whatever is looked up: each has every value about equally
/// often, and no two openings depend on each other. (That they are a bijective image of the masks is checked
/// in the unit tests.)
#[test]
fn openings_are_uniform_whatever_is_looked_up() {
    for x in [0, 1, 0x53] {
        let transcripts = Arc::new(Mutex::new(Vec::new()));
        let seen = transcripts.clone();
        let ends: Vec<_> = mesh_with_timeout(2, LATE).into_iter().map(Record::new).collect();
        seen.lock().extend(ends.iter().map(Record::transcript));
        let outcomes = run_over(ends, move |net| same_cell(x, LANES, net));
        assert!(outcomes.iter().all(|outcome| outcome.is_ok()));
        let messages = transcripts.lock()[0].messages();
        let of = |way: Way| -> Vec<Vec<u8>> {
            messages.iter().filter(|message| message.direction == way).map(|m| m.bytes.clone()).collect()
        };
        let sums: Vec<Vec<u8>> = of(Way::Sent)
            .iter()
            .zip(of(Way::Received))
            .map(|(mine, theirs)| mine.iter().zip(theirs).map(|(a, b)| a ^ b).collect())
            .collect();
        let at = sums.iter().position(|sum| sum.len() == LANES).expect("the first opening");
        let rows: Vec<Vec<u8>> =
            sums[at..at + 5].iter().zip(KINDS).map(|(sum, bits)| coordinates(sum, bits)).collect();
        for (row, bits) in rows.iter().zip(KINDS) {
            assert_uniform(row, 1 << bits);
        }
        // Pairs of openings, by their two lowest bits each.
        for i in 0..5 {
            for j in 0..i {
                let pairs: Vec<u8> =
                    rows[i].iter().zip(&rows[j]).map(|(a, b)| (a & 3) << 2 | b & 3).collect();
                assert_uniform(&pairs, 16);
            }
        }
    }
}

/// Of as many cells as there are lanes.
fn coordinates(bytes: &[u8], bits: u32) -> Vec<u8> {
    assert_eq!(bytes.len(), LANES * bits as usize / 8);
    let places = 0..8 / bits;
    places
        .flat_map(|place| bytes.iter().map(move |byte| (byte >> (place * bits)) & (0xff >> (8 - bits))))
        .collect()
}

/// Chi-squared, five standard deviations from its mean at most: a right program fails once in a million.
fn assert_uniform(values: &[u8], of: usize) {
    let mut counts = vec![0_f64; of];
    values.iter().for_each(|value| counts[usize::from(*value)] += 1.0);
    let expected = values.len() as f64 / of as f64;
    let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
    let freedom = (of - 1) as f64;
    assert!(chi < freedom + 6.0 * (2.0 * freedom).sqrt(), "{chi} with {freedom} degrees of freedom");
}

/// What party 2 ends with while party 1 shifts an opening; 0 is the first.
fn shifted(opening: usize, bit: u32) -> Result<Vec<u8>> {
    let ends = mesh_with_timeout(2, LATE).into_iter().map(|net| {
        let to = net.me().peers(2).collect();
        let act = if net.me() == Party(0) { Act::Shift { to, bit } } else { Act::Honest };
        Cheat::new(net, act, OPENINGS + opening..OPENINGS + opening + 1)
    });
    run_over(ends.collect(), |net| same_cell(0x53, 7, net)).remove(1)
}

#[test]
fn every_wrong_opening_is_caught_by_the_check_of_macs() {
    for opening in 0..5 {
        for bit in 0..8 {
            assert_eq!(shifted(opening, bit), Err(FAILED), "opening {opening}, bit {bit}");
        }
    }
}

/// Of 7 cells: two a byte leave the upper half of the last byte, four a byte leave the highest bits.
#[test]
fn bits_that_are_of_no_cell_are_refused() {
    for (opening, bytes) in [(1, 4), (2, 2), (3, 4)] {
        let ends: Vec<_> = mesh_with_timeout(2, LATE)
            .into_iter()
            .map(|net| SpareBit { net, at: (OPENINGS + opening, bytes), exchanges: 0 })
            .collect();
        let outcomes = run_over(ends, |net| same_cell(0x53, 7, net));
        assert_eq!(
            outcomes[1],
            Err(Error::CheckFailed { what: "the bits of an opening that are of no cell" }),
            "opening {opening}"
        );
    }
}

/// Party 1 sets the highest bit of the last byte of one message.
struct SpareBit {
    net: polyclave_protocol::mesh::Mesh,
    /// The exchange, and the length of its message.
    at: (usize, usize),
    exchanges: usize,
}

impl Net for SpareBit {
    polyclave_protocol::forward_net!(self => self.net; me, parties, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.exchanges += 1;
        if self.me() != Party(0) || self.exchanges - 1 != self.at.0 {
            return self.net.exchange(out, into);
        }
        let mut message = out[1].to_vec();
        assert_eq!(message.len(), self.at.1);
        message[self.at.1 - 1] ^= 0x80;
        self.net.exchange(&[&[], &message], into)
    }
}

#[test]
fn a_batch_hands_out_no_record_twice() {
    let outcomes = run_parties(2, |net| {
        let config = tower();
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let circuit = table_of("aes-128");
        let compiled = compile(&circuit, &protocol);
        let mut batch = prepare(&mut protocol, &compiled, 3, net)?;
        let mut registers = protocol.registers(&compiled, 3, &mut batch)?;
        let cells = Cells::zero(1, 8, 3);
        for port in compiled.inputs() {
            protocol.input(port, &Input::Public(&cells), &mut registers, net)?;
        }
        let layer = compiled.layers().iter().find(|layer| !layer.lookups.is_empty()).expect("one lookup");
        protocol.lookup(&compiled, &layer.lookups, &mut registers, &mut batch, net)?;
        Ok(protocol.lookup(&compiled, &layer.lookups, &mut registers, &mut batch, net).err())
    });
    for outcome in outcomes {
        assert!(matches!(outcome, Ok(Some(Error::Misuse(_)))), "{outcome:?}");
    }
}

#[test]
fn it_runs_among_2_to_16_parties_with_macs_of_64_bits() {
    let of = |parties| {
        let packing = Packing::of::<Gf2_64>(1).expect("the field has this packing");
        SpdzConfig::<Gf2_64>::new(
            parties,
            LookupMethod::Tower,
            Preprocessing::Dealt(&InsecureDealing),
            packing,
        )
    };
    assert!([2, 3, 16].into_iter().all(|parties| of(parties).is_ok()));
    assert!([1, 17].into_iter().all(|parties| matches!(of(parties), Err(Error::Misuse(_)))));
    let packing = Packing::of::<Gf2_40>(1).expect("the field has this packing");
    assert!(
        SpdzConfig::<Gf2_40>::new(2, LookupMethod::Tower, Preprocessing::Dealt(&InsecureDealing), packing)
            .is_err()
    );
}

#[test]
fn parties_with_another_kappa_refuse_each_other() {
    let outcomes = run_parties(2, |net| {
        let kappa = if net.me() == Party(0) { Kappa::Bits40 } else { Kappa::Bits64 };
        hello(&tower().with_kappa(kappa).handshake(HandshakeParameters::new(2)), net).map(|_| ())
    });
    for outcome in outcomes {
        assert!(matches!(outcome, Err(Error::Disagreement { field: "kappa", .. })), "{outcome:?}");
    }
}

/// What is opened, from the masks alone: masks and openings determine each other, so openings are uniform for
/// every x.
#[test]
fn for_every_input_openings_and_masks_determine_each_other() {
    let power = |x: Gf256, exponent| x.pow(exponent);
    for x in (0..=255).map(Gf256) {
        let (n, m, v) = (power(x, 17), power(x, 85), power(x, 238));
        assert_eq!(v * power(x, 16), x.inverse_or_zero());
        for seed in 0..64_u8 {
            let [lx, mu] = [3, 5].map(|k| Gf256(seed.wrapping_mul(k).wrapping_add(k)));
            // Elements of GF(16) and GF(4), as powers.
            let [ln, lv] = [7_u32, 11].map(|k| Gf256(3).pow(17 * (u32::from(seed) * k % 15)));
            let lm = Gf256(3).pow(85 * u32::from(seed % 3));
            let h = x + lx;
            let norm = power(h, 17) + h * power(lx, 16) + power(h, 16) * lx + power(lx, 17);
            let g = norm + ln;
            let norm = power(g, 5) + g * power(ln, 4) + power(g, 4) * ln + power(ln, 5);
            let m_opened = norm + lm;
            let (g4, m2, l2) = (power(g, 4), power(m_opened, 2), power(lm, 2));
            let v_opened = g4 * m2 + g4 * l2 + m2 * power(ln, 4) + l2 * power(ln, 4) + lv;
            let h16 = power(h, 16);
            let w = h16 * v_opened + h16 * lv + v_opened * power(lx, 16) + lv * power(lx, 16) + mu;
            assert_eq!([x + h, n + g, m + m_opened, v + v_opened], [lx, ln, lm, lv]);
            assert_eq!(w + mu, x.inverse_or_zero());
        }
    }
}
