//! What an extension leaves behind: numbers of transfers, and ends that are of no use after an error.

use super::*;
use crate::error::EARLIER_CHECK;
use crate::mesh::run_parties;
use crate::ot::Shape;
use crate::testkit::exchanging::ending_after;

const SILENT: Party = Party(1);

fn pairs(net: &mut dyn Net) -> Result<Pairs> {
    Pairs::setup(b"checked", 0x1234_5678, Shape::new(128, 4)?, net)
}

/// One byte of choices from the other of two parties.
fn choices(net: &dyn Net) -> [&'static [u8]; 2] {
    let mut choices = [&[0x5a][..]; 2];
    choices[net.me().index()] = &[];
    choices
}

/// Random messages are hashed with the number of their transfer: no two transfers have the same.
#[test]
fn every_transfer_has_a_number_of_its_own_however_it_was_made() {
    let firsts = run_parties(2, |net| {
        let mut pairs = pairs(net)?;
        let mut first = Vec::new();
        for _ in 0..3 {
            first.push(pairs.extend(&choices(net), 8, net)?.first);
            pairs.extend_checked(&choices(net), 7, net)?;
        }
        Ok(first)
    });
    assert_eq!(firsts, [Ok(vec![0, 15, 30]), Ok(vec![0, 15, 30])]);
}

/// The two ends are not in step any more. If the other one may have chosen among coins, the setup is given
/// up.
#[test]
fn after_an_error_nothing_is_extended_any_more() {
    for (exchanges, retires) in [(0, false), (1, true), (2, true)] {
        let outcomes = run_parties(2, |net| {
            let mut pairs = pairs(net)?;
            let left = if net.me() == SILENT { exchanges } else { usize::MAX };
            let mut ending = ending_after(net.fork()?, left);
            assert!(pairs.extend_checked(&choices(net), 8, &mut ending).is_err());
            Ok(pairs.extend_checked(&choices(net), 8, &mut ending).map(drop))
        });
        let again = outcomes[0].as_ref().expect("setup is honest");
        match retires {
            true => assert_eq!(*again, Err(Error::CheckFailed { what: EARLIER_CHECK }), "{exchanges}"),
            false => assert!(matches!(again, Err(Error::Misuse(_))), "{again:?}"),
        }
    }
}

/// A guess at either Delta would pass the gate of the other one.
#[test]
fn transfers_of_two_setups_are_not_checked_together() {
    let outcomes = run_parties(2, |net| {
        let [mut first, mut second] = [pairs(net)?, pairs(net)?];
        let choices = choices(net);
        let batches = [&mut first, &mut second].map(|pairs| Batch { pairs, choices: &choices, count: 8 });
        Ok(matches!(extend_checked(batches, net), Err(Error::Misuse(_))))
    });
    assert_eq!(outcomes, [Ok(true), Ok(true)]);
}
