//! Measures what the page costs with 10,000 keys:
//! `cargo test --release -p polyclave-gateway --test it -- --ignored --nocapture many_keys`.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};

use super::{Stream, dashboard};
use crate::common::World;

const KEYS: usize = 10_000;
const SNAPSHOTS: usize = 30;

#[test]
#[ignore = "it takes minutes to make the keys"]
fn what_a_snapshot_of_many_keys_costs() {
    let mut world = World::define();
    world.start_nodes();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let client = world.client();
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= KEYS {
                        break;
                    }
                    let key = NewKey::for_modes(&format!("k{number}"), "aes-128", &[Mode::Gcm], 1 << 32);
                    client.generate(key).expect("made");
                }
            });
        }
    });
    let idle = processor_time_of(|| std::thread::sleep(Duration::from_secs(SNAPSHOTS as u64)));
    let (dashboard, token) = dashboard(&world);
    let mut stream = Stream::open(dashboard.address(), &token).expect("admitted");
    stream.until("the keys are counted", |message| message["keys"]["counts"][0]["keys"] == KEYS);
    let mut snapshots = Vec::new();
    let mut longest = Duration::ZERO;
    let watched = processor_time_of(|| {
        for _ in 0..SNAPSHOTS {
            let began = Instant::now();
            snapshots.push(stream.next().expect("the stream goes on"));
            longest = longest.max(began.elapsed());
        }
    });
    let bytes = snapshots.iter().map(|message| message.to_string().len()).max();
    let answers =
        snapshots.iter().flat_map(|message| message["nodes"].as_array().cloned().unwrap_or_default());
    let slowest = answers.filter_map(|node| node["answer_ms"].as_f64()).fold(0.0, f64::max);
    let counted = snapshots.iter().filter_map(|message| message["keys"]["took_ms"].as_u64()).max();
    println!(
        "{KEYS} keys: a snapshot at most {bytes:?} bytes, at most {longest:?} apart; a node answers within {slowest} ms, and counts within {counted:?} ms; \
         processor time of three nodes and the page in {SNAPSHOTS} s: {watched:?}, and without a viewer {idle:?}"
    );
}

/// Of this process: it has no more than 10 ms of precision.
fn processor_time_of(work: impl FnOnce()) -> Duration {
    let now = || {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
        let after_name = stat.rsplit_once(')').expect("a name").1;
        let fields: Vec<i64> = after_name.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Without the state, which is no number, user and system time are the eleventh and twelfth.
        Duration::from_millis(10 * (fields[10] + fields[11]).unsigned_abs())
    };
    let before = now();
    work();
    now() - before
}
