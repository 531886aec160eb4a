//! Nodes that stay, and streams among them that come and go.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::cluster::{Cluster, LONG, certificate, open, set};
use crate::common::{HASTY, PATIENT, exchange, message, run};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, Result};
use polyclave_transport::{Limits, Mesh, TlsNet};

fn all_of(opened: Vec<Result<TlsNet>>) -> Vec<TlsNet> {
    opened.into_iter().map(|net| net.expect("open")).collect()
}

/// Every member sends something to every other, of different sizes.
fn talk(mut net: TlsNet) {
    let (me, n) = (net.me(), net.parties());
    let others: Vec<Party> = net.members().iter().filter(|member| *member != me).collect();
    let len = |from: Party, to: Party| 100 * (from.index() + 1) + 7 * to.index();
    let mut out = vec![Vec::new(); n];
    let mut into = vec![Vec::new(); n];
    for peer in &others {
        out[peer.index()] = message(me, *peer, len(me, *peer));
        into[peer.index()] = vec![0; len(*peer, me)];
    }
    let out: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
    net.exchange(&out, &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).expect("exchange");
    for peer in others {
        assert!(
            into[peer.index()] == message(peer, me, len(peer, me)),
            "{me} got something else from {peer}"
        );
    }
}

#[test]
fn two_of_three_open_a_stream_without_the_third() {
    let cluster = Cluster::new(3);
    for pair in [[0, 1], [0, 2], [1, 2]] {
        let meshes = pair.map(|me| (me, cluster.start(me)));
        let nets = all_of(open(&meshes.each_ref().map(|(me, mesh)| (*me, mesh)), "pair", LONG));
        for (net, me) in nets.iter().zip(pair) {
            assert_eq!((net.me(), net.parties(), net.members()), (Party(me), 3, set(&pair)));
        }
        run(nets, talk);
    }
}

#[test]
fn those_that_are_not_members_cannot_be_sent_to() {
    let meshes = Cluster::new(3).start_all();
    let mut nets = all_of(open(&[(0, &meshes[0]), (2, &meshes[2])], "pair", LONG));
    let misuses = [
        nets[0].send(Party(1), b"x"),
        nets[0].recv(Party(1), &mut [0]),
        nets[0].exchange(&[b"", b"x", b""], &mut [&mut [], &mut [], &mut []]),
        nets[0].exchange(&[b"", b"", b""], &mut [&mut [], &mut [0], &mut []]),
    ];
    for misuse in misuses {
        assert!(matches!(misuse, Err(Error::Misuse(_))), "{misuse:?}");
    }
    run(nets, talk);
}

#[test]
fn many_streams_of_many_subsets_open_at_once() {
    let meshes = Cluster::new(5).start_all();
    let subsets: [&[u8]; 4] = [&[0, 1, 2, 3, 4], &[1, 2, 4], &[0, 4], &[0, 2, 3]];
    std::thread::scope(|scope| {
        for round in 0..6 {
            for subset in subsets {
                for me in subset {
                    let mesh = &meshes[usize::from(*me)];
                    // One name, so that the members tell the streams apart.
                    scope.spawn(move || {
                        talk(mesh.open(&format!("{round}"), set(subset), LONG).expect("open"))
                    });
                }
            }
        }
    });
}

#[test]
fn streams_fork_among_their_members_and_outlive_the_mesh() {
    let meshes = Cluster::new(3).start_all();
    let nets = all_of(open(&[(0, &meshes[0]), (1, &meshes[1])], "pair", LONG));
    let forks = run(nets, |mut net| {
        let fork = net.fork().expect("fork");
        assert_eq!(fork.members(), set(&[0, 1]));
        (fork, net.stream("more").expect("stream"), net)
    });
    drop(meshes);
    run_all(forks, |(mut fork, more, mut net)| {
        exchange_pair(&mut *fork);
        talk(more);
        exchange_pair(&mut net);
        if net.me() == Party(1) {
            assert!(matches!(net.stream("too late").err(), Some(Error::Misuse(_))));
        }
    });
}

