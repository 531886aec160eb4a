//! Many requests at once leave nothing behind. One test, since it counts what the whole process has.

mod common;

use common::messages::{ctr, unctr};
use common::{TestCluster, data, key};
use polyclave_api::Mode;

/// Threads and open files of this process.
fn held() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).expect("a count");
    let files = std::fs::read_dir("/proc/self/fd").expect("Linux").count();
    (threads.trim().parse().expect("a number"), files)
}

#[test]
fn two_thousand_requests_of_eight_threads_are_right_and_leave_no_thread_or_file_behind() {
    let cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Ctr])).expect("a key");
    let burst = |requests: usize| {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let client = &client;
                scope.spawn(move || {
                    for i in 0..requests / 16 {
                        let block = data(1 + (thread + i) % 16);
                        let (first, ciphertext) = ctr(client, "k", &block).expect("encrypted");
                        assert_eq!(unctr(client, "k", &first, &ciphertext).expect("decrypted"), block);
                    }
                });
            }
        });
    };
    burst(320);
    let (threads, files) = held();
    burst(2000);
    // Channels and connections are kept, up to a limit that the first burst need not have reached.
    let (after_threads, after_files) = held();
    assert!(
        after_threads <= threads + 24 && after_files <= files + 120,
        "{threads} -> {after_threads} threads, {files} -> {after_files} files"
    );
    let before = held();
    burst(640);
    let after = held();
    assert!(after.0 <= before.0 + 8 && after.1 <= before.1 + 48, "{before:?} -> {after:?}");
    drop(client);
    drop(cluster);
    let (threads, files) = held();
    assert!(threads <= 8 && files <= 40, "{threads} threads and {files} files are left");
}
