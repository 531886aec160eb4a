//! Load on a cluster on this host: one block alone, one block from many, and a long stream. `load CLIENT_DIR KEY`.

use std::time::Instant;

use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_node::Running;
use polyclave_transport::wire::{Mode, NewKey};

fn main() {
    let dir = tempfile::tempdir().expect("dir");
    let local = polyclave_node::local::create(&dir.path().join("c"), "shamir", 3, 1).expect("cluster");
    let nodes: Vec<Running> =
        local.nodes.iter().map(|p| Running::start(NodeDir::open(p).expect("dir")).expect("start")).collect();
    while !nodes.iter().all(Running::is_ready) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let client = Client::open(&ClientDir::open(&local.client).expect("dir")).expect("client");
    let new =
        NewKey { name: "k".into(), cipher: "aes-128".into(), modes: vec![Mode::Gcm], budget_blocks: 1 << 32 };
    let t = Instant::now();
    client.generate(new).expect("key");
    println!("generate {:?}", t.elapsed());
    let mut out = Vec::new();
    let mut times = Vec::new();
    for _ in 0..500 {
        let t = Instant::now();
        out.clear();
        client.seal("k", &mut &[7u8; 16][..], &mut out, &mut |_| ()).expect("seal");
        times.push(t.elapsed());
    }
    times.sort();
    println!("one block: median {:?}, 95% {:?}, min {:?}", times[250], times[475], times[0]);
    let t = Instant::now();
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                for _ in 0..200 {
                    let mut out = Vec::new();
                    client.seal("k", &mut &[7u8; 16][..], &mut out, &mut |_| ()).expect("seal");
                }
            });
        }
    });
    println!("8 clients: {:.0}/s", 1600.0 / t.elapsed().as_secs_f64());
    let data = vec![5u8; 20_000_000];
    let t = Instant::now();
    let mut sealed = Vec::new();
    client.seal("k", &mut &data[..], &mut sealed, &mut |_| ()).expect("seal");
    println!("seal 20 MB: {:.2} MB/s", 20.0 / t.elapsed().as_secs_f64());
    let t = Instant::now();
    let mut opened = Vec::new();
    client.open_sealed("k", &mut &sealed[..], &mut opened, &mut |_| ()).expect("open");
    assert!(opened == data);
    println!("open 20 MB: {:.2} MB/s", 20.0 / t.elapsed().as_secs_f64());
}