/// A run at several nodes: one of them goes while the others fork their stream.
#[test]
fn a_fork_is_given_up_as_soon_as_a_peer_has_ended_the_stream_also_if_it_has_started_again() {
    let cluster = Cluster::new(3);
    for gone in 0..3_u8 {
        let mut meshes: Vec<Option<Mesh>> = cluster.start_all().into_iter().map(Some).collect();
        let all: Vec<(u8, &Mesh)> = (0..).zip(meshes.iter().flatten()).collect();
        let nets = all_of(open(&all, "run", LONG));
        let (ended, mut others): (Vec<_>, Vec<_>) = nets.into_iter().partition(|net| net.me() == Party(gone));
        drop(ended);
        meshes[usize::from(gone)] = None;
        meshes[usize::from(gone)] = Some(cluster.start(gone));
        // The node is back, and accepts connections for streams that it does not know.
        let began = Instant::now();
        for net in &mut others {
            let failed = net.fork().err();
            assert!(matches!(failed, Some(Error::Closed { peer, .. }) if peer == Party(gone)), "{failed:?}");
        }
        assert!(began.elapsed() < LONG / 4, "{:?}", began.elapsed());
    }
}

#[test]
fn who_has_forked_a_stream_notices_at_once_that_another_has_ended_it_without_a_fork() {
    let meshes = Cluster::new(2).start_all();
    let mut nets = all_of(open(&[(0, &meshes[0]), (1, &meshes[1])], "run", LONG));
    let (ended, mut first) = (nets.pop().expect("two"), nets.pop().expect("two"));
    // The second node has accepted the connection, and its thread has not taken it.
    let mut fork = first.fork().expect("connected");
    let began = Instant::now();
    drop(ended);
    let lost = fork.recv(Party(1), &mut [0]);
    assert!(matches!(lost, Err(Error::Closed { peer: Party(1), .. })), "{lost:?}");
    assert!(began.elapsed() < LONG / 4, "{:?}", began.elapsed());
    assert!(matches!(first.fork().err(), Some(Error::Closed { peer: Party(1), .. })));
}

/// For example as long as all nodes are connected.
#[test]
fn a_stream_that_is_of_no_use_any_more_is_not_waited_for() {
    let mesh = Cluster::new(2).start(0);
    let began = Instant::now();
    let goes_on = || began.elapsed() < Duration::from_millis(50);
    assert!(mesh.open_while("run", set(&[0, 1]), LONG, Some(&goes_on)).is_err());
    assert!(began.elapsed() < LONG / 4, "{:?}", began.elapsed());
}

/// As for a peer that stalls when this node is to stop.
#[test]
fn a_mesh_that_is_halted_fails_whatever_waits_for_a_peer_also_on_forks_and_among_some_nodes() {
    let meshes = Cluster::new(3).start_all();
    let pairs = [0, 1].map(|me: usize| meshes[me].among(set(&[0, 1])).expect("a mesh of two"));
    let mut of_all = all_of(open(&[(0, &meshes[0]), (1, &meshes[1])], "all", LONG));
    let of_pair = all_of(open(&[(0, &pairs[0]), (1, &pairs[1])], "pair", LONG));
    let forks = run(of_pair, |mut net| (net.fork().expect("fork"), net));
    let (mut ours, theirs): (Vec<_>, Vec<_>) = forks.into_iter().partition(|(_, net)| net.me() == Party(1));
    let began = Instant::now();
    std::thread::scope(|scope| {
        let (of_all, (fork, _)) = (&mut of_all[1], &mut ours[0]);
        let waits = [
            scope.spawn(move || of_all.recv(Party(0), &mut [0])),
            scope.spawn(move || fork.recv(Party(0), &mut [0])),
            scope.spawn(|| meshes[1].open("nobody comes", set(&[0, 1]), LONG).map(drop)),
            scope.spawn(|| pairs[1].open("nobody comes", set(&[0, 1]), LONG).map(drop)),
        ];
        std::thread::sleep(Duration::from_millis(100));
        assert!(waits.iter().all(|wait| !wait.is_finished()));
        meshes[1].halt();
        for wait in waits {
            let ended = wait.join().expect("no panic").expect_err("nothing came");
            assert!(ended.to_string().contains("ended the work"), "{ended}");
        }
    });
    assert!(began.elapsed() < LONG / 4, "{:?}", began.elapsed());
    assert!(meshes[1].open("too late", set(&[0, 1]), LONG).is_err());
    drop(theirs);
}

