//! The texts of the demo.

use super::{Arguments, KNOWN_CIPHERTEXT, KNOWN_KEY, KNOWN_PLAINTEXT, Report};
use crate::say;

/// Before anything runs.
pub fn opening(arguments: &Arguments, bytes: u64) {
    let (n, t) = (arguments.parties, arguments.threshold);
    say!("A key that nobody holds\n");
    say!("{n} node processes on this machine, each with its own keys, files and shares. They talk over");
    say!(
        "TLS 1.3 and know each other, and their clients, by certificates. What any {t} of them see reveals nothing."
    );
    match &arguments.file {
        Some(path) => {
            say!("This command is a client; it has the file {} of {bytes} bytes.\n", path.display())
        }
        None => say!(
            "This command is a client; it has a sample of {bytes} bytes (give a FILE to use your own).\n"
        ),
    }
}

/// After the key.
pub fn key_made(arguments: &Arguments, start_ms: f64, key_ms: f64, check_value: &str) {
    say!(
        "1. The nodes started and agreed on their common secrets ({start_ms:.0} ms), and made a key ({key_ms:.0} ms)."
    );
    say!(
        "   Every node drew 16 random bytes and handed out shares of them; the key is their sum. It was never put"
    );
    say!(
        "   together. Its round keys and the powers of its GCM hash key were computed on shares, and each node has"
    );
    say!(
        "   stored its own, sealed. The disks of any {} of them reveal nothing about the key.",
        arguments.threshold
    );
    say!("   check value     {check_value} (made with CMAC; the same for all who ask)");
}

/// After the known answer.
pub fn known_answer(right: bool) {
    say!(
        "\n2. A known answer (FIPS-197, C.1), with a key that this client imported: it was in one place once."
    );
    say!("   key             {KNOWN_KEY}\n   plaintext       {KNOWN_PLAINTEXT}");
    say!("   ciphertext      {KNOWN_CIPHERTEXT}");
    say!("   {}", if right { "As published." } else { "WRONG: the nodes computed something else." });
}

/// After the round trip.
pub fn sealed_and_opened(bytes: u64, seal_seconds: f64, open_seconds: f64, round_trip: bool) {
    say!("\n3. {bytes} bytes were sealed with AES-128-GCM, in chunks of 256 KiB, and opened again.");
    say!(
        "   The nodes sent shares of keystream to this client, which added it; they saw the ciphertext, computed its"
    );
    say!(
        "   tag on shares, and on opening gave keystream only for authentic ciphertext. No node saw the data."
    );
    say!("   sealed          {}", rate(bytes, seal_seconds));
    say!("   opened          {}", rate(bytes, open_seconds));
    say!("   {}", if round_trip { "Every byte came back." } else { "The bytes DID NOT come back." });
}

/// After a bit was flipped.
pub fn change(noticed: bool) {
    say!("\n4. One bit of the sealed file was flipped.");
    say!("   {}", if noticed { "The nodes refused to open it." } else { "It was NOT noticed." });
}

/// After a node was killed.
pub fn without_one(arguments: &Arguments, served: Option<bool>) {
    match served {
        Some(served) => {
            say!("\n5. Node 1 was killed, without warning.");
            let left = arguments.parties - 1;
            match served {
                true => say!("   The other {left} served the next request, and opened it again."),
                false => say!("   The other {left} DID NOT serve."),
            }
        }
        None => {
            let all = arguments.parties;
            say!("\n5. All {all} nodes are needed, so none was killed; try --protocol shamir --parties 5.");
        }
    }
}

/// After the refusal.
pub fn refused(message: Option<&str>) {
    say!("\n6. Another client, which may only list keys, asked to encrypt with this one.");
    match message {
        Some(message) => say!("   {message}"),
        None => say!("   It was NOT refused."),
    }
    say!("   Every node decides by its own policy; no single node can start anything.");
}

/// What the demo has shown, and what not.
pub fn closing(report: &Report) {
    say!("\nSecurity: {}.", report.adversary);
    match report.verified {
        true => {
            say!(
                "Every product that the nodes computed was proven before anything left them, and this client compared what it"
            );
            say!(
                "got of each share from two nodes. After a failed check the nodes stop: it shows that one of two cheats, and"
            );
            say!("not which. Among four nodes, --protocol shamir-active goes on without a cheater.");
        }
        false => say!("Passive: the answers of the nodes are not verified."),
    }
    say!(
        "All of this ran on one machine, started by one command that could have read everything: it shows how the nodes"
    );
    say!("work together, it does not separate trust.");
}

fn rate(bytes: u64, seconds: f64) -> String {
    let blocks = bytes.div_ceil(16) as f64;
    let seconds = seconds.max(1e-9);
    format!("{seconds:.2} s: {:.0} blocks/s, {:.2} MB/s", blocks / seconds, bytes as f64 / seconds / 1e6)
}
