//! Combines the parties' measurements: the times of the slowest party, the bytes of the busiest one.

use serde_json::{Value, json};

use super::Arguments;
use super::measure::{Measurement, Spread};
use crate::circuits::{CircuitChoice, Form};
use crate::options::ProtocolOptions;
use crate::say;

/// One benchmark, summed up.
pub struct Summary {
    blocks: usize,
    preprocessing: Option<Spread>,
    online: Spread,
    total: Spread,
    latency_ms: Option<Spread>,
    most: Measurement,
}

impl Summary {
    /// Summarises the measurements of at least one party.
    pub fn new(parties: &[Measurement]) -> Summary {
        let repeats = || 0..parties[0].repeats.len();
        let slowest = |time: &dyn Fn(&Measurement, usize) -> f64| {
            let of_repeat = |i: usize| parties.iter().map(|m| time(m, i)).fold(0.0, f64::max);
            Spread::of(repeats().map(of_repeat)).expect("there is a repeat")
        };
        let latencies =
            |i: usize| parties.iter().filter_map(|m| m.latencies.get(i)).copied().fold(0.0, f64::max);
        let samples = parties[0].latencies.len();
        let busiest = |of: &dyn Fn(&Measurement) -> f64| parties.iter().map(of).fold(0.0, f64::max);
        let mut most = parties[0].clone();
        most.bytes_per_block = busiest(&|m| m.bytes_per_block);
        most.payload_per_block = busiest(&|m| m.payload_per_block);
        most.preprocessing_payload_per_block = busiest(&|m| m.preprocessing_payload_per_block);
        most.preprocessing_bytes_per_block = busiest(&|m| m.preprocessing_bytes_per_block);
        most.wiping = busiest(&|m| m.wiping);
        most.peak_memory_bytes = parties.iter().map(|m| m.peak_memory_bytes).max().flatten();
        // Dealers take time and no rounds.
        let prepares = most.preprocessing_rounds > 0 || most.material_per_block > 0;
        Summary {
            blocks: parties[0].blocks,
            preprocessing: prepares.then(|| slowest(&|m, i| m.repeats[i].preprocessing)),
            online: slowest(&|m, i| m.repeats[i].online),
            total: slowest(&|m, i| m.repeats[i].preprocessing + m.repeats[i].online),
            latency_ms: Spread::of((0..samples).map(|i| 1e3 * latencies(i))),
            most,
        }
    }

    /// Blocks a second online: in the slowest repeat, the median and the quickest.
    pub fn online_rates(&self) -> [f64; 3] {
        self.rates(&self.online)
    }

    /// Blocks a second of preprocessing, if there is any.
    pub fn preprocessing_rates(&self) -> Option<[f64; 3]> {
        self.preprocessing.as_ref().map(|seconds| self.rates(seconds))
    }

    /// Seconds of a batch online, and with its preprocessing.
    pub fn seconds(&self) -> (Spread, Spread) {
        (self.online, self.total)
    }

    /// The busiest party's bytes and any party's counts.
    pub fn most(&self) -> &Measurement {
        &self.most
    }

    /// Milliseconds that single blocks took online, if any were measured.
    pub fn latency_ms(&self) -> Option<f64> {
        self.latency_ms.map(|spread| spread.median)
    }

    fn rates(&self, seconds: &Spread) -> [f64; 3] {
        [seconds.max, seconds.median, seconds.min].map(|s| self.blocks as f64 / s.max(1e-9))
    }