/// Its node goes on without the pair.
#[test]
fn a_mesh_of_some_nodes_that_is_halted_leaves_that_of_all_alone() {
    let meshes = Cluster::new(2).start_all();
    let part = meshes[0].among(set(&[0, 1])).expect("a mesh of two");
    part.halt();
    assert!(part.open("pair", set(&[0, 1]), LONG).is_err());
    run(all_of(open(&[(0, &meshes[0]), (1, &meshes[1])], "all", LONG)), talk);
}

fn run_all<T: Send, U: Send>(each: Vec<T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = each.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a party panicked")).collect()
    })
}

fn exchange_pair(net: &mut dyn Net) {
    let (me, peer) = (net.me(), Party(1 - net.me().0));
    net.send(peer, &message(me, peer, 1000)).expect("send");
    let mut into = vec![0; 1000];
    net.recv(peer, &mut into).expect("recv");
    assert!(into == message(peer, me, 1000));
}

#[test]
fn a_node_that_restarts_takes_part_again() {
    let cluster = Cluster::new(3);
    let mut meshes: Vec<Option<Mesh>> = cluster.start_all().into_iter().map(Some).collect();
    for restarted in [1, 0, 2] {
        let all: Vec<(u8, &Mesh)> = (0..).zip(meshes.iter().flatten()).collect();
        let before = all_of(open(&all, "before", LONG));
        let (mut old, others): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|net| net.me() == Party(restarted));
        old.clear();
        meshes[usize::from(restarted)] = None;
        for mut net in others {
            let lost = net.recv(Party(restarted), &mut [0]);
            assert!(matches!(lost, Err(Error::Closed { peer, .. }) if peer == Party(restarted)), "{lost:?}");
        }
        // The others already wait or call when it comes back.
        std::thread::scope(|scope| {
            for (me, mesh) in (0..).zip(&meshes) {
                let Some(mesh) = mesh else { continue };
                scope.spawn(move || talk(mesh.open("after", set(&[0, 1, 2]), LONG).expect("open")));
                assert_ne!(me, restarted);
            }
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                let mesh = cluster.start(restarted);
                talk(mesh.open("after", set(&[0, 1, 2]), LONG).expect("open"));
            });
        });
        meshes[usize::from(restarted)] = Some(cluster.start(restarted));
    }
}

#[test]
fn another_cluster_is_named_at_both_and_disturbs_no_other_stream() {
    let cluster = Cluster::new(3);
    let other = Cluster { id: [8; 16], ..cluster.clone() };
    let meshes = [cluster.start(0), other.start(1), cluster.start(2)];
    let (right, wrong) = std::thread::scope(|scope| {
        let right = scope.spawn(|| open(&[(0, &meshes[0]), (2, &meshes[2])], "right", LONG));
        let wrong = [[0, 1], [1, 2]].map(|[a, b]| {
            let two = [(a, &meshes[usize::from(a)]), (b, &meshes[usize::from(b)])];
            scope.spawn(move || (a, b, open(&two, "wrong", LONG)))
        });
        (right.join().expect("right"), wrong.map(|wrong| wrong.join().expect("wrong")))
    });
    for (a, b, ends) in wrong {
        let ends: Vec<_> = ends.into_iter().map(|end| end.err().expect("they differ")).collect();
        let differs = |peer| Error::Disagreement { peer: Party(peer), field: "cluster" };
        assert_eq!(ends, [differs(b), differs(a)]);
    }
    run(all_of(right), talk);
}

#[test]
fn one_stream_that_fails_leaves_others_alone() {
    let meshes = Cluster::new(3).start_all();
    std::thread::scope(|scope| {
        // Nobody else opens these: the first is let in and never asked for, the second waits in vain.
        let (a, b) = (&meshes[0], &meshes[1]);
        scope.spawn(move || assert!(a.open("lonely", set(&[0, 1]), HASTY).is_ok()));
        scope.spawn(move || assert!(b.open("alone", set(&[0, 1]), HASTY).is_err()));
        let pair = open(&[(0, a), (1, b)], "good", LONG);
        run(all_of(pair), talk);
    });
}

