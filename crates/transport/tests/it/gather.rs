//! What a gathering over TLS must do, whatever a peer does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{HASTY, PATIENT, exchange, message, run, session};
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper};
use polyclave_transport::{Farewells, Limits, Shape, Shaped, TlsNet};

const IMPATIENT: Limits = Limits { idle: HASTY, ..PATIENT };
/// More than sockets hold.
const LARGE: usize = 20 << 20;

#[test]
fn everybody_gathers_wildly_different_sizes_from_everybody() {
    const SIZES: [usize; 5] = [1, 16 << 20, 16_380, 100_000, 5];
    run(session(4, PATIENT), |mut net| {
        let me = net.me();
        for round in 0..5 {
            let len = |from: Party, to: Party| SIZES[(from.index() * 2 + to.index() + round) % SIZES.len()];
            let out: Vec<_> = Party::all(4).map(|to| message(me, to, len(me, to))).collect();
            let (gathered, into) = gather(&mut net, &out, |from| len(from, me), |_| false);
            assert_eq!(gathered, Gathered { arrived: others(me, 4), lost: set(&[]) });
            for from in me.peers(4) {
                assert!(into[from.index()] == message(from, me, len(from, me)), "{me} from {from}");
            }
        }
        // Some of what is here may still have to be sent.
        exchange(&mut net, |_, _| 1).expect("exchange");
    });
}

#[test]
fn messages_longer_than_a_frame_are_late_or_kept_whole() {
    for max_frame in [1, 7, 1000] {
        let [mut a, mut b, mut c] = three(Limits { max_frame, ..PATIENT });
        b.send(Party(0), &[1; 2000]).expect("send");
        let len = |from: Party| usize::from(from.0) * 2000;
        let (gathered, _) = gather(&mut a, &nothing(), len, |arrived| !arrived.is_empty());
        assert_eq!(gathered.arrived, set(&[1]));
        c.send(Party(0), &[2; 4000]).expect("what is late");
        c.send(Party(0), &[3; 4001]).expect("send");
        let mut into = [0; 4001];
        a.recv(Party(2), &mut into).expect("recv");
        assert_eq!(into, [3; 4001]);
    }
}

#[test]
fn a_slow_peer_holds_up_nobody_and_its_late_messages_disturb_no_later_ones() {
    let [mut a, mut b, mut c] = three(PATIENT);
    let len = |from: Party| usize::from(from.0) * 100_000;
    for round in 0..5 {
        b.send(Party(0), &vec![round; 100_000]).expect("send");
        let (gathered, into) = gather(&mut a, &nothing(), len, |arrived| arrived.len() == 1);
        assert_eq!(gathered, Gathered { arrived: set(&[1]), lost: set(&[]) });
        assert!(into[1] == vec![round; 100_000]);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..5 {
                c.send(Party(0), &vec![round; 200_000]).expect("what is late");
            }
            c.send(Party(0), &vec![9; 200_000]).expect("send");
        });
        b.send(Party(0), &vec![8; 100_000]).expect("send");
        let (gathered, into) = gather(&mut a, &nothing(), len, |_| false);
        assert_eq!(gathered, Gathered { arrived: set(&[1, 2]), lost: set(&[]) });
        assert!(into[1] == vec![8; 100_000] && into[2] == vec![9; 200_000]);
    });
}

/// The rest of a message is late, once a part of it lies in the caller's buffer.
#[test]
fn a_message_that_had_begun_to_come_is_passed_over_from_where_it_was() {
    let [mut a, mut b, mut c] = three(PATIENT);
    std::thread::scope(|scope| {
        let late = scope.spawn(move || {
            c.send(Party(0), &vec![1; LARGE]).expect("what is late");
            exchange_with(&mut c, Party(0), b"on time");
            c
        });
        let slow = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            b.send(Party(0), &[1]).expect("send");
            b
        });
        let len = |from: Party| if from == Party(1) { 1 } else { LARGE };
        // Whatever comes first, the other is late.
        let (gathered, _) = gather(&mut a, &nothing(), len, |arrived| !arrived.is_empty());
        assert_eq!(gathered.arrived.len(), 1);
        exchange_with(&mut a, Party(2), b"on time");
        drop((late.join().expect("late"), slow.join().expect("slow")));
    });
}

