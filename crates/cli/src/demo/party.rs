//! One party's part of the demo.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use polyclave_cipher::{Cells, Cipher, Direction, catalog, compile_with_views};
use polyclave_protocol::Party;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, Protocol, Scheme, SharedValue};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{Session, Terms, hello, random_bytes};
use polyclave_transport::{Shaped, TlsNet};
use zeroize::Zeroizing;

use super::{DemoJob, DemoReport, KNOWN_KEY, KNOWN_PLAINTEXT, SAMPLE_BYTES};
use crate::job::{Event, tell};
use crate::party::{Connected, announce, meet, peak_memory_bytes};
use crate::workload::{Workload, key_cells, sum_of_keys};

/// The party that has the file, and the only one to learn the keystream.
const ASKER: Party = Party(0);
/// The party whose share of the key is shown.
const SHOWN: Party = Party(1);
const BLOCK: usize = 16;

type Network = Metered<Shaped<TlsNet>>;

/// A party in the session, with the circuits of the demo.
struct Member<P: Protocol> {
    protocol: P,
    cipher: Cipher,
    workload: Workload,
    net: Network,
}

/// Runs one party.
pub fn party<S: Scheme>(scheme: &S, job: &DemoJob, connected: Connected) -> Result<DemoReport> {
    let Connected { mut net, payload, wire } = connected;
    let cipher = catalog::find("aes-128").context("the catalog lacks aes-128")?;
    let began = Instant::now();
    let circuits = [cipher.key_schedule.digest(), cipher.encrypt.digest()].concat();
    let terms = scheme.terms(Terms::new(net.parties())).with("job", b"demo").with("circuits", &circuits);
    let mut session = hello(&terms, &mut net)?;
    let setup = scheme.set_up(&mut net)?;
    let protocol = scheme.join(&setup, session.stream(), net.members())?;
    let workload = Workload::new(&cipher, Direction::Encrypt, false, &protocol)?;
    let mut member = Member { protocol, cipher, workload, net };
    let set_up_ms = milliseconds(began.elapsed());

    let began = Instant::now();
    let (round_keys, own_key_share) = member.generate_key()?;
    let key_ms = milliseconds(began.elapsed());
    let known_answer = member.known_answer()?;

    let mut source = if member.net.me() == ASKER { Some(Source::open(job.file.as_deref())?) } else { None };
    meet(&mut member.net)?;
    let (payload_before, wire_before) = (payload.snapshot().payload_sent, wire.sent());
    let passes = member.both_ways(&round_keys, &session, source.as_mut())?;
    Ok(DemoReport {
        adversary: scheme.adversary(),
        verified: <S::Protocol as Protocol>::Released::VERIFIED,
        set_up_ms,
        key_ms,
        own_key_share: (member.net.me() == SHOWN).then(|| hex::encode(own_key_share)),
        known_answer,
        bytes: passes.bytes,
        encrypt_seconds: passes.encrypting.as_secs_f64(),
        decrypt_seconds: passes.decrypting.as_secs_f64(),
        first_blocks: passes.first_blocks,
        came_back: source.map(|_| passes.came_back),
        payload_sent: payload.snapshot().payload_sent - payload_before,
        wire_sent: wire.sent() - wire_before,
        peak_memory_bytes: peak_memory_bytes(),
    })
}

/// What encrypting and decrypting everything showed.
struct Passes {
    bytes: u64,
    encrypting: Duration,
    decrypting: Duration,
    first_blocks: Option<(String, String)>,
    came_back: bool,
}

impl<P: Protocol> Member<P> {
    /// The sum of 16 random bytes from every party, expanded on shares. Returns the round keys, and this party's share of
    /// the key.
    fn generate_key(&mut self) -> Result<(P::Shared, Vec<u8>)> {
        let n = self.net.parties();
        let wanted = self.workload.key_schedule.inputs()[0].views();
        let circuit = compile_with_views(&sum_of_keys(&self.cipher, n), &self.protocol, |_| wanted.clone());
        let mut mine = Zeroizing::new(vec![0; self.cipher.key_bytes]);
        random_bytes(&mut mine)?;
        let mine = key_cells(&self.cipher, &mine)?;
        let me = self.net.me();
        let inputs: Vec<_> =
            Party::all(n).map(|p| if p == me { Input::Mine(&mine) } else { Input::From(p) }).collect();
        let batch = prepare(&mut self.protocol, &circuit, 1, &mut self.net)?;
        let key = evaluate(&mut self.protocol, &circuit, 1, &inputs, batch, &mut self.net)?.remove(0);
        let round_keys = self.workload.expand(&Input::Shared(&key), &mut self.protocol, &mut self.net)?;
        Ok((round_keys, key.reveal_own_shares().to_vec()))
    }

    /// FIPS-197 C.1 with the key imported by one party; everybody learns the ciphertext.
    fn known_answer(&mut self) -> Result<String> {
        let key = key_cells(&self.cipher, &hex::decode(KNOWN_KEY)?)?;
        let key = if self.net.me() == ASKER { Input::Mine(&key) } else { Input::From(ASKER) };
        let round_keys = self.workload.expand(&key, &mut self.protocol, &mut self.net)?;
        let block = Cells::from_blocks(BLOCK, 8, &hex::decode(KNOWN_PLAINTEXT)?)?;
        let answer = self.encrypt_blocks(&block, &round_keys, Owner::All)?;
        Ok(hex::encode(answer.context("the answer is for all")?.to_blocks()))
    }

