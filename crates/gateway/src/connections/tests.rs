use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

const LIMITS: Limits =
    Limits { known: 6, strangers: 4, each_address: 2, stranger_within: Duration::from_secs(3600) };

fn stranger(last: u8) -> Whose {
    Whose::at(Ipv4Addr::new(192, 0, 2, last).into())
}

fn known(name: &str) -> Arc<str> {
    name.into()
}

/// Takes a connection that stays open.
fn take(all: &Arc<Connections>, whose: Whose) -> Option<Peer> {
    // Connections differ by when they were idle last, in milliseconds.
    std::thread::sleep(Duration::from_millis(2));
    let mut taken = None;
    all.take(whose, |peer| {
        taken = Some(peer);
        std::future::pending()
    });
    taken
}

/// Takes one of a token.
fn take_known(all: &Arc<Connections>, name: &str) -> Result<Peer, TooMany> {
    let peer = take(all, stranger(99)).expect("strangers are taken");
    peer.is_known_as(&known(name)).map(|()| peer)
}

fn is_open(peer: &Peer) -> bool {
    peer.all.open.lock().values().any(|some| some.contains_key(&peer.number))
}

fn counts(all: &Connections) -> (usize, usize, u64) {
    let ConnectionCounts { known, strangers, refused, .. } = all.counts();
    (known, strangers, refused)
}

#[tokio::test]
async fn strangers_take_no_place_of_tokens_and_one_address_takes_none_of_others() {
    let all = Connections::new(LIMITS);
    let own = take_known(&all, "a").expect("room");
    let other = take(&all, stranger(1)).expect("room");
    let flood: Vec<Peer> = (0..50).filter_map(|_| take(&all, stranger(2))).collect();
    assert_eq!(counts(&all), (1, 3, 48));
    assert!(is_open(&own) && is_open(&other) && flood[48..].iter().all(is_open));
    // One address of many: those that have most lose one.
    let many: Vec<Peer> = (3..50).filter_map(|address| take(&all, stranger(address))).collect();
    assert_eq!(counts(&all).1, 4);
    assert!(is_open(&own) && is_open(&many[46]));
    assert!(take_known(&all, "b").is_ok());
}

#[test]
fn addresses_of_one_network_of_version_6_are_one() {
    let of = |last: [u16; 5]| {
        let [a, b, c, d, e] = last;
        Whose::at(Ipv6Addr::new(0x2001, 0xdb8, 0, a, b, c, d, e).into())
    };
    assert_eq!(of([1, 2, 3, 4, 5]), of([1, 9, 9, 9, 9]));
    assert_ne!(of([1, 2, 3, 4, 5]), of([2, 2, 3, 4, 5]));
    assert_eq!(Whose::at(Ipv4Addr::new(192, 0, 2, 7).to_ipv6_mapped().into()), stranger(7));
}

#[tokio::test]
async fn the_one_that_was_idle_for_longest_makes_room_and_a_busy_one_does_not_for_its_own() {
    let all = Connections::new(LIMITS);
    let mut own: Vec<Peer> = (0..6).map(|_| take_known(&all, "a").expect("room")).collect();
    own.push(take_known(&all, "a").expect("one of its own is closed"));
    assert!(!is_open(&own[0]) && own[1..].iter().all(is_open));
    let busy: Vec<UnderWay> = own[1..].iter().map(Peer::begin).collect();
    assert_eq!(take_known(&all, "a").err(), Some(TooMany));
    // Another token has fewer.
    let others: Vec<_> = (0..3).map(|_| take_known(&all, "b").expect("room")).collect();
    assert!(others.iter().all(is_open));
    assert_eq!(own[1..].iter().filter(|peer| is_open(peer)).count(), 3);
    let _busy: Vec<UnderWay> = others.iter().map(Peer::begin).collect();
    assert_eq!((take_known(&all, "b").err(), counts(&all).0), (Some(TooMany), 6), "as many as anybody");
    drop(busy);
    assert!(take_known(&all, "c").is_ok());
}

#[tokio::test]
async fn a_stranger_that_says_nothing_is_closed_and_one_with_a_token_is_not() {
    let all = Connections::new(Limits { stranger_within: Duration::ZERO, ..LIMITS });
    let own = take_known(&all, "a").expect("room");
    let silent = take(&all, stranger(1)).expect("room");
    let asking = take(&all, stranger(2)).expect("room");
    let under_way = asking.begin();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(is_open(&own) && !is_open(&silent) && is_open(&asking));
    drop(under_way);
    assert_eq!(counts(&all).2, 1);
}

#[tokio::test]
async fn one_with_many_requests_delays_another_one_by_about_one_of_them() {
    let all = Connections::new(LIMITS);
    let own: Vec<Peer> = (0..5).map(|_| take_known(&all, "a").expect("room")).collect();
    let other = take_known(&all, "b").expect("room");
    let strangers: Vec<Peer> = (0..2).filter_map(|_| take(&all, stranger(1))).collect();
    let another = take(&all, stranger(2)).expect("room");
    for peer in own.iter().chain(&strangers).chain([&other, &another]) {
        // The first request of each waits for nobody.
        peer.take_turn().await;
    }
    let order = Arc::new(Mutex::new(String::new()));
    let ask = |peer: &Peer, letter: char| {
        let (peer, order) = (peer.clone(), order.clone());
        tokio::spawn(async move {
            peer.take_turn().await;
            order.lock().push(letter);
        })
    };
    let mut asked: Vec<_> = own.iter().chain(&own).map(|peer| ask(peer, 'a')).collect();
    asked.extend(strangers.iter().chain(&strangers).map(|peer| ask(peer, 's')));
    asked.extend([ask(&other, 'b'), ask(&another, 't')]);
    for request in asked {
        request.await.expect("it has a turn");
    }
    let order = order.lock().clone();
    let mut first: Vec<char> = order.chars().take(4).collect();
    first.sort_unstable();
    assert_eq!((order.len(), first), (16, vec!['a', 'b', 's', 't']), "the first of each come first: {order}");
}