#[test]
fn what_cannot_be_a_stream_or_a_mesh_is_misuse() {
    let cluster = Cluster::new(3);
    let mesh = cluster.start(0);
    for members in [&[0][..], &[1, 2], &[0, 3]] {
        let opened = mesh.open("x", set(members), LONG);
        assert!(matches!(opened.err(), Some(Error::Misuse(_))));
    }
    let change = |change: &dyn Fn(&mut Cluster)| {
        let mut cluster = cluster.clone();
        change(&mut cluster);
        cluster.try_start(1).err()
    };
    let ends = [
        change(&|c| c.nodes[1].certificates = vec![certificate()]),
        change(&|c| c.nodes[2].certificates.clear()),
        change(&|c| c.nodes[2].certificates = c.nodes[0].certificates.clone()),
        change(&|c| c.limits.idle = Duration::ZERO),
    ];
    for end in ends {
        assert!(matches!(end, Some(Error::Misuse(_))), "{end:?}");
    }
}

#[test]
fn a_node_that_does_not_come_is_named() {
    let cluster = Cluster::new(2);
    let mesh = cluster.start(1);
    let end = mesh.open("x", set(&[0, 1]), HASTY).err();
    assert_eq!(end, Some(Error::Timeout { peer: Party(0), waited: HASTY }));
    drop(mesh);
    let end = cluster.start(0).open("x", set(&[0, 1]), HASTY).err();
    assert!(
        matches!(&end, Some(Error::Closed { peer: Party(1), detail }) if detail.contains("refused")),
        "{end:?}"
    );
}

#[test]
fn a_connection_that_nobody_asks_for_is_dropped_in_time() {
    let cluster = Cluster { limits: Limits { idle: HASTY, ..PATIENT }, ..Cluster::new(2) };
    let meshes = cluster.start_all();
    let mut net = meshes[0].open("x", set(&[0, 1]), LONG).expect("the other node lets it in");
    assert!(net.is_alive());
    let start = Instant::now();
    while net.is_alive() {
        assert!(start.elapsed() < LONG, "it is kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(start.elapsed() >= HASTY / 2);
}

#[test]
fn a_peer_that_gave_up_and_calls_again_is_met() {
    let meshes = Cluster::new(2).start_all();
    drop(meshes[0].open("x", set(&[0, 1]), LONG).expect("open"));
    let nets = std::thread::scope(|scope| {
        let late = scope.spawn(|| meshes[1].open("x", set(&[0, 1]), LONG));
        std::thread::sleep(Duration::from_millis(100));
        [meshes[0].open("x", set(&[0, 1]), LONG), late.join().expect("party 2")]
    });
    run(all_of(nets.into()), talk);
}

#[test]
fn strangers_do_not_hold_up_a_mesh() {
    let cluster = Cluster::new(3);
    let meshes = cluster.start_all();
    let start = Instant::now();
    let mut strangers = Vec::new();
    for (mesh, i) in meshes.iter().cycle().zip(0..90) {
        let mut tcp = TcpStream::connect(mesh.local_addr()).expect("connect");
        tcp.set_nonblocking(true).expect("non-blocking");
        let _ = match i / 3 % 3 {
            0 => Ok(0),
            1 => tcp.write(&[0xa5; 5000]),
            _ => tcp.write(&[0x16, 3, 1, 2, 0, 1, 0]),
        };
        strangers.push(tcp);
    }
    let all: Vec<(u8, &Mesh)> = (0..).zip(&meshes).collect();
    run(all_of(open(&all, "x", LONG)), |mut net| exchange(&mut net, |_, _| 1000).expect("exchange"));
    assert!(start.elapsed() < PATIENT.handshake, "the nodes had to wait for strangers");
    // What is not TLS was closed at once.
    let tcp = &mut strangers[3];
    tcp.set_nonblocking(false).expect("blocking");
    tcp.set_read_timeout(Some(LONG)).expect("a limit");
    let _ = tcp.read_to_end(&mut Vec::new());
    assert!(start.elapsed() < PATIENT.handshake);
}
