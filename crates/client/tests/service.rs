//! Clients and real nodes, over TLS.

mod common;

use common::{TestCluster, key, nothing};
use polyclave_transport::wire::Mode;

#[test]
fn sealed_data_comes_back() {
    let cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    let made = client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    assert_eq!(made.check_value.len(), 5);
    for len in [0, 1, 16, 1000, 300_000] {
        let data: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut sealed = Vec::new();
        client.seal("k", &mut &data[..], &mut sealed, &mut nothing).expect("sealed");
        let mut opened = Vec::new();
        client.open_sealed("k", &mut &sealed[..], &mut opened, &mut nothing).expect("opened");
        assert_eq!(opened, data);
    }
}
