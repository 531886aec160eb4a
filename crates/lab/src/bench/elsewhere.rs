//! `bench --hosts`: this process is one party, and the others run elsewhere. All parties learn all
//! measurements and print the same summary.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use polyclave_protocol::metered::Metered;

use super::child::Connected;
use super::measure::Measurement;
use super::party::party;
use super::summary::Summary;
use super::{Arguments, BenchJob, LATENCY_SAMPLES};
use crate::hosts::{Place, Proposal, message_of, tell_all};
use crate::options::ProtocolOptions;
use crate::say;

/// The version, which grows with every change of the measurements that parties exchange.
const VERSION: u8 = 1;
/// The most bytes of a message; a thousand repeats take a tenth of it.
const MAX_BYTES: usize = 1 << 20;

/// Runs the command as one party.
pub fn run(arguments: &Arguments, place: &Place) -> Result<ExitCode> {
    let protocol = place.protocol(&arguments.protocol)?;
    let summary = measure(arguments, &protocol, place).map_err(|error| place.in_addresses(&error))?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&summary.json(arguments, &protocol))?);
    } else {
        summary.print(arguments, &protocol);
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments, protocol: &ProtocolOptions, place: &Place) -> Result<Summary> {
    let job = arguments.job(&[arguments.blocks], LATENCY_SAMPLES)?;
    let (net, wire) = place.connect(Duration::from_secs(arguments.timeout), arguments.json)?;
    let mut net = Metered::new(net);
    let settings = protocol.settings()?.into_iter().chain(settings(&job));
    Proposal::new([("command", "bench".to_owned())].into_iter().chain(settings)).agree(&[], &mut net)?;
    let bar = arguments.bar(&job);
    let mut connected = Connected { payload: net.meter(), wire, net };
    let measured = party(&protocol.config()?, &job, &mut connected, |done| bar.set_position(done))?;
    let own = measured.into_iter().next().context("one size was measured")?;
    let theirs = tell_all(&serde_json::to_vec(&own)?, VERSION, MAX_BYTES, &mut connected.net)?;
    let mut all = vec![own];
    for (peer, bytes) in theirs {
        let measurement = message_of(peer, parse(&bytes, &job))?;
        all.push(measurement);
    }
    bar.finish_and_clear();
    Ok(Summary::new(&all))
}

fn settings(job: &BenchJob) -> Vec<(&'static str, String)> {
    Vec::from([
        ("cipher", job.cipher.to_ascii_lowercase()),
        ("circuit", job.form.name().into()),
        ("direction", if job.decrypt { "decrypt" } else { "encrypt" }.into()),
        ("key schedule", if job.key_schedule { "alongside" } else { "before" }.into()),
        ("number of threads", job.threads.to_string()),
        ("number of blocks", job.sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
        ("number of repeats", job.repeats.to_string()),
    ])
}

/// Decodes a peer's measurement, if it is of this job.
fn parse(bytes: &[u8], job: &BenchJob) -> Result<Measurement, String> {
    let measurement: Option<Measurement> = serde_json::from_slice(bytes).ok();
    let fits = |m: &Measurement| {
        job.sizes == [m.blocks] && m.repeats.len() == job.repeats && m.latencies.len() <= job.latency_samples
    };
    measurement.filter(fits).ok_or_else(|| "its measurement is not of the form that is due".into())
}

#[cfg(test)]
mod tests {
    use super::super::measure::Repeat;
    use super::*;
    use crate::circuits::Form;

    #[test]
    fn only_measurements_of_the_job_are_taken_from_peers() {
        let job = BenchJob {
            cipher: "aes-128".into(),
            form: Form::Tables,
            decrypt: false,
            key_schedule: false,
            threads: 1,
            sizes: vec![40],
            repeats: 2,
            latency_samples: 3,
        };
        let read = |m: &Measurement| parse(&serde_json::to_vec(m).expect("plain data"), &job);
        let due = Measurement { blocks: 40, repeats: vec![Repeat::default(); 2], ..Measurement::default() };
        assert!(read(&due).is_ok());
        assert!(read(&Measurement { blocks: 41, ..due.clone() }).is_err());
        assert!(read(&Measurement { repeats: Vec::new(), ..due.clone() }).is_err());
        assert!(read(&Measurement { latencies: vec![0.0; 4], ..due }).is_err());
        assert!(parse(b"{}", &job).is_err());
    }
}
