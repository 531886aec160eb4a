//! Table II: times of this machine, in this run.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use polyclave_cipher::{AnyMap, Cells, Circuit, Compiled, Direction, boolean, catalog, cleartext, compile};
use polyclave_protocol::any::{AnyProtocolConfig, AnySession, AnyShared};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Error, Party, Result as Outcome};
use polyclave_protocol_lab::testkit::alone::{Nobody, Tape};

use super::counted::{HALF_GATES, PROJECTIONS, owner};
use crate::bench::{Setting, Spread};
use crate::circuits::Form;
use crate::eval::parties::entrance_of_all;
use crate::reproduce::measure::random_inputs;
use crate::reproduce::table::Cell;
use crate::reproduce::timer::{Timer, build};

const BLOCKS: usize = 100;
const REPEATS: usize = 11;
const GARBLER: Party = Party(0);
const EVALUATOR: Party = Party(1);

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// Half gates, one block after another.
    And,
    /// Half gates, all blocks in parallel.
    Bit,
    /// Projection gates, all blocks in parallel.
    Proj,
}

const VARIANTS: [Variant; 3] = [Variant::And, Variant::Bit, Variant::Proj];

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::And => "AND",
            Variant::Bit => "Bit",
            Variant::Proj => "Proj",
        }
    }

    fn how(self) -> &'static str {
        match self {
            Variant::And => "half gates, one block after another",
            Variant::Bit => "half gates, all blocks side by side",
            Variant::Proj => "projection gates with labels of 16 bytes, all blocks side by side",
        }
    }

    fn times(self, cipher: &str, blocks: usize) -> Result<Times> {
        let known = catalog::find(cipher).with_context(|| format!("the catalog has no {cipher}"))?;
        let circuit =
            known.circuit_with_key_schedule(Direction::Encrypt).context("the cipher does not encrypt")?;
        match self {
            Variant::And => {
                Times::of(&AnyProtocolConfig::new(HALF_GATES), &boolean::expand(&circuit), 1, blocks)
            }
            Variant::Bit => {
                Times::of(&AnyProtocolConfig::new(HALF_GATES), &boolean::expand(&circuit), blocks, 1)
            }
            Variant::Proj => Times::of(&AnyProtocolConfig::new(PROJECTIONS), &circuit, blocks, 1),
        }
    }

    /// Milliseconds a block for both parties including everything, and the conditions.
    fn end_to_end(self, cipher: &'static str, timer: &mut Timer) -> Result<(Option<f64>, String)> {
        let setting = Setting {
            protocol: if self == Variant::Proj { "garbled-projection" } else { "garbled-half" },
            cipher,
            form: if self == Variant::Proj { Form::Tables } else { Form::Boolean },
            parties: 2,
            threads: 1,
            options: if self == Variant::Proj { vec![("label-bytes", "16")] } else { vec![] },
            blocks: BLOCKS,
            repeats: REPEATS,
            latency_samples: 21,
        };
        let (rates, note) = timer.rates(setting)?;
        let [_, median, _] = rates.online;
        Ok(match self {
            Variant::And => {
                (rates.latency_ms, format!("{note}; here a block alone, with the wait for its messages"))
            }
            _ => (Some(1e3 / median), note),
        })
    }
}

/// A cipher of the table.
struct Measured {
    name: &'static str,
    cipher: &'static str,
    block_bits: u32,
    cell_bits: u32,
    s_boxes: u32,
    ands_of_s_box: u32,
    /// For each variant: garbling and evaluation in ms, and kB, each for a block.
    published: [[f64; 3]; 3],
}

const MEASURED: [Measured; 2] = [
    Measured {
        name: "SKINNY-64-128",
        cipher: "skinny-64-128",
        block_bits: 64,
        cell_bits: 4,
        s_boxes: 36 * 16,
        ands_of_s_box: 4,
        published: [[0.70, 0.56, 74.0], [0.28, 0.17, 74.0], [0.35, 0.07, 139.0]],
    },
    Measured {
        name: "SKINNY-128-128",
        cipher: "skinny-128-128",
        block_bits: 128,
        cell_bits: 8,
        s_boxes: 40 * 16,
        ands_of_s_box: 8,
        published: [[1.81, 1.10, 164.0], [0.78, 0.32, 164.0], [5.78, 0.04, 2613.0]],
    },
];

impl Measured {
    /// The size of all ciphertexts of a block: of gates, and of conversions of the block's bits.
    fn bytes(&self, variant: Variant) -> f64 {
        let ciphertexts = match variant {
            Variant::Proj => ((1 << self.cell_bits) - 1) * self.s_boxes + self.block_bits,
            Variant::And | Variant::Bit => 2 * self.ands_of_s_box * self.s_boxes,
        };
        16.0 * f64::from(ciphertexts)
    }
}

