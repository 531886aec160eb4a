//! Clients that break the order of steps, lie about lengths, send garbage, hang up or fall silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::{
    self as api, CHUNK, End, MAX_MESSAGE, Message, Mode, Operation, Reply, Request, Step, Use, encode,
    operations,
};

use crate::common::fake::{FakeNode, Say};
use crate::common::messages::{gcm, seal};
use crate::common::raw::{Raw, request, use_of};
use crate::common::{TestCluster, data, key};
use polyclave_client::{Client, Error};

/// The longest that nodes wait for a client or each other here, and some time for a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What a client does before it only listens.
type Act = fn(&mut Raw);

fn using(how: Use) -> Request {
    request(use_of("k", how), None)
}

fn sealing() -> Request {
    using(Use::Seal { additional: None })
}

fn assert_serving(cluster: &TestCluster, after: &str) {
    gcm(&cluster.client(), "k", b"", b"still there").unwrap_or_else(|e| panic!("after {after}: {e}"));
}

/// All nodes accept a request and refuse the last of some steps; how many gave data before.
fn last_step_is_refused(
    cluster: &TestCluster,
    what: &str,
    request: Request,
    steps: &[Step],
    answered: usize,
) {
    let mut raw = Raw::call(cluster);
    raw.tell_all(&request);
    steps.iter().for_each(|step| raw.tell_all(step));
    for ending in raw.endings() {
        assert!(ending.message().starts_with("Malformed"), "{what}: {ending:?}");
        // On a busy machine nodes also say that they are working.
        let answers = ending.replies.iter().filter(|reply| !matches!(reply, Reply::Working { .. }));
        assert_eq!(answers.count(), 1 + answered, "{what}: {ending:?}");
    }
    drop(raw);
    assert_serving(cluster, what);
}

#[test]
fn a_client_of_another_version_is_told_so_and_that_others_may_serve_it() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    let mut raw = Raw::call(&cluster);
    // Whatever follows the version is of that version, too.
    raw.tell(0, &(api::VERSION + 1, "what a later version asks"));
    let message = raw.ending(0).message();
    let version = api::VERSION;
    assert!(message.starts_with("Unavailable"), "{message}");
    assert!(
        message.contains(&format!(
            "speaks version {} of the wire of clients, and this node version {version}: upgrade this node",
            version + 1
        )),
        "{message}"
    );
}

#[test]
fn steps_out_of_order_are_refused_by_all() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    let keystream = |bytes| Step::Keystream { bytes };
    let absorb = |len| Step::Absorb { ciphertext: data(len) };
    let seal = |len, last| Step::Seal { ciphertext: data(len), last };
    let masked = |len, next, end| Step::Masked { data: data(len), next, end };
    let encrypt = || using(Use::GcmEncrypt { additional: vec![], nonce: None });
    let decrypt = || using(Use::GcmDecrypt { nonce: vec![0; 12], additional: vec![] });
    let refused = |what: &str, request, steps: &[Step]| {
        last_step_is_refused(&cluster, what, request, steps, steps.len() - 1);
    };
    refused("keystream before the check", decrypt(), &[absorb(16), keystream(16)]);
    refused("the tag of a decryption", decrypt(), &[absorb(16), Step::Tag]);
    refused("more after a part of a block", decrypt(), &[absorb(5), absorb(16)]);
    refused("more hashed than encrypted", encrypt(), &[keystream(16), absorb(32)]);
    refused("the tag before the ciphertext", encrypt(), &[keystream(16), Step::Tag]);
    refused("keystream after the tag", encrypt(), &[keystream(16), absorb(16), Step::Tag, keystream(16)]);
    refused("a second tag", encrypt(), &[Step::Tag, Step::Tag]);
    refused("a seal without keystream", sealing(), &[seal(16, true)]);
    refused("a seal of another length", sealing(), &[keystream(16), seal(15, true)]);
    refused("a short chunk in the middle", sealing(), &[keystream(16), keystream(16)]);
    refused("a chunk after the last", sealing(), &[keystream(16), seal(16, true), keystream(16)]);
    refused("five chunks open", sealing(), &vec![keystream(CHUNK as u32); 5]);
    refused("a step of another mode", using(Use::CtrEncrypt), &[masked(16, 0, End::No)]);
    refused("chi of no import", using(Use::CtrEncrypt), &[Step::Chi { chi: [0; 16] }]);
    refused("keystream after its end", using(Use::CtrEncrypt), &[keystream(5), keystream(16)]);
    refused(
        "an end in cbc",
        using(Use::CbcEncrypt { mask: 16, initial: None }),
        &[masked(16, 0, End::Whole)],
    );
    refused(
        "more after the end",
        using(Use::Cmac { mask: 16 }),
        &[masked(16, 0, End::Whole), masked(16, 0, End::No)],
    );
    refused("a mask after the end", using(Use::Cmac { mask: 16 }), &[masked(16, 16, End::Whole)]);
    refused(
        "a mask used twice",
        using(Use::EcbEncrypt { mask: 16, tweak: Vec::new() }),
        &[masked(16, 0, End::No), masked(16, 0, End::No)],
    );
    let import =
        || request(Operation::Import(operations::Import { new: key("n", "aes-128", &[Mode::Ctr]) }), None);
    refused("a key before its mask was checked", import(), &[masked(16, 0, End::No)]);
    refused("two checks of a mask", import(), &[Step::Chi { chi: [1; 16] }, Step::Chi { chi: [2; 16] }]);
    refused("a key that is too long", import(), &[Step::Chi { chi: [1; 16] }, masked(32, 0, End::No)]);
}

