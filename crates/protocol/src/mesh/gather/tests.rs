use super::*;
use crate::interface::net::{Net, Patience};
use crate::mesh::{mesh, mesh_with_timeout};
use crate::testkit::tamper::{Fault, Tamper};

const SOON: Duration = Duration::from_millis(250);
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_slow_peer_holds_up_nobody_and_its_late_messages_disturb_no_later_ones() {
    let [mut a, mut b, mut c] = three(LONG);
    for round in 0..5 {
        b.send(Party(0), &[round; 3]).expect("send");
        let mut into = buffers([0, 3, 4]);
        let gathered = gather(&mut a, &[b"", b"x", b"y"], &mut into, |arrived| arrived.len() == 1);
        assert_eq!((gathered.arrived, gathered.lost), (set(&[1]), set(&[])));
        assert_eq!(into[1], [round; 3]);
    }
    for round in 0..5 {
        c.send(Party(0), &[round; 4]).expect("what was late");
    }
    c.send(Party(0), b"now").expect("send");
    b.send(Party(0), b"too").expect("send");
    let mut into = buffers([0, 3, 3]);
    assert_eq!(gather(&mut a, &[b""; 3], &mut into, |_| false).arrived, set(&[1, 2]));
    assert_eq!((&*into[1], &*into[2]), (&b"too"[..], &b"now"[..]));
}

#[test]
fn a_receive_and_an_exchange_after_a_gathering_pass_over_what_is_late() {
    let [mut a, mut b, mut c] = three(LONG);
    b.send(Party(0), &[1]).expect("send");
    gather(&mut a, &[b""; 3], &mut buffers([0, 1, 9]), |arrived| !arrived.is_empty());
    for message in [&[7; 9][..], b"recv"] {
        c.send(Party(0), message).expect("send");
    }
    let mut into = [0; 4];
    a.recv(Party(2), &mut into).expect("recv");
    assert_eq!(&into, b"recv");

    b.send(Party(0), &[1]).expect("send");
    gather(&mut a, &[b""; 3], &mut buffers([0, 1, 9]), |arrived| !arrived.is_empty());
    for message in [&[7; 9][..], b"exch"] {
        c.send(Party(0), message).expect("send");
    }
    a.exchange(&[b"", b"", b"!"], &mut [&mut [], &mut [], &mut into]).expect("exchange");
    assert_eq!(&into, b"exch");
}

#[test]
fn a_silent_peer_is_lost_after_the_limit_and_costs_nothing_afterwards() {
    let [mut a, mut b, _c] = three(SOON);
    b.send(Party(0), &[1]).expect("send");
    let start = Instant::now();
    let gathered = gather_for(&mut a, Patience::of(3), &[b""; 3], &mut buffers([0, 1, 1]), |_| false);
    assert_eq!((gathered.arrived, gathered.lost), (set(&[1]), set(&[2])));
    assert!(start.elapsed() >= 3 * SOON, "{:?}", start.elapsed());

    let start = Instant::now();
    for _ in 0..10 {
        b.send(Party(0), &[1]).expect("send");
        let gathered =
            gather_for(&mut a, Patience::of(3), &[b"", b"x", b"y"], &mut buffers([0, 1, 1]), |_| false);
        assert_eq!((gathered.arrived, gathered.lost), (set(&[1]), set(&[2])));
    }
    assert!(start.elapsed() < 3 * SOON, "{:?}", start.elapsed());
    let timeout = Err(Error::Timeout { peer: Party(2), waited: 3 * SOON });
    assert_eq!(a.send(Party(2), b"x"), timeout);
    assert_eq!(a.recv(Party(2), &mut [0]), timeout);
    assert_eq!(a.lost(), set(&[2]));
}

#[test]
fn one_that_owes_is_lost_even_if_nobody_ever_waits_for_it() {
    let [mut a, mut b, _c] = three(SOON);
    let mut lost = set(&[]);
    for _ in 0..100 {
        b.send(Party(0), &[1]).expect("send");
        lost = gather(&mut a, &[b""; 3], &mut buffers([0, 1, 1]), |_| true).lost;
        std::thread::sleep(SOON / 20);
    }
    assert_eq!(lost, set(&[2]));
}

