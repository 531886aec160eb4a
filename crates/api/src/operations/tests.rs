//! What the rules have to allow for each operation, written down a second time.

use crate::{
    BlockHeader, CheckKind, Demand, Derivation, KeyCheck, Mode, NewKey, Parity, Usage, VersionState, Wrapping,
};

use polyclave_payments::commands::VerifyPin;
use polyclave_payments::{Command, EncryptedPin, KeySource, PinFormat, PinReference};

use super::*;

const ID: [u8; 16] = [7; 16];

fn new(name: &str) -> NewKey {
    NewKey::for_modes(name, "aes-128", &[Mode::Gcm, Mode::Cmac], 1 << 20)
}

fn key(name: &str) -> String {
    name.into()
}

fn rewrap(what: Rewrapped) -> Operation {
    Operation::Rewrap(Rewrap { key: key("k"), old: key("old"), id: None, what })
}

fn to_use(how: Use) -> Operation {
    Operation::Use(UseKey { key: key("k"), id: None, how })
}

fn pay(keys: &[&str]) -> Operation {
    let pin = EncryptedPin { format: PinFormat::Iso0, block: vec![1; 8], key: KeySource::Direct };
    let pan = "1122334455667788".parse().expect("a card");
    let reference = PinReference::Visa { index: 1, value: "1234".parse().expect("digits") };
    let command = Command::VerifyPin(VerifyPin { pin, pan, reference });
    Operation::Pay(Pay { keys: keys.iter().map(|key| (*key).into()).collect(), commands: vec![command] })
}

#[test]
fn an_approver_reads_in_which_mode_a_key_is_used() {
    let message = Message { mode: Mode::Ccm, nonce: None, additional: Vec::new(), bytes: 1 };
    let how = Use::MessageEncrypt { message, tag_bytes: 16, mask: 16 };
    let words = UseKey { key: key("k"), id: None, how }.in_words();
    assert!(words.starts_with("use the key \"k\" once: MessageEncrypt in ccm"), "{words}");
}