    /// Streams the source through encryption and decryption, a chunk at a time. `source` is the asker's.
    fn both_ways(
        &mut self,
        round_keys: &P::Shared,
        session: &Session,
        mut source: Option<&mut Source>,
    ) -> Result<Passes> {
        let chunk_bytes = BLOCK * self.workload.lanes_at_once(&self.protocol);
        let mut passes = Passes {
            bytes: 0,
            encrypting: Duration::ZERO,
            decrypting: Duration::ZERO,
            first_blocks: None,
            came_back: true,
        };
        let mut counter = 0;
        loop {
            let plaintext = match &mut source {
                Some(source) => source.read_chunk(chunk_bytes)?,
                None => Vec::new(),
            };
            let len = announce(ASKER, (plaintext.len() as u64).to_le_bytes(), &mut self.net)?;
            let len = u64::from_le_bytes(len);
            // The asker's word is bounded: a larger chunk would only cost memory.
            anyhow::ensure!(len <= chunk_bytes as u64, "{ASKER} asks for a chunk of {len} bytes at once");
            if len == 0 {
                // Nobody leaves before all have come this far: who stops here is missed by the others.
                meet(&mut self.net)?;
                return Ok(passes);
            }
            let lanes = (len as usize).div_ceil(BLOCK);
            let began = Instant::now();
            let keystream = self.keystream(session, counter, lanes, round_keys)?;
            let ciphertext = xor(&plaintext, keystream.as_deref());
            passes.encrypting += began.elapsed();
            if source.is_some() && passes.first_blocks.is_none() {
                let first = |bytes: &[u8]| hex::encode(&bytes[..BLOCK.min(bytes.len())]);
                passes.first_blocks = Some((first(&plaintext), first(&ciphertext)));
            }
            let began = Instant::now();
            let keystream = self.keystream(session, counter, lanes, round_keys)?;
            let decrypted = xor(&ciphertext, keystream.as_deref());
            passes.decrypting += began.elapsed();
            passes.came_back &= decrypted == plaintext;
            passes.bytes += len;
            counter += lanes as u64;
            tell(&Event::Progress(2 * passes.bytes));
        }
    }

    /// E_K(nonce, counter), E_K(nonce, counter + 1) ..: to the asker only.
    fn keystream(
        &mut self,
        session: &Session,
        counter: u64,
        lanes: usize,
        round_keys: &P::Shared,
    ) -> Result<Option<Vec<u8>>> {
        let mut counters = Cells::zero(BLOCK, 8, lanes);
        for i in 0..BLOCK / 2 {
            counters.row_mut(i).fill(session.id()[i]);
            let shift = 56 - 8 * i as u32;
            let row = counters.row_mut(BLOCK / 2 + i).iter_mut().zip(counter..);
            row.for_each(|(byte, block)| *byte = (block >> shift) as u8);
        }
        Ok(self.encrypt_blocks(&counters, round_keys, Owner::Party(ASKER))?.map(|cells| cells.to_blocks()))
    }

    /// Encrypts public blocks; the owner learns the result.
    fn encrypt_blocks(
        &mut self,
        blocks: &Cells,
        round_keys: &P::Shared,
        owner: Owner,
    ) -> Result<Option<Cells>> {
        let (circuit, lanes) = (&self.workload.cipher, blocks.lanes());
        let (protocol, net) = (&mut self.protocol, &mut self.net);
        let batch = prepare(protocol, circuit, lanes, net)?;
        let inputs = [Input::Public(blocks), Input::Shared(round_keys)];
        let output = evaluate(protocol, circuit, lanes, &inputs, batch, net)?.remove(0);
        Ok(release(protocol, &output, owner, net)?.map(Released::accept))
    }
}

fn xor(text: &[u8], keystream: Option<&[u8]>) -> Vec<u8> {
    text.iter().zip(keystream.unwrap_or_default()).map(|(x, k)| x ^ k).collect()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The file, or the sample.
struct Source {
    reader: Box<dyn Read>,
    name: String,
}

impl Source {
    fn open(path: Option<&Path>) -> Result<Source> {
        let Some(path) = path else {
            let text = b"Nobody holds this key. ";
            let sample: Vec<u8> = text.iter().copied().cycle().take(SAMPLE_BYTES as usize).collect();
            return Ok(Source { reader: Box::new(std::io::Cursor::new(sample)), name: "the sample".into() });
        };
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        Ok(Source { reader: Box::new(file), name })
    }

    /// The next bytes; fewer than asked for only at the end.
    fn read_chunk(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut chunk = Vec::with_capacity(bytes);
        let read = self.reader.by_ref().take(bytes as u64).read_to_end(&mut chunk);
        read.with_context(|| format!("cannot read {}", self.name))?;
        Ok(chunk)
    }
}