#[test]
fn one_that_leaves_is_lost_but_what_it_left_arrives() {
    let [mut a, mut b, mut c] = three(LONG);
    c.send(Party(0), b"bye").expect("send");
    drop(c);
    b.send(Party(0), &[1]).expect("send");
    let mut into = buffers([0, 1, 3]);
    let gathered = gather(&mut a, &[b"", b"x", b"y"], &mut into, |_| false);
    assert_eq!(gathered.arrived, set(&[1, 2]));
    assert_eq!(into[2], b"bye");
    let gathered = gather(&mut a, &[b"", b"x", b"y"], &mut buffers([0, 0, 3]), |_| false);
    assert_eq!((gathered.arrived, gathered.lost), (set(&[]), set(&[2])));
}

#[test]
fn one_that_owes_too_much_is_lost() {
    let [mut a, mut b, _c] = three(LONG);
    b.send(Party(0), &[1]).expect("send");
    let mut into = buffers([0, 1, MAX_OWED + 1]);
    let gathered = gather(&mut a, &[b""; 3], &mut into, |arrived| !arrived.is_empty());
    assert_eq!((gathered.arrived, gathered.lost), (set(&[1]), set(&[2])));
}

#[test]
fn enough_is_asked_with_growing_sets_and_sees_the_messages() {
    let [mut a, mut b, mut c] = three(LONG);
    b.send(Party(0), b"b").expect("send");
    c.send(Party(0), b"c").expect("send");
    let mut asked = Vec::new();
    let mut into = buffers([0, 1, 1]);
    let mut views: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
    a.gather(&[&b""[..]; 3], &mut views, Patience::of(1), &mut |arrived, into| {
        asked.push(arrived);
        arrived.iter().for_each(|p| assert_eq!(into[p.index()][0], b'a' + p.0));
        false
    })
    .expect("gather");
    assert_eq!(asked, [set(&[]), set(&[1]), set(&[1, 2])]);
}

#[test]
fn faults_are_losses_or_late_and_never_errors() {
    let faults = [
        (Fault::Truncate, 4, true),
        (Fault::Truncate, 1, true),
        (Fault::Drop, 4, true),
        (Fault::Stall(SOON / 2), 4, false),
        (Fault::FlipBit { byte: 0, bit: 0 }, 4, false),
    ];
    for (fault, len, is_loss) in faults {
        // What comes late is not lost, however busy the machine is.
        let [mut a, mut b, c] = three(if is_loss { SOON } else { LONG });
        let mut c = Tamper::new(c, 0, fault);
        let message = vec![5; len];
        std::thread::scope(|scope| {
            scope.spawn(|| gather(&mut c, &[&message, b"", b""], &mut buffers([0; 3]), |_| false));
            b.send(Party(0), &message).expect("send");
            let gathered = gather(&mut a, &[b""; 3], &mut buffers([0, len, len]), |_| false);
            assert_eq!(gathered.lost.contains(Party(2)), is_loss, "{fault:?}");
            assert!(gathered.arrived.contains(Party(1)));
        });
        assert!(c.tampering().fired());
    }
}

#[test]
fn mistakes_of_the_caller_are_misuse() {
    let mut a = mesh(2).remove(0);
    assert!(matches!(a.gather(&[b""], &mut [], Patience::of(1), &mut |_, _| true), Err(Error::Misuse(_))));
    let to_itself = a.gather(&[b"x", b""], &mut [&mut [], &mut []], Patience::of(1), &mut |_, _| true);
    assert!(matches!(to_itself, Err(Error::Misuse(_))));
}

fn three(timeout: Duration) -> [Mesh; 3] {
    mesh_with_timeout(3, timeout).try_into().ok().expect("three")
}

fn set(parties: &[u8]) -> PartySet {
    parties.iter().copied().map(Party).collect()
}

fn buffers(lens: [usize; 3]) -> Vec<Vec<u8>> {
    lens.map(|len| vec![0; len]).to_vec()
}

fn gather(
    net: &mut dyn Net,
    out: &[&[u8]; 3],
    into: &mut [Vec<u8>],
    enough: impl Fn(PartySet) -> bool,
) -> Gathered {
    gather_for(net, Patience::of(1), out, into, enough)
}

fn gather_for(
    net: &mut dyn Net,
    patience: Patience,
    out: &[&[u8]; 3],
    into: &mut [Vec<u8>],
    enough: impl Fn(PartySet) -> bool,
) -> Gathered {
    let mut into: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
    net.gather(out, &mut into, patience, &mut |arrived, _| enough(arrived)).expect("never a peer's failure")
}