#[test]
fn a_silent_peer_is_lost_after_the_limit_and_costs_nothing_afterwards() {
    let [mut a, mut b, _silent] = three(IMPATIENT);
    b.send(Party(0), &[1]).expect("send");
    let start = Instant::now();
    let (gathered, _) = gather_for(&mut a, Patience::of(3), &nothing(), |_| 1, |_| false);
    assert_eq!(gathered, Gathered { arrived: set(&[1]), lost: set(&[2]) });
    assert!(start.elapsed() >= 3 * HASTY, "{:?}", start.elapsed());

    let start = Instant::now();
    for _ in 0..20 {
        b.send(Party(0), &[1]).expect("send");
        let (gathered, _) = gather_for(&mut a, Patience::of(3), &to_both(b"x"), |_| 1, |_| false);
        assert_eq!(gathered, Gathered { arrived: set(&[1]), lost: set(&[2]) });
    }
    assert!(start.elapsed() < 3 * HASTY, "{:?}", start.elapsed());
    let timeout = Err(Error::Timeout { peer: Party(2), waited: 3 * HASTY });
    assert_eq!(a.send(Party(2), b"x"), timeout);
    assert_eq!(a.recv(Party(2), &mut [0]), timeout);
    assert_eq!(exchange(&mut a, |_, _| 1), timeout);
    assert_eq!((a.lost(), a.members()), (set(&[2]), PartySet::all(3)));
    assert!(!a.is_alive());
    // None of these is final.
    exchange_with_nobody(&mut a);
}

#[test]
fn one_that_is_late_and_silent_is_lost_even_if_nobody_ever_waits_for_it() {
    let [mut a, mut b, _silent] = three(IMPATIENT);
    let mut lost = set(&[]);
    for _ in 0..100 {
        b.send(Party(0), &[1]).expect("send");
        lost = gather(&mut a, &nothing(), |_| 1, |arrived| arrived.contains(Party(1))).0.lost;
        std::thread::sleep(HASTY / 20);
    }
    assert_eq!(lost, set(&[2]));
}

#[test]
fn one_that_leaves_is_lost_but_what_it_left_arrives() {
    let [mut a, mut b, mut c] = three(PATIENT);
    c.send(Party(0), b"b").expect("send");
    drop(c);
    b.send(Party(0), b"b").expect("send");
    // Until it is known to take nothing any more.
    std::thread::sleep(Duration::from_millis(50));
    let (gathered, into) = gather(&mut a, &to_both(&vec![1; LARGE]), |_| 1, |_| false);
    assert_eq!(gathered.arrived, set(&[1, 2]));
    assert_eq!(into[2], b"b");
    let (gathered, _) = gather(&mut a, &nothing(), |from| usize::from(from == Party(2)), |_| false);
    assert_eq!(gathered, Gathered { arrived: set(&[]), lost: set(&[2]) });
}

/// A party that waits for it and for others learns it at once, not only when the others say something.
#[test]
fn one_that_leaves_while_it_is_awaited_ends_the_wait() {
    let [mut a, b, mut c] = three(PATIENT);
    drop(b);
    let long = Duration::from_secs(60);
    assert_eq!(a.wait_for_any(set(&[1, 2]), long).expect("a wait"), Some(Party(1)));
    assert_eq!(a.lost(), set(&[1]));
    assert_eq!(a.wait_for_any(set(&[1]), long).expect("a wait"), None, "it was lost before");
    c.send(Party(0), &[7]).expect("sent");
    drop(c);
    assert_eq!(a.wait_for_any(set(&[1, 2]), long).expect("a wait"), Some(Party(2)));
    let (gathered, into) = gather(&mut a, &nothing(), |from| usize::from(from == Party(2)), |_| false);
    assert_eq!((gathered.arrived, &into[2][..]), (set(&[2]), &[7][..]), "what it had sent arrives");
}

#[test]
fn one_that_sends_another_length_is_lost_and_the_others_go_on() {
    for (sent, due) in [(5, 10), (10, 5), (0, 1), (100_000, 50_000)] {
        let [mut a, mut b, mut c] = three(PATIENT);
        b.send(Party(0), &vec![1; due]).expect("send");
        c.send(Party(0), &vec![1; sent]).expect("send");
        let (gathered, _) = gather(&mut a, &nothing(), |_| due, |_| false);
        assert_eq!(gathered, Gathered { arrived: set(&[1]), lost: set(&[2]) });
        exchange_both(&mut a, &mut b);
    }
}