#[test]
fn steps_of_messages_that_are_taken_whole_are_refused_by_all_if_out_of_order() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    let modes = [Mode::Siv, Mode::Ccm, Mode::GcmSiv];
    for mode in modes {
        cluster.client().generate(key(&format!("k-{mode}"), "aes-128", &[mode])).expect("a key");
    }
    let keystream = |bytes| Step::Keystream { bytes };
    let absorb = |len| Step::Absorb { ciphertext: data(len) };
    let masked = |len, next| Step::Masked { data: data(len), next, end: End::No };
    let check = |len| Step::Check { tag: vec![1; len] };
    let message = |mode, bytes| Message { mode, nonce: None, additional: vec![], bytes };
    let encrypt =
        |mode, bytes, mask| using(Use::MessageEncrypt { message: message(mode, bytes), tag_bytes: 16, mask });
    let decrypt = |mode: Mode, bytes| {
        let nonce = mode.nonce_bytes().map(|_| vec![0; 12]);
        let message = Message { nonce, ..message(mode, bytes) };
        using(Use::MessageDecrypt { message, tag: vec![1; 16] })
    };
    let refused = |what: &str, request, steps: &[Step]| {
        last_step_is_refused(&cluster, what, request, steps, steps.len() - 1);
    };
    for mode in modes {
        let encrypt = |bytes, mask| encrypt(mode, bytes, mask);
        refused("keystream before the message", encrypt(16, 16), &[keystream(16)]);
        refused("more than the message", encrypt(16, 16), &[masked(16, 0), masked(16, 0)]);
        refused("less than the message", encrypt(20, 16), &[masked(16, 0)]);
        refused("more under the mask than the message", encrypt(16, 32), &[masked(32, 0)]);
        refused("more than a block for nothing", encrypt(0, 32), &[masked(32, 0)]);
        refused("a mask for after the end", encrypt(16, 16), &[masked(16, 16)]);
        refused("an end", encrypt(16, 16), &[Step::Masked { data: data(16), next: 0, end: End::Whole }]);
        refused("more keystream than the message", encrypt(16, 16), &[masked(16, 0), keystream(17)]);
        refused("the tag", encrypt(16, 16), &[masked(16, 0), Step::Tag]);
        let decrypt = |bytes| decrypt(mode, bytes);
        refused("keystream before the check", decrypt(20), &[absorb(20), keystream(20)]);
        refused("the check before the end", decrypt(20), &[absorb(16), check(16)]);
        refused("a short tag", decrypt(16), &[absorb(16), check(15)]);
        refused("another tag", decrypt(16), &[absorb(16), Step::Check { tag: vec![2; 16] }]);
        refused("more than the message", decrypt(16), &[absorb(17)]);
        if mode.most_whole() > Some(4096) {
            refused("a long piece", decrypt(4096), &[absorb(2064)]);
        }
        refused("a part of a block in the middle", decrypt(40), &[absorb(5)]);
        refused("the tag", decrypt(16), &[absorb(16), Step::Tag]);
    }
    let of_gcm = Message { mode: Mode::Gcm, ..message(Mode::Ccm, 16) };
    let without_nonce = Use::MessageDecrypt { message: message(Mode::Ccm, 16), tag: vec![1; 16] };
    for (what, request) in [
        ("a message that is too long", encrypt(Mode::Siv, 65_537, 16)),
        ("a message that is too long", decrypt(Mode::Siv, u32::MAX)),
        ("a message that is too long", encrypt(Mode::Ccm, 65_537, 16)),
        ("a message that is too long", decrypt(Mode::Ccm, u32::MAX)),
        ("a message that is too long", encrypt(Mode::GcmSiv, 1025, 16)),
        ("no mask", encrypt(Mode::Ccm, 16, 0)),
        ("no mask", encrypt(Mode::Siv, 0, 0)),
        ("no nonce", using(without_nonce)),
        ("a mode of streams", using(Use::MessageEncrypt { message: of_gcm, tag_bytes: 16, mask: 16 })),
    ] {
        let mut raw = Raw::call(&cluster);
        raw.tell_all(&request);
        for ending in raw.endings() {
            assert!(ending.message().starts_with("Malformed"), "{what}: {ending:?}");
        }
    }
    assert_serving(&cluster, "wrong steps of siv and ccm");
}

