//! SIV, CCM, GCM-SIV and GCM in its plain format, on the command line.

use crate::common::{Place, noise};

/// RFC 5297, appendix A.1.
const SIV_KEY: &str = "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
const SIV_DATA: &str = "101112131415161718191a1b1c1d1e1f2021222324252627";
const SIV_TEXT: &str = "112233445566778899aabbccddee";
const SIV_MESSAGE: &str = "85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c";

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).expect("hexadecimal")
}

#[test]
fn messages_of_siv_ccm_and_gcm_come_back_and_options_that_do_not_fit_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let _cluster = place.cluster();
    place.write("siv.hex", SIV_KEY.as_bytes());
    std::fs::set_permissions(place.path("siv.hex"), std::fs::Permissions::from_mode(0o600)).expect("set");
    place.run("key import known --modes siv --key-file siv.hex");
    let siv = format!("--key known --mode siv --aad {SIV_DATA} -");
    assert_eq!(place.pipe(&format!("encrypt {siv}"), &bytes(SIV_TEXT)), bytes(SIV_MESSAGE));
    assert_eq!(place.pipe(&format!("decrypt {siv}"), &bytes(SIV_MESSAGE)), bytes(SIV_TEXT));
    place.write("m.siv", &bytes(SIV_MESSAGE));
    let reason = place.fails("decrypt --key known --mode siv --aad 00 m.siv out");
    assert!(reason.contains("does not authenticate"), "{reason}");
    assert!(!place.path("out").exists());
    let reason = place.fails("key import short --modes siv --cipher aes-256 --key-file siv.hex");
    assert!(reason.contains("has 128 hexadecimal digits"), "{reason}");

    place.write("long", &noise((64 << 10) + 1));
    place.run("key generate telegrams --modes ccm --caller-nonces");
    place.run("key generate tickets --modes gcm-siv --caller-nonces");
    for (key, mode) in [("known", "siv"), ("telegrams", "ccm"), ("tickets", "gcm-siv")] {
        let most = if mode == "gcm-siv" { 1 << 10 } else { 64 << 10 };
        let reason = place.fails(&format!("encrypt --key {key} --mode {mode} long out"));
        assert!(reason.contains(&format!("{mode} takes messages of at most {most} bytes")), "{reason}");
        assert!(!place.path("out").exists());
    }
    let text = noise(1000);
    let message = place.pipe("encrypt --key telegrams --mode ccm --aad 0102 --tag-bytes 8 -", &text);
    assert_eq!(message.len(), 12 + 1000 + 8);
    assert_eq!(place.pipe("decrypt --key telegrams --mode ccm --aad 0102 --tag-bytes 8 -", &message), text);
    let nonce = "00112233445566";
    let message = place.pipe(&format!("encrypt --key telegrams --mode ccm --nonce {nonce} -"), &text);
    assert_eq!(message[..7], bytes(nonce));
    assert_eq!(place.pipe("decrypt --key telegrams --mode ccm --nonce-bytes 7 -", &message), text);

    let message =
        place.pipe(&format!("encrypt --key tickets --mode gcm-siv --nonce {nonce}8899aabbcc -"), &text);
    assert_eq!((&message[..7], message.len()), (&bytes(nonce)[..], 12 + 1000 + 16));
    assert_eq!(place.pipe("decrypt --key tickets -", &message), text);

    place.run("key generate k");
    let message = place.pipe("encrypt --key k --raw --tag-bytes 12 -", &text);
    assert_eq!(message.len(), 12 + 1000 + 12);
    assert_eq!(place.pipe("decrypt --key k --raw --tag-bytes 12 -", &message), text);
    let reason = place.fails("encrypt --key k --raw --nonce 00112233445566778899aabb siv.hex out");
    assert!(reason.contains("takes no nonces or initial blocks of its clients"), "{reason}");
    place.run("key generate own --caller-nonces");
    let message = place.pipe("encrypt --key own --raw --nonce 00112233445566778899aabbccddeeff -", &text);
    assert_eq!(place.pipe("decrypt --key own --raw --nonce-bytes 16 -", &message), text);

    for (command, why) in [
        ("encrypt --key k --aad 00 --aad 01 --raw siv.hex out", "gcm takes one --aad"),
        ("encrypt --key known --mode siv --tag-bytes 12 siv.hex out", "--tag-bytes is for gcm with --raw"),
        ("encrypt --key known --mode siv --nonce 00 siv.hex out", "--nonce is for gcm with --raw"),
        ("decrypt --key k --nonce-bytes 16 siv.hex out", "--nonce-bytes is for gcm with --raw"),
        ("key generate both --modes gcm,siv", "two keys, for that mode alone"),
        ("key generate both --modes cbc,ccm", "cbc undoes ccm"),
    ] {
        let reason = place.fails(command);
        assert!(reason.contains(why), "{command}: {reason}");
    }
}