#[test]
fn a_late_message_of_another_length_is_a_loss_too() {
    let [mut a, mut b, mut c] = three(PATIENT);
    b.send(Party(0), &[1]).expect("send");
    gather(&mut a, &nothing(), |_| 1, |arrived| !arrived.is_empty());
    c.send(Party(0), &[1; 2]).expect("send");
    c.send(Party(0), &[1; 1]).expect("send");
    b.send(Party(0), &[1]).expect("send");
    let (gathered, _) = gather(&mut a, &nothing(), |_| 1, |_| false);
    assert_eq!(gathered, Gathered { arrived: set(&[1]), lost: set(&[2]) });
}

#[test]
fn one_that_does_not_read_holds_up_nobody_and_gets_everything_when_it_does() {
    let [mut a, mut b, mut c] = three(PATIENT);
    let large: Vec<Vec<u8>> = (0..3).map(|i| message(Party(i), Party(2), LARGE)).collect();
    let reader = |net: &mut TlsNet| {
        for expected in &large {
            let mut into = vec![0; LARGE];
            net.recv(Party(0), &mut into).expect("recv");
            assert!(&into == expected);
        }
        net.send(Party(0), b"!").expect("send");
    };
    std::thread::scope(|scope| {
        let both = scope.spawn(|| {
            reader(&mut b);
            b
        });
        for message in &large {
            let out = [vec![], message.clone(), message.clone()];
            // Nobody is awaited.
            let (gathered, _) = gather(&mut a, &out, |_| 0, |_| false);
            assert_eq!(gathered, Gathered { arrived: set(&[]), lost: set(&[]) });
        }
        let (gathered, _) = gather(&mut a, &nothing(), |from| usize::from(from == Party(1)), |_| false);
        assert_eq!(gathered, Gathered { arrived: set(&[1]), lost: set(&[]) });
        both.join().expect("reader");

        scope.spawn(|| reader(&mut c));
        let (gathered, into) = gather(&mut a, &nothing(), |from| usize::from(from == Party(2)), |_| false);
        assert_eq!(gathered, Gathered { arrived: set(&[2]), lost: set(&[]) });
        assert_eq!(into[2], b"!");
    });
}

#[test]
fn what_was_kept_is_sent_even_when_the_network_is_dropped() {
    let [mut a, _b, mut c] = three(PATIENT);
    let large = message(Party(0), Party(2), LARGE);
    gather(&mut a, &[vec![], vec![], large.clone()], |_| 0, |_| false);
    drop(a);
    let mut into = vec![0; LARGE];
    c.recv(Party(0), &mut into).expect("recv");
    assert!(into == large);
    assert!(matches!(c.recv(Party(0), &mut [0]), Err(Error::Closed { peer: Party(0), .. })));
}

/// A peer that does not read would otherwise be waited for: much longer than this test may take.
#[test]
fn an_owner_that_ends_leaves_no_thread_and_its_networks_linger_no_more() {
    let farewells = Arc::new(Farewells::default());
    let lingering = |net: TlsNet| {
        let mut net = net.owned_by(farewells.clone());
        gather(&mut net, &[vec![], vec![], vec![1; LARGE]], |_| 0, |_| false);
        drop(net);
    };
    let [a, _b, mut c] = three(PATIENT);
    lingering(a);
    assert_eq!(Arc::strong_count(&farewells), 2, "a thread tries to send the rest");
    farewells.end(Duration::from_millis(20));
    assert_eq!(Arc::strong_count(&farewells), 1, "it has ended");
    assert!(c.recv(Party(0), &mut vec![0; LARGE]).is_err(), "what did not arrive was cut");
    let [a, _b, mut c] = three(PATIENT);
    lingering(a);
    assert_eq!(Arc::strong_count(&farewells), 1, "no thread was started");
    assert!(c.recv(Party(0), &mut vec![0; LARGE]).is_err());
}

/// A connection to which somebody sends after it was closed is reset, and then what its system still had to
/// send is gone.
#[test]
fn what_the_system_has_taken_arrives_though_the_receiver_sends_first() {
    let [mut a, _b, mut c] = three(PATIENT);
    let len = 1 << 20;
    let sent = message(Party(0), Party(2), len);
    let out = [vec![], vec![], sent.clone()];
    let (gathered, _) = gather(&mut a, &out, |from| usize::from(from == Party(2)), |_| true);
    assert_eq!(gathered.arrived, set(&[]));
    drop(a);
    for _ in 0..2 {
        c.send(Party(0), &[1]).expect("sent");
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut into = vec![0; len];
    c.recv(Party(0), &mut into).expect("recv");
    assert!(into == sent);
}

#[test]
fn an_exchange_with_others_goes_on_sending_what_was_kept() {
    let [mut a, mut b, mut c] = three(PATIENT);
    let large = message(Party(0), Party(2), LARGE);
    gather(&mut a, &[vec![], vec![], large.clone()], |_| 0, |_| false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut into = vec![0; LARGE];
            c.recv(Party(0), &mut into).expect("recv");
            assert!(into == large);
            c.send(Party(1), b"all").expect("send");
        });
        scope.spawn(|| {
            b.recv(Party(2), &mut [0; 3]).expect("recv");
            b.send(Party(0), b"all").expect("send");
        });
        a.recv(Party(1), &mut [0; 3]).expect("recv");
    });
}

