//! What people are told before a file takes long.

use std::time::Duration;

use indicatif::{DecimalBytes, HumanDuration};
use polyclave_api::Mode;
use polyclave_client::Client;
use polyclave_protocol::catalog;
use polyclave_protocol::descriptor::Descriptor;
use polyclave_protocol::protocol::Adversary;

/// A shorter wait is not announced.
const LONG: Duration = Duration::from_secs(20);

/// Says on standard error how long a file of so many bytes will take, and what is faster, if it will take
/// long.
pub(super) fn announce(client: &Client, mode: Mode, bytes: Option<u64>) {
    let message =
        catalog::find(client.cluster().protocol()).and_then(|protocol| message_of(protocol, mode, bytes?));
    message.iter().for_each(|message| eprintln!("note: {message}"));
}

/// Modes that compute one block after the other are bound by the network, and nothing is foretold of them.
fn message_of(protocol: &Descriptor, mode: Mode, bytes: u64) -> Option<String> {
    if !mode.is_parallel() {
        return None;
    }
    let a_second = u64::from(protocol.serving.as_ref()?.stream_bytes_a_second?);
    let wait = Duration::from_secs(bytes / a_second);
    if wait < LONG {
        return None;
    }
    let mut message = format!(
        "{} take about {}: nodes under {} compute about {} a second on two idle cores",
        DecimalBytes(bytes),
        HumanDuration(wait),
        protocol.name,
        DecimalBytes(a_second)
    );
    // Keys of files are made only where outputs are checked.
    if protocol.adversary != Adversary::Passive {
        message += ". For files take a key for envelope (polyclave key generate NAME --modes envelope): the nodes derive a key for each file, and \
                 this machine encrypts it by itself";
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(protocol: &str, mode: Mode, bytes: u64) -> Option<String> {
        message_of(catalog::find(protocol).expect("there is one"), mode, bytes)
    }

    #[test]
    fn a_long_wait_is_told_before_it_with_what_is_faster() {
        let message = of("spdz-tower", Mode::Gcm, 1_000_000).expect("that takes long");
        for part in ["1.00 MB", "50 seconds", "20.00 kB a second", "--modes envelope"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn nothing_is_told_of_a_short_wait_nor_of_envelopes_where_there_are_none() {
        assert_eq!(of("spdz-tower", Mode::Gcm, 100_000), None);
        assert_eq!(of("spdz-tower", Mode::Cbc, 1_000_000), None, "one block after the other");
        let message = of("shamir", Mode::Gcm, 1_000_000_000).expect("that takes long");
        assert!(!message.contains("envelope"), "{message}");
    }
}
