//! A protocol that nothing above its own crate names is served by nodes: one folder, and one line of the
//! catalogue.

use polyclave_api::Mode;

use crate::common::messages::{gcm, open, seal, ungcm};
use crate::common::{TestCluster, data, key};
use polyclave_protocol_lab::additive;

#[test]
fn nodes_serve_with_a_protocol_that_only_the_catalogue_names() {
    polyclave_protocol_lab::add_toy();
    let mut cluster = TestCluster::define_with(additive::DESCRIPTOR.name, 3, 2);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    let message = gcm(&client, "k", b"header", &data(1000)).expect("encrypted");
    assert_eq!(ungcm(&client, "k", b"header", &message).expect("decrypted"), data(1000));
    let sealed = seal(&client, "k", &data(100)).expect("sealed");
    assert_eq!(open(&client, "k", &sealed).expect("opened"), data(100));
    let mut flipped = sealed;
    *flipped.last_mut().expect("a tag") ^= 1;
    assert!(open(&client, "k", &flipped).is_err(), "a changed file is refused");
}