#[test]
fn one_that_is_too_far_behind_is_lost() {
    let [mut a, mut b, _c] = three(Limits { max_backlog: 1 << 20, ..PATIENT });
    // A single message is never too much; what is owed counts a sixteenth, since it takes no memory.
    for (len, lost) in [(20 << 20, set(&[])), (1, set(&[2]))] {
        b.send(Party(0), &[1]).expect("send");
        let (gathered, _) = gather(
            &mut a,
            &nothing(),
            |from| if from == Party(1) { 1 } else { len },
            |arrived| !arrived.is_empty(),
        );
        assert_eq!(gathered, Gathered { arrived: set(&[1]), lost });
    }

    let [mut a, _b, _c] = three(Limits { max_backlog: 1 << 20, ..PATIENT });
    for lost in [set(&[]), set(&[2])] {
        let (gathered, _) = gather(&mut a, &[vec![], vec![], vec![1; LARGE]], |_| 0, |_| true);
        assert_eq!(gathered, Gathered { arrived: set(&[]), lost });
    }
}

#[test]
fn enough_is_asked_with_growing_sets_and_sees_the_messages() {
    run(session(4, PATIENT), |mut net| {
        let me = net.me();
        let (mut asked, mut into) = (Vec::new(), vec![vec![0; 9]; 4]);
        into[me.index()].clear();
        let out: Vec<Vec<u8>> = Party::all(4).map(|to| message(me, to, 9)).collect();
        let out: Vec<&[u8]> =
            Party::all(4).map(|to| if to == me { &[][..] } else { &out[to.index()][..] }).collect();
        let mut views: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
        let gathered = net.gather(&out, &mut views, Patience::of(1), &mut |arrived, into| {
            asked.push(arrived);
            arrived.iter().for_each(|from| assert_eq!(into[from.index()], message(from, me, 9)));
            false
        });
        assert_eq!(gathered.expect("gather").arrived, others(me, 4));
        assert_eq!(asked.len(), 4);
        for pair in asked.windows(2) {
            assert!(pair[0].iter().all(|p| pair[1].contains(p)) && pair[1].len() == pair[0].len() + 1);
        }
        exchange(&mut net, |_, _| 1).expect("exchange");
    });
}

#[test]
fn faults_are_losses_or_late_and_never_errors() {
    let faults = [
        (Fault::Truncate, 4, true),
        (Fault::Truncate, 1, true),
        (Fault::Drop, 4, true),
        (Fault::Stall(HASTY / 2), 4, false),
        (Fault::FlipBit { byte: 0, bit: 0 }, 4, false),
    ];
    for (fault, len, is_loss) in faults {
        let [mut a, mut b, c] = three(IMPATIENT);
        let mut c = Tamper::new(c, 0, fault);
        std::thread::scope(|scope| {
            scope.spawn(|| gather(&mut c, &[vec![5; len], vec![], vec![]], |_| 0, |_| false));
            b.send(Party(0), &vec![5; len]).expect("send");
            let (gathered, _) = gather(&mut a, &nothing(), |_| len, |_| false);
            assert_eq!(gathered.lost.contains(Party(2)), is_loss, "{fault:?}");
            assert!(gathered.arrived.contains(Party(1)));
        });
        assert!(c.tampering().fired());
    }
}

#[test]
fn a_deadline_is_a_loss() {
    let [mut a, mut b, _silent] = three(PATIENT);
    b.send(Party(0), &[1]).expect("send");
    a.set_deadline(Some(Instant::now() + HASTY));
    let (gathered, _) = gather(&mut a, &nothing(), |_| 1, |_| false);
    assert_eq!(gathered, Gathered { arrived: set(&[1]), lost: set(&[2]) });
}