/// Every operation, and what the rules have to allow for it. `!` stands before what it amounts to, `=` before
/// what has to be allowed at all times.
fn all() -> Vec<(Operation, &'static str)> {
    let base = || KeyVersion::from("base");
    let how = || Derivation::EcbData { data: vec![1; 16] };
    let envelope = || Envelope { owner: "ann".into(), header: Vec::new(), commitment: [1; 32] };
    let check = KeyCheck { kind: CheckKind::Cmac, value: vec![1; 5] };
    let sealed = SealedImport {
        version: 1,
        cluster: [1; 32],
        new: new("new"),
        check: vec![1; 5],
        not_after: 1,
        nonce: [1; 32],
        parts: Vec::new(),
    };
    let block = BlockHeader::of(&NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 1)).expect("it fits");
    let gcm = |nonce: Option<Vec<u8>>| Use::GcmEncrypt { additional: Vec::new(), nonce };
    let xaes = |nonce: Option<[u8; 24]>| Use::XaesEncrypt { additional: Vec::new(), nonce };
    let whole = |mode, nonce| Message { mode, nonce, additional: Vec::new(), bytes: 1 };
    let encrypted = |mode, nonce: Option<Vec<u8>>| Use::MessageEncrypt {
        message: whole(mode, nonce),
        tag_bytes: 16,
        mask: 16,
    };
    let decrypted = |mode| Use::MessageDecrypt { message: whole(mode, None), tag: vec![1; 16] };
    let undescribed = Operation::Describe(DescribeKey {
        key: key("k"),
        id: ID,
        revision: 0,
        label: key(""),
        attributes: Vec::new(),
    });
    let configured = Operation::Configure(Configure {
        key: key("k"),
        least_version: 1,
        deletable: true,
        withdraw_wrappable: false,
        withdraw_usage: Vec::new(),
    });
    let copy = |change: &dyn Fn(&mut NewKey)| {
        let mut copy = new("copy");
        change(&mut copy);
        Operation::Copy(CopyKey { key: key("k"), id: ID, new: copy })
    };
    let gcm_message = Rewrapped::Gcm {
        nonce: vec![1; 12],
        additional: Vec::new(),
        ciphertext: Vec::new(),
        tag: vec![1; 16],
    };
    let sealed_file =
        Rewrapped::Sealed { file: [1; 32], additional: None, ciphertext: Vec::new(), tag: [1; 16] };
    let wrapped_key = Rewrapped::Key { wrapped: vec![1; 24], how: Wrapping::Kw };
    vec![
        (Operation::Status, ""),
        (Operation::List(List { after: key(""), version: 0 }), ""),
        (Operation::Show(Show { key: key("k") }), ""),
        (Operation::Generate(Generate { new: new("new") }), "generate new"),
        (Operation::Import(Import { new: new("new") }), "import new"),
        (Operation::Delete(Delete { key: key("k"), version: None }), "delete k"),
        (to_use(Use::Seal { additional: None }), "encrypt k gcm"),
        (to_use(Use::Open { file: [1; 32], additional: None }), "decrypt k gcm"),
        (to_use(gcm(None)), "encrypt k gcm"),
        (to_use(gcm(Some(vec![1; 12]))), "encrypt k gcm, !decrypt k gcm"),
        (to_use(Use::GcmDecrypt { nonce: vec![1; 12], additional: Vec::new() }), "decrypt k gcm"),
        (to_use(Use::CtrEncrypt), "encrypt k ctr"),
        (to_use(Use::CtrDecrypt { counter: vec![1; 16] }), "decrypt k ctr"),
        (to_use(Use::CbcEncrypt { mask: 16, initial: None }), "encrypt k cbc"),
        (to_use(Use::CbcEncrypt { mask: 16, initial: Some(vec![1; 16]) }), "encrypt k cbc"),
        (to_use(Use::CbcDecrypt), "decrypt k cbc"),
        (to_use(Use::EcbEncrypt { mask: 16, tweak: Vec::new() }), "encrypt k ecb"),
        (to_use(Use::EcbDecrypt { tweak: Vec::new() }), "decrypt k ecb"),
        (to_use(Use::Cmac { mask: 16 }), "mac k cmac"),
        (to_use(Use::EnvelopeWrite(envelope())), "encrypt k envelope of ann"),
        (to_use(Use::EnvelopeOpen { envelope: envelope(), file: [1; 32] }), "decrypt k envelope of ann"),
        (to_use(Use::Seal { additional: Some([1; 32]) }), "encrypt k gcm"),
        (to_use(Use::Open { file: [1; 32], additional: Some([1; 32]) }), "decrypt k gcm"),
        (to_use(encrypted(Mode::Ccm, None)), "encrypt k ccm"),
        (to_use(encrypted(Mode::Ccm, Some(vec![1; 12]))), "encrypt k ccm, !decrypt k ccm"),
        (to_use(decrypted(Mode::Ccm)), "decrypt k ccm"),
        (to_use(encrypted(Mode::GcmSiv, Some(vec![1; 12]))), "encrypt k gcm-siv, !decrypt k gcm-siv"),
        (to_use(encrypted(Mode::GcmSiv, None)), "encrypt k gcm-siv"),
        (to_use(encrypted(Mode::Siv, None)), "encrypt k siv"),
        (to_use(xaes(None)), "encrypt k xaes"),
        (to_use(xaes(Some([1; 24]))), "encrypt k xaes, !decrypt k xaes"),
        (to_use(Use::XaesDecrypt { nonce: [1; 24], additional: Vec::new() }), "decrypt k xaes"),
        (to_use(decrypted(Mode::Siv)), "decrypt k siv"),
        (
            to_use(Use::Tokenize(Tokenize {
                radix: 10,
                length: 9,
                tweaks: Vec::new(),
                values: 1,
                inverse: true,
            })),
            "tokenize k ff1",
        ),
        (
            Operation::Derive(Derive { base: base(), new: new("new"), how: how() }),
            "derive base, derive new, !generate new",
        ),
        (
            Operation::Wrap(Wrap {
                wrapping: KeyVersion::from("kek"),
                key: KeyVersion::from("k"),
                how: Wrapping::Kw,
            }),
            "wrap kek, wrap k",
        ),
        (
            Operation::WrapBlock(WrapBlock {
                wrapping: KeyVersion::from("kek"),
                key: KeyVersion::from("k"),
                header: block,
            }),
            "wrap kek, wrap k",
        ),
        (
            Operation::Unwrap(Unwrap {
                unwrapping: KeyVersion::from("kek"),
                wrapped: vec![1; 24],
                how: Wrapping::Kw,
                new: new("new"),
            }),
            "unwrap kek, unwrap new, !import new",
        ),
        (
            Operation::UnwrapBlock(UnwrapBlock {
                unwrapping: KeyVersion::from("kek"),
                block: vec![1; 80],
                new: new("new"),
            }),
            "unwrap kek, unwrap new, !import new",
        ),
        (Operation::Random(Random { bytes: 1 }), "random "),
        (Operation::Kdf(Kdf { key: base(), how: how(), bytes: 1 }), "kdf base"),
        (
            Operation::ImportComponent(ImportComponent { new: new("new"), number: 1, of: 2, expected: None }),
            "import new",
        ),
        (
            Operation::Combine(Combine { key: key("k"), expected: Some(check), parity: Parity::Ignore }),
            "import k",
        ),
        (Operation::Rotate(Rotate { key: key("k") }), "generate k"),
        (
            Operation::Retire(Retire { key: key("k"), version: 1, state: VersionState::Compromised }),
            "configure k",
        ),
        (configured, "configure k"),
        (rewrap(gcm_message), "rewrap k, rewrap old, !decrypt old gcm, !encrypt k gcm"),
        (rewrap(sealed_file), "rewrap k, rewrap old, !decrypt old gcm, !encrypt k gcm"),
        (rewrap(wrapped_key), "rewrap k, rewrap old, !unwrap old, !wrap k"),
        (
            copy(&|_| ()),
            "generate copy, =encrypt k gcm, =encrypt k cmac, =decrypt k gcm, =decrypt k cmac, =mac k gcm, =mac k cmac",
        ),
        (
            copy(&|copy| {
                (copy.modes, copy.usage) = (vec![Mode::Gcm, Mode::Cbc], vec![Usage::Encrypt]);
                copy.caller_nonces = true;
            }),
            "generate copy, =encrypt k gcm, =encrypt k cbc, =decrypt k gcm",
        ),
        (
            copy(&|copy| {
                (copy.modes, copy.usage) = (Vec::new(), vec![Usage::Unwrap, Usage::Derive]);
                copy.wrappable = true;
            }),
            "generate copy, =wrap k, =unwrap k, =derive k",
        ),
        (undescribed, "configure k"),
        (Operation::ImportSealed(Box::new(sealed)), "import new"),
        (Operation::Report, "observe "),
        (Operation::Check(Check { key: KeyVersion::from("k"), kind: CheckKind::Zeros }), "list k"),
        (pay(&["pins", "pvv"]), "pay pins, pay pvv"),
        (pay(&["pins", "pins"]), "pay pins"),
    ]
}

