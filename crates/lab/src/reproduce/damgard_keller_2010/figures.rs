//! Figures 2 to 5: AES-128 with its key expansion on simulated networks, with every way to invert.
//!
//! Every point is measured when it is asked for, with the parties as processes of their own. The points are
//! compared with the paper's statements about a figure (`judge.rs`).
//!
//! # Differences from the paper
//!
//! * All parties are on one machine. Delay and rate are simulated, and only payload takes time on a line,
//!   whereas the paper's short messages took a packet each.
//! * All blocks of a batch advance in step, with one exchange a round for all of them. In the paper every
//!   S-box ran as soon as it had its inputs, so that some blocks were ahead of others.
//! * The key expansion runs once for all blocks of a batch, which then takes 160 + 40/B S-boxes for each of B
//!   blocks.

mod draw;
mod judge;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use polyclave_protocol::shamir::Inversion;
use polyclave_transport::Shape;
use serde::{Serialize, Serializer};

use crate::bench::{self, Sweep};
use crate::chart::data_beside;
use crate::options::ProtocolOptions;
use crate::reproduce::timer::build;
use judge::{Finding, sentence};

/// A figure of times.
pub struct Figure {
    /// As printed in the paper.
    pub name: &'static str,
    caption: &'static str,
    protocol: &'static str,
    parties: usize,
    abscissa: Abscissa,
    /// Whether online time is drawn beside the total.
    draws_online: bool,
    judge: fn(&[Curve]) -> Vec<Finding>,
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "Figure 2",
        caption: "Encryption of up to 10 blocks in parallel",
        protocol: "shamir",
        parties: 3,
        abscissa: Abscissa::Blocks,
        draws_online: false,
        judge: judge::figure_2,
    },
    Figure {
        name: "Figure 3",
        caption: "Encryption of up to 10 blocks in parallel with active security, total time and online time",
        protocol: "shamir-active",
        parties: 4,
        abscissa: Abscissa::Blocks,
        draws_online: true,
        judge: judge::figure_3,
    },
    Figure {
        name: "Figure 4",
        caption: "Encryption of one block with increased delay",
        protocol: "shamir",
        parties: 3,
        abscissa: Abscissa::Delay,
        draws_online: false,
        judge: judge::figure_4,
    },
    Figure {
        name: "Figure 5",
        caption: "Encryption of one block with limited bandwidth",
        protocol: "shamir",
        parties: 3,
        abscissa: Abscissa::Rate,
        draws_online: false,
        judge: judge::figure_5,
    },
];

/// The paper's parties: one of three, or of four, is corrupt.
const THRESHOLD: usize = 1;
const MAX_BLOCKS: usize = 10;
/// The paper's gigabit network.
const RTT_MS: f64 = 0.1;
/// The delay that is added in one direction, so that a round takes this much longer.
const DELAYS_MS: [f64; 5] = [0.0, 2.5, 5.0, 10.0, 20.0];
/// The rate of every line from one party to one other.
const RATES_KBIT: [f64; 9] = [20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0];
/// Repeats where the machine's noise is a large part of the time, and where the network hides the noise.
const REPEATS: usize = 25;
const REPEATS_IF_SLOW: usize = 3;

/// What varies between the points of a curve.
#[derive(Clone, Copy)]
enum Abscissa {
    Blocks,
    Delay,
    Rate,
}

/// A network on which parties are started.
struct Start {
    network: String,
    sizes: Vec<usize>,
    repeats: usize,
    /// The abscissa, unless it is the number of blocks.
    x: Option<f64>,
}

/// The points of one way to invert.
#[derive(Serialize)]
struct Curve {
    #[serde(serialize_with = "by_name")]
    inversion: Inversion,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    x: f64,
    network: String,
    repeats: usize,
    /// Milliseconds that the bytes of a block take on a line; 0 if it is as fast as the machine.
    line_ms_per_block: f64,
    #[serde(flatten)]
    measured: bench::Point,
}

/// A figure as measured.
#[derive(Serialize)]
pub struct Measured {
    paper: &'static str,
    figure: &'static str,
    caption: &'static str,
    protocol: &'static str,
    parties: usize,
    threshold: usize,
    cipher: &'static str,
    conditions: String,
    instruction_set: &'static str,
    x: &'static str,
    curves: Vec<Curve>,
    findings: Vec<Finding>,
    /// Whether our points agree with the paper's statements.
    pub sentence: String,
}

impl Figure {
    /// The file of its picture. An error before the measurement if that file or the one for the data cannot
    /// be written.
    pub fn file(&self, directory: &Path) -> Result<PathBuf> {
        let make = std::fs::create_dir_all(directory);
        make.with_context(|| format!("cannot make the directory {}", directory.display()))?;
        let name = self.name.to_ascii_lowercase().replace(' ', "-");
        let path = directory.join(name).with_extension("svg");
        data_beside(&path)?;
        Ok(path)
    }