/// Performance of circuit-based implementations of 100 SKINNY encryptions.
pub fn table_2(timer: &mut Timer) -> Result<Vec<Cell>> {
    let blocks = timer.blocks_or(BLOCKS);
    let (mut cells, mut compared) = (Vec::new(), Vec::new());
    for measured in &MEASURED {
        let mut all = Vec::new();
        for (variant, published) in VARIANTS.into_iter().zip(measured.published) {
            let row = format!("{}, {}", measured.name, variant.name());
            let times = variant.times(measured.cipher, blocks)?;
            cells.extend(times.cells(&row, variant, published, measured.bytes(variant), blocks));
            let (ms, note) = variant.end_to_end(measured.cipher, timer)?;
            cells.push(Cell::unpublished(&row, "Both, over TLS (ms)", ms).note(&note));
            all.push(times);
        }
        compared.extend(gains(measured.name, &measured.published, &all));
    }
    cells.extend(compared);
    Ok(cells)
}

/// How much faster projections are than half gates, by the cells of the table.
fn gains(name: &str, published: &[[f64; 3]; 3], times: &[Times]) -> Vec<Cell> {
    const EVAL: &str = "of the poster's cells, which make 2.4 to 27.5; its text has 2.4 to 25";
    const GARBLE: &str = "of the poster's cells";
    const SENT: &str = "of the poster's cells, which make 1.9 to 15.9 times more; its text has 1.8 to 15";
    const UNCOPIED: &str = "with nothing copied: what evaluating alone gains, were all ciphertexts near";
    let [.., after] = published;
    let Some(by_projections) = times.last() else { return Vec::new() };
    let mut cells = Vec::new();
    for ((variant, before), by_half_gates) in VARIANTS.into_iter().zip(published).zip(times).take(2) {
        let row = format!("{name}, Proj over {}", variant.name());
        let columns = [
            (
                "Eval, times quicker",
                EVAL,
                before[1] / after[1],
                by_half_gates.eval.median / by_projections.eval.median,
            ),
            (
                "Garble, times quicker",
                GARBLE,
                before[0] / after[0],
                by_half_gates.garble.median / by_projections.garble.median,
            ),
            ("Comm., times less", SENT, before[2] / after[2], by_half_gates.bytes / by_projections.bytes),
        ];
        for (column, of_cells, published, ours) in columns {
            let verdict = match (published > 1.0, ours > 1.0) {
                (true, false) => "; the gain does not hold here",
                (true, true) if ours < published => "; the gain is less here",
                (false, true) => "; the loss is a gain here",
                _ => "",
            };
            cells.push(Cell::compared(&row, column, published, ours).note(&format!("{of_cells}{verdict}")));
        }
        let uncopied = by_half_gates.eval_uncopied.median / by_projections.eval_uncopied.median;
        cells.push(Cell::unpublished(&row, "Eval, uncopied, times quicker", uncopied).note(UNCOPIED));
    }
    cells
}

/// What a block took, in milliseconds and bytes.
struct Times {
    garble: Spread,
    /// With the ciphertexts copied out of memory.
    eval: Spread,
    /// With arbitrary bytes in the buffer of messages.
    eval_uncopied: Spread,
    bytes: f64,
}

impl Times {
    /// Measures a number of blocks at once, a number of times.
    fn of(config: &AnyProtocolConfig, circuit: &Circuit, lanes: usize, times: usize) -> Result<Times> {
        let inputs = random_inputs(circuit, lanes)?;
        let [first, second] =
            <[Mesh; 2]>::try_from(mesh(2)).map_err(|_| Error::misuse("a mesh has two ends"))?;
        let sit = |net| Seat::of(config, circuit, &inputs, net);
        let (garbler, evaluator) = both(|| sit(first), || sit(second))?;
        let mut seats = [garbler, evaluator];
        let conversions = seats[0].ciphertexts as f64 / lanes as f64;
        let per_block = |seconds: f64| 1e3 * seconds / (lanes * times) as f64;
        let mut tape = Tape::new(GARBLER);
        let (mut garble, mut eval, mut eval_uncopied) = (Vec::new(), Vec::new(), Vec::new());
        // The first run touches memory that nobody has used, and is not counted.
        for repeat in 0..=REPEATS {
            let mut taken = [0.0; 3];
            for ((seat, me), taken) in seats.iter_mut().zip([GARBLER, EVALUATOR]).zip(&mut taken) {
                let began = Instant::now();
                seat.run(false, times, &mut Nobody(me))?;
                *taken = began.elapsed().as_secs_f64();
            }
            tape.erase_for(GARBLER);
            seats[0].run(true, times, &mut tape)?;
            tape.rewind_for(EVALUATOR);
            let began = Instant::now();
            seats[1].run(true, times, &mut tape)?;
            taken[2] = began.elapsed().as_secs_f64();
            if repeat > 0 {
                garble.push(per_block(taken[0]));
                eval_uncopied.push(per_block(taken[1]));
                eval.push(per_block(taken[2]));
            }
        }
        let [garbler, evaluator] = seats;
        let (opened, also) = both(|| garbler.open(), || evaluator.open())?;
        let right = cleartext::run(&compile(circuit, &AnyMap), lanes, &inputs)?;
        let is_right = opened == right[0] && also == right[0];
        ensure!(
            is_right,
            "{} under {} gives another output than in the clear",
            circuit.name(),
            config.name()
        );
        let spread = |values| Spread::of(values).context("something was measured");
        let bytes = tape.len() as f64 / (lanes * times) as f64 + 16.0 * conversions;
        Ok(Times {
            garble: spread(garble)?,
            eval: spread(eval)?,
            eval_uncopied: spread(eval_uncopied)?,
            bytes,
        })
    }

