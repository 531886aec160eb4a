//! What the demo says.

use serde_json::{Value, json};

use super::{Arguments, DemoReport, KNOWN_CIPHERTEXT, KNOWN_KEY, KNOWN_PLAINTEXT};
use crate::options::ProtocolOptions;
use crate::say;

/// Before anything runs.
pub fn opening(arguments: &Arguments, size: u64) {
    let n = arguments.protocol.parties;
    say!("AES-128 under a key that nobody holds\n");
    say!("{n} processes on this machine, party 1 to party {n}, each with one share of the key.");
    say!("They talk over TLS 1.3 on the loopback interface; each knows the others by their certificates.");
    match &arguments.file {
        Some(path) => say!("Party 1 has the file {} of {size} bytes.\n", path.display()),
        None => say!("Party 1 has a sample of {size} bytes (give a FILE to use your own).\n"),
    }
}

/// After all parties are done.
pub fn tell(reports: &[DemoReport]) {
    let (asker, last) = (&reports[0], reports.len());
    say!("1. A key was made ({:.1} ms, key schedule included).", slowest(reports, |r| r.key_ms));
    say!(
        "   Every party drew 16 random bytes and handed out shares of them; the key is their sum. It was never"
    );
    say!("   put together, and its 11 round keys were computed on shares.");
    if let Some(share) = reports.iter().find_map(|r| r.own_key_share.as_ref()) {
        say!("   Party 2 keeps   {share}");
        say!(
            "   A copied disk of party 2 would show this share, others like it and keys of pseudorandom sharing. Alone"
        );
        say!("   they tell nothing of the key that can be computed. (Shown for the demonstration only.)");
    }
    say!(
        "\n2. A known answer (FIPS-197, C.1), with a key that party 1 imported, so that once it was in one place."
    );
    say!("   key             {KNOWN_KEY}\n   plaintext       {KNOWN_PLAINTEXT}");
    say!("   ciphertext      {}", asker.known_answer);
    let right = reports.iter().all(|r| r.known_answer == KNOWN_CIPHERTEXT);
    say!("   {}", if right { "As published, at every party." } else { "WRONG." });

    say!("\n3. {} bytes were encrypted in counter mode.", asker.bytes);
    say!(
        "   The counters are public; the parties encrypted them on shares and sent their shares of the result to"
    );
    say!(
        "   party 1 alone, which added them to its data. Parties 2 to {last} saw neither data nor keystream."
    );
    if let Some((plain, cipher)) = &asker.first_blocks {
        say!("   first block     {plain}\n   became          {cipher}");
    }
    say!("   {}", rate(asker.bytes, slowest(reports, |r| r.encrypt_seconds)));
    say!("\n4. The ciphertext was decrypted the same way.");
    say!("   {}", rate(asker.bytes, slowest(reports, |r| r.decrypt_seconds)));
    say!(
        "   {}",
        match asker.came_back {
            Some(true) => "Every byte came back.",
            _ => "The bytes DID NOT come back.",
        }
    );

    let busiest = reports.iter().max_by_key(|r| r.wire_sent).unwrap_or(asker);
    let blocks = (2 * asker.bytes.div_ceil(16)).max(1);
    say!(
        "\nBoth ways, the busiest party sent {:.1} MB, TLS included: {:.0} bytes a block, of which {:.0} payload.",
        busiest.wire_sent as f64 / 1e6,
        busiest.wire_sent as f64 / blocks as f64,
        busiest.payload_sent as f64 / blocks as f64
    );
    say!("Security: {}.", asker.adversary);
    if !asker.verified {
        say!("Passive: nothing was verified. Counter mode authenticates nothing either.");
    }
}

/// The same for programs.
pub fn summary(protocol: &ProtocolOptions, reports: &[DemoReport], holds: bool) -> Value {
    let asker = &reports[0];
    json!({
        "protocol": protocol.protocol,
        "parties": reports.len(),
        "cipher": "aes-128",
        "mode": "ctr",
        "adversary": asker.adversary,
        "verified": asker.verified,
        "bytes": asker.bytes,
        "round_trip": super::came_back(reports),
        "known_answer": asker.known_answer == KNOWN_CIPHERTEXT,
        "holds": holds,
        "set_up_ms": slowest(reports, |r| r.set_up_ms),
        "key_ms": slowest(reports, |r| r.key_ms),
        "encrypt_seconds": slowest(reports, |r| r.encrypt_seconds),
        "decrypt_seconds": slowest(reports, |r| r.decrypt_seconds),
        "wire_bytes_sent": reports.iter().map(|r| r.wire_sent).collect::<Vec<_>>(),
        "payload_bytes_sent": reports.iter().map(|r| r.payload_sent).collect::<Vec<_>>(),
        "peak_memory_bytes": reports.iter().map(|r| r.peak_memory_bytes).collect::<Vec<_>>(),
    })
}

fn slowest(reports: &[DemoReport], time: impl Fn(&DemoReport) -> f64) -> f64 {
    reports.iter().map(time).fold(0.0, f64::max)
}

fn rate(bytes: u64, seconds: f64) -> String {
    let blocks = bytes.div_ceil(16) as f64;
    let seconds = seconds.max(1e-9);
    format!("{seconds:.2} s: {:.0} blocks/s, {:.2} MB/s", blocks / seconds, bytes as f64 / seconds / 1e6)
}
