//! Known answers in files, and running them through nodes.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use polyclave_api::Mode;
use polyclave_client::Client;

use super::{TestCluster, key};

/// Published vectors of most modes, by file.
pub const MODES: &str = include_str!("../../../../vectors/modes.json");
/// Those of GCM with other nonces and short tags, of CCM and of SIV.
pub const AUTHENTICATED: &str = include_str!("../../../../vectors/authenticated-modes.json");
/// Those of RFC 8452.
pub const GCM_SIV: &str = include_str!("../../../../vectors/gcm-siv.json");
/// Those of the specification of XAES-256-GCM: its test vectors, and the first of its accumulated test, whose
/// hash the program that made them has reproduced.
pub const XAES: &str = include_str!("../../../../vectors/xaes.json");

/// HMAC: RFC 4231, and some of Wycheproof.
pub const HMAC: &str = include_str!("../../../../vectors/hmac.json");

/// SP 800-108 in counter mode: NIST's, of HMAC the first of 16 bytes and of 40 bytes of each position and
/// width of the counter, of CMAC fewer.
pub const KBKDF: &str = include_str!("../../../../vectors/kbkdf.json");

/// One known answer.
#[derive(Debug)]
pub struct Vector(serde_json::Value);

impl Vector {
    /// Whether there is such a field.
    pub fn has(&self, field: &str) -> bool {
        self.0.get(field).is_some()
    }

    /// Several byte strings.
    pub fn strings(&self, field: &str) -> Vec<Vec<u8>> {
        let list = self.0[field].as_array().expect("a list");
        list.iter().map(|text| hex::decode(text.as_str().expect("a text")).expect("hex")).collect()
    }

    pub fn text(&self, field: &str) -> &str {
        self.0[field].as_str().expect("a text")
    }

    pub fn bytes(&self, field: &str) -> Vec<u8> {
        hex::decode(self.text(field)).expect("hex")
    }
}

/// The vectors of a kind.
pub fn vectors(file: &str, kind: &str) -> Vec<Vector> {
    let all: Vec<serde_json::Value> = serde_json::from_str(file).expect("a list");
    let mut vectors: Vec<Vector> = all.into_iter().map(Vector).collect();
    vectors.retain(|v| v.text("cipher").ends_with(kind));
    vectors
}

/// Imports the key of every vector of a kind, once each, and runs it; how many there were.
pub fn each_vector(
    file: &str,
    kind: &str,
    modes: &[Mode],
    run: &(dyn Fn(&Client, &str, &Vector) + Sync),
) -> usize {
    let mut vectors = vectors(file, kind);
    vectors.sort_by_key(|v| v.text("key").to_owned());
    let cluster = TestCluster::shared();
    let of_one_key: Vec<&[Vector]> = vectors.chunk_by(|a, b| a.text("key") == b.text("key")).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = cluster.client();
                while let Some(vectors) = of_one_key.get(next.fetch_add(1, Relaxed)) {
                    let first = &vectors[0];
                    let cipher = first.text("cipher").trim_end_matches(kind).to_ascii_lowercase();
                    let name = format!("{cipher}{kind}-{}", &first.text("key")[..24]);
                    client.import(key(&name, &cipher, modes), &first.bytes("key")).expect("a key");
                    vectors.iter().for_each(|v| run(&client, &name, v));
                }
            });
        }
    });
    vectors.len()
}