    fn cells(
        &self,
        row: &str,
        variant: Variant,
        published: [f64; 3],
        bytes: f64,
        blocks: usize,
    ) -> [Cell; 5] {
        let conditions = |spread: &Spread, what: &str| {
            format!(
                "{}; {blocks} blocks with one key, one party alone on one thread of this machine, {what}; median of {REPEATS}, {:.4} to \
                 {:.4}; transfers and conversions are done before{}",
                variant.how(),
                spread.min,
                spread.max,
                build()
            )
        };
        let [garble, eval, kilobytes] = published;
        let garbled = conditions(&self.garble, "into nothing");
        let copied = conditions(
            &self.eval,
            "out of memory, which is copied message by message; what came of it was opened and right",
        );
        let uncopied =
            conditions(&self.eval_uncopied, "with nothing copied, from a buffer that stays near: a bound");
        let sent = "ciphertexts that the garbler sent, the block's bits being the evaluator's; transfers are not in it, nor fit they into \
                    the poster's values";
        [
            Cell::compared(row, "Garble (ms)", garble, self.garble.median).note(&garbled),
            Cell::compared(row, "Eval (ms)", eval, self.eval.median).note(&copied),
            Cell::unpublished(row, "Eval, uncopied (ms)", self.eval_uncopied.median).note(&uncopied),
            Cell::count(row, "Comm. (kB)", kilobytes, (self.bytes / 1e3).round()).note(sent),
            Cell::predicted(row, "Comm. (bytes)", bytes, self.bytes),
        ]
    }
}

/// A party after everything that is done once. Inputs are shared, so only gates remain.
struct Seat {
    /// For runs without the other party.
    alone: AnySession,
    /// For runs whose messages go to the other party.
    taped: AnySession,
    compiled: Compiled,
    shared: Vec<AnyShared>,
    lanes: usize,
    /// The number of ciphertexts for the inputs.
    ciphertexts: u64,
    output: Option<AnyShared>,
    net: Mesh,
}

impl Seat {
    /// The evaluator gives the blocks, the garbler the key.
    fn of(config: &AnyProtocolConfig, circuit: &Circuit, inputs: &[Cells], mut net: Mesh) -> Outcome<Seat> {
        let terms = config.handshake(HandshakeParameters::new(2)).with("circuit", &circuit.digest());
        let mut session = hello(&terms, &mut net)?;
        let setup = config.setup(&mut net)?;
        let mut taped = config.join(&setup, session.stream(), net.members())?;
        let alone = config.join(&setup, session.stream(), net.members())?;
        let compiled = compile(circuit, &taped);
        let lanes = inputs.iter().map(Cells::lanes).max().unwrap_or(1);
        let entrance = entrance_of_all(compiled.inputs(), &taped);
        let me = net.me();
        let given = entrance.inputs().iter().zip(inputs).map(|(port, cells)| {
            let owner = owner(&port.name, &["block"]);
            if owner == me { Input::Mine(cells) } else { Input::From(owner) }
        });
        let given: Vec<_> = given.collect();
        let batch = prepare(&mut taped, &entrance, lanes, &mut net)?;
        let shared = evaluate(&mut taped, &entrance, lanes, &given, batch, &mut net)?;
        let ciphertexts = taped.tally().input.ciphertexts;
        Ok(Seat { alone, taped, compiled, shared, lanes, ciphertexts, output: None, net })
    }

    /// Evaluates the circuit a number of times.
    fn run(&mut self, is_taped: bool, times: usize, net: &mut dyn Net) -> Outcome<()> {
        let protocol = if is_taped { &mut self.taped } else { &mut self.alone };
        for _ in 0..times {
            let inputs: Vec<_> = self.shared.iter().map(Input::Shared).collect();
            let batch = prepare(protocol, &self.compiled, self.lanes, net)?;
            let output = evaluate(protocol, &self.compiled, self.lanes, &inputs, batch, net)?.pop();
            if is_taped {
                self.output = output;
            }
        }
        Ok(())
    }

    /// Opens the output of the last run with a tape.
    fn open(mut self) -> Outcome<Cells> {
        let nothing = || Error::misuse("nothing was evaluated");
        let output = self.output.ok_or_else(nothing)?;
        let opened = release(&mut self.taped, &output, Owner::All, &mut self.net)?;
        Ok(opened.ok_or_else(nothing)?.accept())
    }
}

/// Runs both parties at the same time.
fn both<T: Send>(
    garbler: impl FnOnce() -> Outcome<T> + Send,
    evaluator: impl FnOnce() -> Outcome<T>,
) -> Outcome<(T, T)> {
    std::thread::scope(|scope| {
        let garbler = scope.spawn(garbler);
        let evaluator = evaluator();
        let garbler =
            garbler.join().unwrap_or_else(|_| Err(Error::System("a party's thread panicked".into())));
        Ok((garbler?, evaluator?))
    })
}
