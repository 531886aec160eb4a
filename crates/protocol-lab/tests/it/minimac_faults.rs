//! Openings of committed strings with one party that cheats in one message, every message and every fault in
//! turn.

use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::minimac::insecure_minimac::InsecureMiniMac;
use polyclave_protocol_lab::minimac::{Code, Opener};
use polyclave_protocol_lab::testkit::faults::{Promise, QUICK_FAULTS, Sweep};
use polyclave_protocol_lab::testkit::tamper::Fault;

/// Two openings, each of a string of either party, one bit in three.
fn open_twice(net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let string = |i: usize| -> Vec<u8> { (0..100 + i).map(|j| (j * j / 7 % 2) as u8).collect() };
    let mut dealer = InsecureMiniMac::new(&[5; 32], Code::new(16, 4)?, net.me());
    let mut opener = Opener::new(dealer.key(), b"test");
    let mut opened = Vec::new();
    for opening in 0..2 {
        let [mine, theirs] = [net.me().index(), 1 - net.me().index()].map(|i| string(2 * opening + i));
        let committed = match net.me() {
            Party(0) => vec![dealer.commit(&mine), dealer.commit_peer(theirs.len())],
            _ => vec![dealer.commit_peer(theirs.len()), dealer.commit(&mine)],
        };
        let selections: Vec<Vec<u8>> = committed
            .iter()
            .map(|string| (0..string.len()).map(|j| u8::from(j % 3 == 0)).collect())
            .collect();
        let selections: Vec<_> = selections.iter().map(Vec::as_slice).collect();
        opened.extend(opener.open(committed, &selections, net)?);
    }
    Ok(opened)
}

#[test]
fn every_fault_ends_in_an_error_or_the_right_bits() {
    for cheater in [Party(0), Party(1)] {
        // Selected bits of both strings, and symbols of both.
        let flips = [4, 30, 190, 240, 420].map(|byte| Fault::FlipBit { byte, bit: 2 });
        let faults = QUICK_FAULTS.into_iter().chain(flips).collect();
        let sweep = Sweep { faults, ..Sweep::new(2, cheater, Promise::RightOrAborted) };
        let swept = sweep.run(open_twice);
        assert_eq!(swept.messages, 10);
        assert!(swept.faults >= 95, "{swept:?}");
        assert_eq!(swept.survived, 0, "the honest party always notices: {swept:?}");
    }
}