/// Ten digits are two numbers of three bytes.
#[test]
fn rounds_of_ff1_out_of_order_are_refused_by_all() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    cluster.client().generate(key("k-ff1", "aes-128", &[Mode::Ff1])).expect("a key");
    let tokenize = |radix, length, tweaks: &[Vec<u8>], values, inverse| {
        using(Use::Tokenize(operations::Tokenize { radix, length, tweaks: tweaks.to_vec(), values, inverse }))
    };
    let two = |inverse| tokenize(10, 10, &[vec![1; 8]], 2, inverse);
    let masked = |len, next| Step::Masked { data: data(len), next, end: End::No };
    let refused = |what: &str, request, steps: &[Step]| {
        last_step_is_refused(&cluster, what, request, steps, steps.len() - 1);
    };
    let rounds: Vec<Step> = (0..10).map(|round| masked(6, if round < 9 { 6 } else { 0 })).collect();
    for inverse in [false, true] {
        refused("an eleventh round", two(inverse), &[&rounds[..], &[masked(6, 0)]].concat());
        refused("a mask for an eleventh round", two(inverse), &[&rounds[..9], &[masked(6, 6)]].concat());
        refused("no mask for the next round", two(inverse), &[masked(6, 0)]);
        refused("a longer mask for the next round", two(inverse), &[masked(6, 9)]);
        refused("the number of one value", two(inverse), &[masked(3, 6)]);
        refused("the numbers of three values", two(inverse), &[masked(9, 6)]);
        refused("a whole block of each value", two(inverse), &[masked(32, 6)]);
        refused("nothing", two(inverse), &[masked(0, 6)]);
        refused("an end", two(inverse), &[Step::Masked { data: data(6), next: 6, end: End::Whole }]);
        refused("blocks", two(inverse), &[rounds[0].clone(), Step::Blocks { ciphertext: data(16) }]);
        refused("keystream", two(inverse), &[rounds[0].clone(), Step::Keystream { bytes: 16 }]);
        refused("a tag", two(inverse), &[Step::Tag]);
    }
    let (none, long) = (vec![Vec::new()], vec![vec![1; 65]]);
    for (what, request) in [
        ("a radix of 37", tokenize(37, 10, &none, 1, false)),
        ("a radix of 1", tokenize(1, 100, &none, 1, false)),
        ("five digits", tokenize(10, 5, &none, 1, false)),
        ("57 digits", tokenize(10, 57, &none, 1, false)),
        ("very many digits", tokenize(10, u32::MAX, &none, 1, false)),
        ("a long tweak", tokenize(10, 10, &long, 1, false)),
        ("no tweak", tokenize(10, 10, &[], 1, false)),
        ("no value", tokenize(10, 10, &none, 0, false)),
        ("too many values", tokenize(10, 10, &none, 4097, false)),
        ("more values than the mask can be long", tokenize(10, 10, &none, u32::MAX, false)),
        ("tweaks for others", tokenize(10, 10, &[vec![1], vec![2]], 3, false)),
        ("tweaks of several lengths", tokenize(10, 10, &[vec![1], vec![2, 2]], 2, true)),
    ] {
        let mut raw = Raw::call(&cluster);
        raw.tell_all(&request);
        for ending in raw.endings() {
            assert!(
                ending.message().starts_with("Malformed") && ending.replies.is_empty(),
                "{what}: {ending:?}"
            );
        }
    }
    assert_serving(&cluster, "wrong rounds");
}

