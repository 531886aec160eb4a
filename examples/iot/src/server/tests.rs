//! Both servers as threads of one process, under every protocol with both ciphers; material from a dealer, to
//! be quick.

use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::Metered;

use super::*;
use crate::devices::{KeyShares, provision, readings};
use crate::protocols::{self, PROTOCOLS};

/// What each learned from what it was sent.
fn run(protocol: &str, jobs: [&Job; 2], shares: &[KeyShares; 2]) -> [Result<Report>; 2] {
    let config =
        protocols::config(protocol, !protocol.starts_with("garbled")).expect("the protocol is known");
    let nets = <[_; 2]>::try_from(mesh(2)).ok().expect("two ends");
    std::thread::scope(|scope| {
        let (mut sides, config) = (jobs.into_iter().zip(shares), &config);
        let threads = nets.map(|net| {
            let (job, shares) = sides.next().expect("two servers");
            scope.spawn(move || {
                let mut net = Metered::new(net);
                let meter = net.meter();
                serve(config, job, shares, &mut net, &meter)
            })
        });
        threads.map(|thread| thread.join().expect("no panic"))
    })
}

/// Devices that send one message each, the first one two; and all readings.
fn sent(encryption: Encryption, each: usize) -> (Job, Vec<u16>, [KeyShares; 2]) {
    let (mut devices, shares) = provision(2).expect("randomness");
    let (mut messages, mut all) = (Vec::new(), Vec::new());
    for device in [0, 1, 0] {
        let readings = readings(each).expect("randomness");
        messages.push(devices[device].send(encryption, &readings));
        all.extend(readings);
    }
    (Job { encryption, readings: each, threshold: 2200, messages }, all, shares)
}

#[test]
fn statistics_are_those_of_plain_code_and_nothing_else_is_opened() {
    for protocol in PROTOCOLS {
        for (encryption, each) in [(Encryption::Skinny64_128, 5), (Encryption::Aes128, 9)] {
            let (job, readings, shares) = sent(encryption, each);
            for report in run(protocol, [&job, &job], &shares) {
                let report = report.expect("both are honest");
                assert_eq!(report.statistics, Statistics::of(&readings, job.threshold), "{protocol}");
                // Counted by the running protocol. Of 15 or 27 readings the sum has 20 or 21 bits, the
                // maximum 16, the count 5 or 6.
                let bits = if each == 5 { 20 + 16 + 5 } else { 21 + 16 + 6 };
                assert_eq!(report.tally.output.openings, bits, "{protocol}");
                assert_eq!(report.opened_bits as u64, bits, "{protocol}");
            }
        }
    }
}

#[test]
fn servers_that_were_sent_different_messages_do_not_begin() {
    let (job, _, shares) = sent(Encryption::Skinny64_128, 1);
    let mut other = job.clone();
    other.messages[1].ciphertext[0] ^= 1;
    for outcome in run("tinytable-linear64", [&job, &other], &shares) {
        assert!(matches!(outcome, Err(Error::Disagreement { field: "job", .. })));
    }
}

#[test]
fn messages_that_do_not_fit_are_refused() {
    let refused = |change: fn(&mut Job), because: &str| {
        let (mut job, _, shares) = sent(Encryption::Aes128, 4);
        change(&mut job);
        for outcome in run("tinytable", [&job, &job], &shares) {
            let error = outcome.map(|_| ()).expect_err("it does not fit").to_string();
            assert!(error.contains(because), "{error}");
        }
    };
    refused(|job| job.messages[2].number = 0, "message 0 of device 0 came twice");
    refused(|job| job.messages[1].device = 7, "key shares for 2 devices");
    refused(|job| job.messages[0].ciphertext.truncate(7), "has 7 bytes; 4 readings have 8");
    refused(|job| job.messages.clear(), "no readings");
}