/// The number of an operation. A new operation does not compile until it stands here, and fails the test
/// until it stands in [`all`].
fn number(operation: &Operation) -> usize {
    match operation {
        Operation::Status => 0,
        Operation::List(_) => 1,
        Operation::Show(_) => 2,
        Operation::Generate(_) => 3,
        Operation::Import(_) => 4,
        Operation::Delete(_) => 5,
        Operation::Use(_) => 6,
        Operation::Derive(_) => 7,
        Operation::Wrap(_) => 8,
        Operation::Unwrap(_) => 9,
        Operation::Random(_) => 10,
        Operation::Kdf(_) => 11,
        Operation::WrapBlock(_) => 12,
        Operation::UnwrapBlock(_) => 13,
        Operation::ImportComponent(_) => 14,
        Operation::Combine(_) => 15,
        Operation::Rotate(_) => 16,
        Operation::Retire(_) => 17,
        Operation::Configure(_) => 18,
        Operation::Rewrap(_) => 19,
        Operation::Copy(_) => 20,
        Operation::Describe(_) => 21,
        Operation::ImportSealed(_) => 22,
        Operation::Report => 23,
        Operation::Check(_) => 24,
        Operation::Pay(_) => 25,
    }
}

fn message_of(asked: &Permission) -> String {
    let demand = match asked.demand {
        Demand::Now => "",
        Demand::Always => "=",
        Demand::Bound => "!",
    };
    let mode = asked.mode.map_or(String::new(), |mode| format!(" {mode}"));
    let owner = asked.owner.as_ref().map_or(String::new(), |owner| format!(" of {owner}"));
    format!("{demand}{} {}{mode}{owner}", asked.right, asked.key)
}

#[test]
fn every_operation_asks_for_its_own_right_and_all_that_it_amounts_to() {
    let mut seen = [false; 26];
    for (operation, expected) in all() {
        let asked: Vec<String> = operation.describe().permissions().iter().map(message_of).collect();
        assert_eq!(asked.join(", "), expected, "{operation:?}");
        seen[number(&operation)] = true;
    }
    assert_eq!(seen, [true; 26]);
}

#[test]
fn an_operation_on_one_key_asks_for_it_once() {
    let what = Rewrapped::Key { wrapped: vec![1; 24], how: Wrapping::Kw };
    let same = Operation::Rewrap(Rewrap { key: key("k"), old: key("k"), id: Some(ID), what });
    let asked: Vec<String> = same.describe().permissions().iter().map(message_of).collect();
    assert_eq!(asked, ["rewrap k", "!unwrap k", "!wrap k"]);
}