#[test]
fn lengths_that_are_not_allowed_are_refused_by_all() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    let masked = |len, next| Step::Masked { data: data(len), next, end: End::No };
    let mut at_once = Vec::new();
    for mask in [0, 1, 17, 2064, CHUNK as u32, u32::MAX] {
        at_once.push(("a first mask", using(Use::CbcEncrypt { mask, initial: None })));
        at_once.push(("a first mask", using(Use::Cmac { mask })));
    }
    for mask in [0, 8, CHUNK as u32 + 16, u32::MAX] {
        at_once.push(("a first mask", using(Use::EcbEncrypt { mask, tweak: Vec::new() })));
    }
    at_once.push((
        "additional data",
        using(Use::GcmEncrypt { additional: vec![0; (32 << 10) + 1], nonce: None }),
    ));
    for bytes in [0, CHUNK as u32 + 1, u32::MAX] {
        at_once
            .push(("a piece", Request { first: Some(Step::Keystream { bytes }), ..using(Use::CtrEncrypt) }));
    }
    for len in [0, 15, 17, CHUNK + 16] {
        let first = Some(Step::Blocks { ciphertext: data(len) });
        at_once.push(("blocks", Request { first, ..using(Use::CbcDecrypt) }));
    }
    for (what, request) in at_once {
        let mut raw = Raw::call(&cluster);
        raw.tell_all(&request);
        for ending in raw.endings() {
            assert!(
                ending.message().starts_with("Malformed") && ending.replies.is_empty(),
                "{what}: {ending:?}"
            );
        }
    }
    assert_serving(&cluster, "wrong lengths");
    for (what, step) in [
        ("less than the mask", masked(16, 0)),
        ("more than the mask", masked(48, 0)),
        ("a next mask that is too long", masked(32, 2064)),
        ("a next mask that is no block", masked(32, 5)),
    ] {
        last_step_is_refused(&cluster, what, using(Use::CbcEncrypt { mask: 32, initial: None }), &[step], 0);
    }
}

#[test]
fn garbage_closes_the_connection_and_nothing_else() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    let length = |len: usize| (len as u32).to_le_bytes().to_vec();
    let garbage: Vec<Vec<u8>> = vec![
        length(0),
        length(MAX_MESSAGE + 1),
        length(u32::MAX as usize),
        [length(40), data(40)].concat(),
        [length(40), vec![0xff; 40]].concat(),
        [encode(&Step::Finish).expect("small"), vec![1, 2, 3, 4]].concat(),
        [length(60), encode(&sealing()).expect("small")].concat(),
    ];
    for (turn, bytes) in garbage.iter().enumerate() {
        // As a request, at one node; then in the middle of one, at one node.
        let mut raw = Raw::call(&cluster);
        let node = turn % 3;
        raw.tell_bytes(node, bytes);
        raw.tell_bytes(node, &vec![0x55; 100_000]);
        assert!(raw.ending(node).replies.is_empty());
        let mut raw = Raw::call(&cluster);
        raw.tell_all(&using(Use::CtrEncrypt));
        raw.replies();
        (0..3).filter(|n| *n != node).for_each(|n| raw.tell(n, &Step::Keystream { bytes: 16 }));
        raw.tell_bytes(node, bytes);
        raw.tell_bytes(node, &vec![0x55; 100_000]);
        for ending in raw.endings() {
            assert!(!ending.gave_data(), "{turn}: {ending:?}");
        }
        assert_serving(&cluster, "garbage");
    }
}