    /// The number of steps of its measurement, for the progress bar; an error if its protocol cannot run.
    pub fn steps(&self, repeats: Option<usize>) -> Result<u64> {
        let sweeps = self.sweeps(repeats)?;
        Ok(sweeps.iter().map(|(.., sweep)| sweep.steps()).sum())
    }

    /// Measures it, draws it into a file and writes the data beside it.
    pub fn make(&self, repeats: Option<usize>, file: &Path, progress: &ProgressBar) -> Result<Measured> {
        let mut curves: Vec<Curve> = Vec::new();
        for (inversion, x, sweep) in self.sweeps(repeats)? {
            progress.set_message(format!("{}, {inversion}, {}", self.name, sweep.network));
            let done_before = progress.position();
            let points = sweep.measure(|done| progress.set_position(done_before + done))?;
            let points = points.into_iter().map(|measured| self.point(x, &sweep, measured));
            let points = points.collect::<Result<Vec<Point>>>()?;
            match curves.last_mut() {
                Some(curve) if curve.inversion == inversion => curve.points.extend(points),
                _ => curves.push(Curve { inversion, points }),
            }
        }
        let findings = (self.judge)(&curves);
        let measured = Measured {
            paper: super::PAPER.name,
            figure: self.name,
            caption: self.caption,
            protocol: self.protocol,
            parties: self.parties,
            threshold: THRESHOLD,
            cipher: "aes-128",
            conditions: self.conditions(),
            instruction_set: polyclave_kernels::instruction_set(),
            x: self.abscissa.title(),
            curves,
            sentence: sentence(&findings),
            findings,
        };
        draw::chart(self, &measured).save(&measured, file)?;
        Ok(measured)
    }

    /// All starts of the parties, grouped by way to invert, with the abscissa unless it is the number of
    /// blocks.
    fn sweeps(&self, repeats: Option<usize>) -> Result<Vec<(Inversion, Option<f64>, Sweep)>> {
        let protocol = |inversion: Inversion| ProtocolOptions {
            threshold: Some(THRESHOLD),
            ..ProtocolOptions::named(self.protocol, self.parties).with("inversion", inversion.name())
        };
        protocol(Inversion::default()).check_parties().with_context(|| self.name)?;
        // A way to invert may belong to another protocol.
        let known = Inversion::ALL.into_iter().filter(|i| protocol(*i).check_parties().is_ok());
        let of_one = |inversion| {
            self.abscissa.starts().into_iter().map(move |start| {
                let Start { network, sizes, .. } = start;
                let repeats = repeats.unwrap_or(start.repeats);
                (inversion, start.x, Sweep { protocol: protocol(inversion), network, sizes, repeats })
            })
        };
        Ok(known.flat_map(of_one).collect())
    }

    fn point(&self, x: Option<f64>, sweep: &Sweep, measured: bench::Point) -> Result<Point> {
        let shape: Shape = sweep.network.parse()?;
        let bytes = measured.payload_bytes_per_block / (self.parties - 1) as f64;
        Ok(Point {
            x: x.unwrap_or(measured.blocks as f64),
            network: sweep.network.clone(),
            repeats: sweep.repeats,
            line_ms_per_block: 1e3 * shape.bytes_per_second.map_or(0.0, |rate| bytes / rate),
            measured,
        })
    }

    fn conditions(&self) -> String {
        format!(
            "timed here: {} processes on one machine, TLS over loopback, a thread each; the network is imitated, and only \
             payload takes time on its lines; all blocks of a batch advance in step, and the key expansion runs once for all \
             of them; medians of the slowest party{}",
            self.parties,
            build()
        )
    }
}

impl Abscissa {
    fn title(self) -> &'static str {
        match self {
            Abscissa::Blocks => "blocks in parallel",
            Abscissa::Delay => "added delay, one way, in ms",
            Abscissa::Rate => "rate of a line in kbit/s",
        }
    }

    /// From left to right.
    fn starts(self) -> Vec<Start> {
        match self {
            Abscissa::Blocks => vec![Start {
                network: network(RTT_MS, "1Gbit"),
                sizes: (1..=MAX_BLOCKS).collect(),
                repeats: REPEATS,
                x: None,
            }],
            Abscissa::Delay => DELAYS_MS
                .map(|ms| Start {
                    network: network(RTT_MS + 2.0 * ms, "1Gbit"),
                    sizes: vec![1],
                    repeats: if ms == 0.0 { REPEATS } else { REPEATS_IF_SLOW },
                    x: Some(ms),
                })
                .into(),
            Abscissa::Rate => RATES_KBIT
                .map(|kbit| Start {
                    network: network(RTT_MS, &format!("{kbit}kbit")),
                    sizes: vec![1],
                    repeats: if kbit >= 1000.0 { REPEATS } else { REPEATS_IF_SLOW },
                    x: Some(kbit),
                })
                .into(),
        }
    }
}

fn network(rtt_ms: f64, rate: &str) -> String {
    format!("{rtt_ms}ms,{rate}")
}

/// Its name on the command line.
fn by_name<S: Serializer>(inversion: &Inversion, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(inversion.name())
}