    /// The document of `--json`.
    pub fn json(&self, arguments: &Arguments, protocol: &ProtocolOptions) -> Value {
        let cleartext = protocol.is_cleartext();
        let phase = |seconds: &Spread| {
            let [min, median, max] = self.rates(seconds);
            json!({
                "seconds": seconds.median,
                "blocks_per_s": median,
                "blocks_per_s_min": min,
                "blocks_per_s_max": max,
            })
        };
        let with = |mut value: Value, more: Value| {
            if let (Value::Object(fields), Value::Object(more)) = (&mut value, more) {
                fields.extend(more);
            }
            value
        };
        let preprocessing = self.preprocessing.as_ref().map(|seconds| {
            let more = json!({
                "rounds": self.most.preprocessing_rounds,
                "bytes_per_block": self.most.preprocessing_bytes_per_block,
            });
            with(phase(seconds), more)
        });
        let online = with(
            phase(&self.online),
            json!({
                "latency_ms": self.latency_ms.map(|l| l.median),
                "rounds": self.most.rounds,
                "operations_per_block": self.most.operations_per_block,
                "bytes_per_block": self.most.bytes_per_block,
                "payload_bytes_per_block": self.most.payload_per_block,
            }),
        );
        json!({
            "protocol": protocol.protocol.to_ascii_lowercase(),
            "cipher": arguments.cipher.to_ascii_lowercase(),
            "circuit": CircuitChoice::of(&arguments.circuit, protocol).to_string(),
            "parties": if cleartext { 1 } else { protocol.parties() },
            "inversion": protocol.value("inversion"),
            "tables": protocol.value("tables"),
            "preprocessing_by": protocol.value("preprocessing"),
            "demux_field": protocol.value("demux-field").and_then(|k| k.parse::<usize>().ok()),
            "threads": if cleartext { 1 } else { arguments.threads },
            "blocks": self.blocks,
            "network": arguments.shown_network(),
            "key_schedule": arguments.key_schedule,
            "decrypt": arguments.decrypt,
            "repeats": arguments.repeats,
            "instruction_set": polyclave_kernels::instruction_set(),
            "preprocessing": preprocessing,
            "online": online,
            "wiping": (!cleartext).then(|| json!({ "seconds": self.most.wiping })),
            "total": phase(&self.total),
            "material_bytes_per_block": self.most.material_per_block,
            "peak_memory_bytes": self.most.peak_memory_bytes,
        })
    }

    /// The same for people.
    pub fn print(&self, arguments: &Arguments, protocol: &ProtocolOptions) {
        let p = protocol;
        let direction = if arguments.decrypt { "decryption" } else { "encryption" };
        let circuit = CircuitChoice::of(&arguments.circuit, p);
        let boolean = matches!(circuit, CircuitChoice::Cipher(Form::Boolean));
        let form = if boolean { " as a Boolean circuit" } else { "" };
        say!("{} {direction}{form} under {}, {} blocks", arguments.cipher, p.protocol, self.blocks);
        if !p.is_cleartext() {
            let choices: Vec<String> =
                p.values().iter().map(|(option, value)| format!("{option} {value}")).collect();
            let choices = choices.join(", ");
            let (parties, threads, network) = (p.parties(), arguments.threads, arguments.shown_network());
            say!("{parties} parties, {threads} thread(s) each, network {network}, {choices}");
        }
        say!("{} repeats; minimum, median and maximum of the slowest party\n", arguments.repeats);
        let row = |name: &str, seconds: &Spread| {
            let [min, median, max] = self.rates(seconds);
            say!("{name:15}{:>10.4} s {min:>13.0} {median:>11.0} {max:>11.0} blocks/s", seconds.median);
        };
        say!("{:15}{:>12} {:>13} {:>11} {:>11}", "", "median", "minimum", "median", "maximum");
        match &self.preprocessing {
            Some(seconds) => row("preprocessing", seconds),
            None => say!("preprocessing  none"),
        }
        row("online", &self.online);
        row("both", &self.total);
        if let Some(latency) = &self.latency_ms {
            say!(
                "\none block       {:.3} ms median, {:.3} to {:.3}",
                latency.median,
                latency.min,
                latency.max
            );
        }
        let most = &self.most;
        say!("online          {} rounds, {:.1} operations a block", most.rounds, most.operations_per_block);
        say!(
            "sent            {:.0} bytes a block at the socket, {:.0} of them payload",
            most.bytes_per_block,
            most.payload_per_block
        );
        if self.preprocessing.is_some() {
            say!(
                "preprocessing   {} rounds, {:.0} bytes a block sent, {} kept",
                most.preprocessing_rounds,
                most.preprocessing_bytes_per_block,
                most.material_per_block
            );
        }
        if most.wiping > 0.0 {
            say!("wiping          {:.4} s for all memory of the session, at its end", most.wiping);
        }
        if let Some(bytes) = most.peak_memory_bytes {
            say!("memory          {:.0} MB at most in a process", bytes as f64 / 1e6);
        }
    }
}