#[test]
fn who_hangs_up_in_the_middle_leaves_nothing_behind() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    for turn in 0..12 {
        let mut raw = Raw::call(&cluster);
        let request = sealing();
        let message = turn % 4;
        (0..message.min(3)).for_each(|node| raw.tell(node, &request));
        if message == 3 {
            raw.replies();
            raw.tell_all(&Step::Keystream { bytes: CHUNK as u32 });
            raw.hang_up(turn % 3);
            if turn % 2 == 0 {
                (0..3).filter(|n| *n != turn % 3).for_each(|n| {
                    raw.reply(n);
                });
            }
        }
        drop(raw);
        assert_serving(&cluster, "a client that hung up");
    }
}

#[test]
fn silence_and_slowness_end_within_the_limits_and_hold_nobody_else_up() {
    let cluster = TestCluster::shared_with_keys(&["k"]);
    let silent: [(&str, Act); 6] = [
        ("only the first node is asked", |raw| raw.tell(0, &using(Use::CtrEncrypt))),
        ("only another node is asked", |raw| raw.tell(1, &using(Use::CtrEncrypt))),
        ("nothing after the request", |raw| raw.tell_all(&using(Use::CtrEncrypt))),
        ("nothing for one node", |raw| {
            raw.tell_all(&using(Use::CtrEncrypt));
            raw.tell(0, &Step::Keystream { bytes: 16 });
            raw.tell(2, &Step::Keystream { bytes: 16 });
        }),
        ("half a step", |raw| {
            raw.tell_all(&using(Use::CtrEncrypt));
            (0..3).for_each(|node| raw.tell_bytes(node, &[100, 0, 0, 0, 1, 2, 3]));
        }),
        ("answers that nobody reads", |raw| {
            raw.tell_all(&using(Use::CtrEncrypt));
            (0..64).for_each(|_| raw.tell_all(&Step::Keystream { bytes: CHUNK as u32 }));
            std::thread::sleep(Duration::from_secs(16));
        }),
    ];
    std::thread::scope(|scope| {
        for (what, act) in silent {
            let cluster = cluster.clone();
            scope.spawn(move || {
                let began = Instant::now();
                let mut raw = Raw::call(&cluster);
                act(&mut raw);
                for node in 0..3 {
                    let was_asked = !what.starts_with("only") || (node == 0) == what.contains("first");
                    if was_asked && !(node == 2 && what.starts_with("only")) {
                        let ending = raw.ending(node);
                        let wanted = matches!(what, "answers that nobody reads");
                        assert!(wanted || !ending.gave_data(), "{what}: {ending:?}");
                    }
                }
                assert!(began.elapsed() < LIMIT, "{what} took {:?}", began.elapsed());
            });
        }
        let client = cluster.client();
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            gcm(&client, "k", b"", b"meanwhile").expect("others are served");
        }
    });
    assert_serving(&cluster, "silence");
    let accepted = |reply: &Reply| matches!(reply, Reply::Accepted { .. });
    let mut raw = Raw::call(&cluster);
    raw.tell_all(&using(Use::CtrEncrypt));
    assert!(raw.replies().iter().all(accepted));
}

/// Whatever a request waits for, its caller can end it.
#[test]
fn a_request_to_nodes_that_say_nothing_ends_when_its_caller_ends_it() {
    let cluster = TestCluster::define(3, 1);
    let asked = Arc::new(AtomicUsize::new(0));
    let silent = |node| {
        let asked = asked.clone();
        FakeNode::start(&cluster, node, move |_| {
            asked.fetch_add(1, Relaxed);
            Say::Nothing
        })
    };
    let _nodes: Vec<FakeNode> = (0..3).map(silent).collect();
    let client = cluster.client();
    let seal = |client: &Client| seal(client, "k", b"a secret").map(drop);
    let show = |client: &Client| client.info("k").map(drop);
    for work in [&seal as &(dyn Fn(&Client) -> polyclave_client::Result<()> + Sync), &show] {
        let (one, before) = (client.for_some_requests(), asked.load(Relaxed));
        let ended = std::thread::scope(|scope| {
            let asking = scope.spawn(|| work(&one));
            cluster.wait_until(|| asked.load(Relaxed) > before);
            one.halt();
            asking.join().expect("no panic")
        });
        assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    }
}
