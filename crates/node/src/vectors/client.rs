//! The client of the vectors: what it asks, what it deals, and whether it got what it asked for.

use polyclave_api::operations::{Generate, UseKey};
use polyclave_api::{self as api, End, NewKey, Operation, Request, Step, Use};
use polyclave_cipher::{AnyMap, Cells, Direction, catalog, cleartext, compile};
use polyclave_field::Gf128;
use polyclave_protocol::dealt::{DealtMask, HeldSeeds};
use polyclave_protocol::{Party, PartySet};

use super::CIPHER;
use crate::Result;

/// Stands for the client's certificate.
const CERTIFICATE: &[u8] = b"the certificate of the client";
const BLOCK: &[u8; 16] = b"sixteen bytes in";
const MESSAGE: &[u8] = b"a message of GCM that has more than two blocks";
const ADDITIONAL: &[u8] = b"what is not encrypted";
const KEY: &str = "first";

/// It asks all nodes, and has the masks of its two requests, if it can deal any.
pub(super) struct Client {
    serving: PartySet,
    dealt: [DealtMask; 2],
}

impl Client {
    pub(super) fn new(components: &[PartySet], nodes: usize) -> Client {
        let dealt = [(); 2].map(|()| DealtMask::draw(components).expect("it has a seed"));
        Client { serving: PartySet::all(nodes), dealt }
    }

    /// What it asks with, for the file.
    pub(super) fn shown() -> [(&'static str, Vec<u8>); 4] {
        let shown = [
            ("certificate", CERTIFICATE),
            ("block", BLOCK),
            ("message", MESSAGE),
            ("additional", ADDITIONAL),
        ];
        shown.map(|(name, value)| (name, value.to_vec()))
    }

    /// The encodings of its requests, for the file.
    pub(super) fn requests(&self, is_dealt: bool) -> Vec<(&'static str, Vec<u8>)> {
        let requests =
            [("key", self.generate()), ("block", self.block(is_dealt)), ("message", self.message(is_dealt))];
        requests.map(|(name, request)| (name, encoded(&request))).into()
    }

    pub(super) fn new_key(&self) -> NewKey {
        let modes = [api::Mode::Gcm, api::Mode::Ecb];
        NewKey { wrappable: true, ..NewKey::for_modes(KEY, CIPHER, &modes, 1 << 20) }
    }

    pub(super) fn generate(&self) -> Request {
        self.request(1, Operation::Generate(Generate { new: self.new_key() }), None, None)
    }

    pub(super) fn block(&self, is_dealt: bool) -> Request {
        let dealt = is_dealt.then(|| &self.dealt[0]);
        let first = dealt.map(|dealt| self.masked_block(&dealt.mask(BLOCK.len())));
        let how = Use::EcbEncrypt { mask: BLOCK.len() as u32, tweak: Vec::new() };
        self.request(2, use_key(how), first, dealt)
    }

    pub(super) fn masked_block(&self, mask: &[u8]) -> Step {
        Step::Masked { data: sum(BLOCK, mask), next: 0, end: End::No }
    }

    pub(super) fn message(&self, is_dealt: bool) -> Request {
        let dealt = is_dealt.then(|| &self.dealt[1]);
        let first = match dealt {
            Some(dealt) => Step::Message { masked: sum(MESSAGE, &dealt.mask(MESSAGE.len())) },
            None => Step::Keystream { bytes: MESSAGE.len() as u32 },
        };
        let how = Use::GcmEncrypt { additional: ADDITIONAL.to_vec(), nonce: None };
        self.request(3, use_key(how), Some(first), dealt)
    }

    pub(super) fn seal(&self, keystream: &[u8]) -> Step {
        Step::Seal { ciphertext: sum(MESSAGE, keystream), last: true }
    }

    /// What it sends to one node behind a request.
    pub(super) fn seeds_for(
        &self,
        request: &Request,
        node: Party,
        components: &[PartySet],
    ) -> Result<Option<HeldSeeds>> {
        let dealt =
            self.dealt.iter().find(|dealt| !request.dealt.is_empty() && dealt.commitments() == request.dealt);
        let held =
            |dealt: &DealtMask| HeldSeeds::checked(components, node, &request.dealt, &dealt.seeds_of(node));
        dealt.map(held).transpose()
    }

    fn request(
        &self,
        id: u8,
        operation: Operation,
        first: Option<Step>,
        dealt: Option<&DealtMask>,
    ) -> Request {
        Request {
            version: api::VERSION,
            id: [id; 16],
            serving: self.serving,
            operation,
            first,
            dealt: dealt.map(DealtMask::commitments).unwrap_or_default(),
            approval: None,
            on_behalf_of: String::new(),
            trace: None,
        }
    }

    /// As `requests/plan.rs` makes it.
    pub(super) fn ticket(&self, request: &Request) -> [u8; 32] {
        let mut ticket = blake3::Hasher::new_derive_key("polyclave 2026 ticket of a request");
        ticket.update(&request.id).update(CERTIFICATE).finalize().into()
    }

    /// As `requests/plan.rs` makes it.
    pub(super) fn digest(&self, request: &Request) -> [u8; 32] {
        let mut digest = blake3::Hasher::new_derive_key("polyclave 2026 request of a client");
        digest
            .update(&(CERTIFICATE.len() as u64).to_le_bytes())
            .update(CERTIFICATE)
            .update(&encoded(request));
        digest.finalize().into()
    }
}

/// Without the length in front.
fn encoded(request: &Request) -> Vec<u8> {
    api::encode(request).expect("it is small").split_off(4)
}

fn use_key(how: Use) -> Operation {
    Operation::Use(UseKey { key: KEY.into(), id: None, how })
}

fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Whether the ciphertexts and the tag are those of the key.
pub(super) fn check(found: &[(&str, Vec<u8>)]) {
    let found = |name: &str| &found.iter().find(|(found, _)| *found == name).expect("it was found").1[..];
    let encrypted = |block: &[u8]| aes(found("key"), block);
    assert_eq!(encrypted(BLOCK), found("ciphertext of the block"));
    let counter = |number: u32| encrypted(&[found("nonce"), &number.to_be_bytes()].concat());
    let keystream: Vec<u8> = (2..5).flat_map(counter).collect();
    let ciphertext = sum(MESSAGE, &keystream);
    assert_eq!(ciphertext, found("ciphertext of the message"));
    let padded = |bytes: &[u8]| {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(16), 0);
        padded
    };
    let lengths = [ADDITIONAL, &ciphertext].map(|part| (8 * part.len() as u64).to_be_bytes());
    let hashed = [padded(ADDITIONAL), padded(&ciphertext), lengths.concat()].concat();
    let element = |bytes: &[u8]| Gf128::from_bytes(bytes.try_into().expect("a block"));
    let h = element(&encrypted(&[0; 16]));
    let hash = hashed.chunks(16).fold(element(&[0; 16]), |hash, block| (hash + element(block)) * h);
    assert_eq!(sum(&hash.to_bytes(), &counter(1)), found("tag"));
}

/// One block of AES, in the clear.
fn aes(key: &[u8], block: &[u8]) -> Vec<u8> {
    let cipher = catalog::find(CIPHER).expect("the catalog has it");
    let circuit = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    let cells = |bytes: &[u8]| Cells::from_blocks(16, 8, bytes).expect("a block");
    let outputs = cleartext::run(&compile(&circuit, &AnyMap), 1, &[cells(block), cells(key)]);
    outputs.expect("the inputs fit")[0].to_blocks()
}