#[test]
fn streams_of_a_stream_that_has_lost_a_peer_are_their_own() {
    let [mut a, mut b, mut c] = three(IMPATIENT);
    gather(&mut a, &nothing(), |from| usize::from(from == Party(2)), |_| false);
    assert_eq!(a.lost(), set(&[2]));
    std::thread::scope(|scope| {
        for net in [&mut a, &mut b, &mut c] {
            scope.spawn(|| {
                let mut fork = net.fork().expect("all are still running");
                assert_eq!(fork.lost(), set(&[]));
                exchange(&mut *fork, |_, _| 10).expect("exchange");
            });
        }
    });
}

#[test]
fn a_shaped_gathering_takes_one_way() {
    let shape = Shape { rtt: Duration::from_millis(60), bytes_per_second: None };
    let nets = session(3, PATIENT).into_iter().map(|net| Shaped::new(net, shape)).collect();
    let times = run(nets, |mut net| {
        let out: Vec<_> = Party::all(3).map(|to| message(net.me(), to, 9)).collect();
        let start = Instant::now();
        let (gathered, _) = gather(&mut net, &out, |_| 9, |_| false);
        assert_eq!(gathered.arrived, others(net.me(), 3));
        let took = start.elapsed();
        exchange(&mut net, |_, _| 1).expect("exchange");
        took
    });
    let longest = times.into_iter().max().expect("three");
    assert!(longest >= Duration::from_millis(30) && longest < Duration::from_millis(300), "{longest:?}");
}

#[test]
fn mistakes_of_the_caller_are_misuse() {
    let [mut a, ..] = three(PATIENT);
    let mut tried = |out: &[&[u8]], into: &mut [&mut [u8]]| {
        let gathered = a.gather(out, into, Patience::of(1), &mut |_, _| true);
        assert!(matches!(gathered, Err(Error::Misuse(_))), "{gathered:?}");
    };
    tried(&[b"", b"x"], &mut [&mut [], &mut [], &mut []]);
    tried(&[b"myself", b"", b""], &mut [&mut [], &mut [], &mut []]);
}

fn three(limits: Limits) -> [TlsNet; 3] {
    session(3, limits).try_into().ok().expect("three")
}

fn set(parties: &[u8]) -> PartySet {
    parties.iter().copied().map(Party).collect()
}

fn others(me: Party, n: usize) -> PartySet {
    me.peers(n).collect()
}

fn nothing() -> Vec<Vec<u8>> {
    vec![vec![]; 3]
}

/// From party 0.
fn to_both(message: &[u8]) -> Vec<Vec<u8>> {
    vec![vec![], message.to_vec(), message.to_vec()]
}

fn gather(
    net: &mut dyn Net,
    out: &[Vec<u8>],
    due: impl Fn(Party) -> usize,
    enough: impl Fn(PartySet) -> bool,
) -> (Gathered, Vec<Vec<u8>>) {
    gather_for(net, Patience::of(1), out, due, enough)
}

/// Whatever `out` and `due` say of this party itself.
fn gather_for(
    net: &mut dyn Net,
    patience: Patience,
    out: &[Vec<u8>],
    due: impl Fn(Party) -> usize,
    enough: impl Fn(PartySet) -> bool,
) -> (Gathered, Vec<Vec<u8>>) {
    let (me, n) = (net.me(), net.parties());
    let mut into: Vec<_> = Party::all(n).map(|p| vec![0; if p == me { 0 } else { due(p) }]).collect();
    let mut views: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
    let out: Vec<&[u8]> =
        Party::all(n).map(|p| if p == me { &[][..] } else { &out[p.index()][..] }).collect();
    let gathered = net.gather(&out, &mut views, patience, &mut |arrived, _| enough(arrived));
    (gathered.expect("never a peer's failure"), into)
}

fn exchange_with(net: &mut TlsNet, peer: Party, message: &[u8]) {
    let (mut out, mut into) = (vec![&[][..]; 3], vec![vec![]; 3]);
    out[peer.index()] = message;
    into[peer.index()] = vec![0; message.len()];
    let mut views: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
    net.exchange(&out, &mut views).expect("exchange");
    assert_eq!(into[peer.index()], message);
}

fn exchange_with_nobody(net: &mut TlsNet) {
    net.exchange(&[&[][..]; 3], &mut [&mut [], &mut [], &mut []]).expect("nothing is final");
}

/// Parties 0 and 1.
fn exchange_both(a: &mut TlsNet, b: &mut TlsNet) {
    std::thread::scope(|scope| {
        scope.spawn(|| exchange_with(a, Party(1), b"abc"));
        scope.spawn(|| exchange_with(b, Party(0), b"abc"));
    });
}
