//! A key that was sealed to the nodes on a machine without a network, and that anybody may carry to them.
//!
//! The key is the sum (XOR) of one part for each node. All parts but the last are drawn at random, so any parts but all of them say nothing
//! of the key. Each is sealed to its node's certificate ([`crate::seal_to`]) together with everything else that the file says: the
//! cluster file by its fingerprint, the key with its properties, its check value, until when it may be imported, and the node's number. So
//! nothing of it can be changed, moved to another key or cluster, or put together with parts of another file.
//!
//! It does not say who sealed: whoever may import can also make such a file, of a key that they know.

use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Error, Party, Result};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{NewKey, VERSION, codec};
use crate::sealing::{ENCAPSULATED, SEALING_TAG, Sealed, seal_to};
use crate::{CertificateDer, Identity};

const INFO: &[u8] = b"polyclave 2026 part of a sealed key";
/// The most bytes of a file. A part of 32 bytes for each of 16 nodes takes 1.5 KiB.
const MOST_BYTES: usize = 16 << 10;
/// The most bytes of a key.
const MOST_KEY: usize = 256;

/// A key that was sealed to the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedImport {
    /// [`VERSION`]: with another one the same bytes could mean another key.
    pub version: u16,
    /// The fingerprint of the cluster file.
    pub cluster: [u8; 32],
    /// The key, as it is to become.
    pub new: NewKey,
    /// Its check value by CMAC.
    pub check: Vec<u8>,
    /// The last second, since 1970, in which it may be imported.
    pub not_after: u64,
    /// Drawn at random: nodes import a file once.
    pub nonce: [u8; 32],
    /// By node.
    pub parts: Vec<SealedPart>,
}

/// One node's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedPart {
    /// The encapsulated key of HPKE.
    pub encapsulated: [u8; ENCAPSULATED],
    /// The part and its tag.
    #[serde(with = "serde_bytes")]
    pub ciphertext: Vec<u8>,
}

impl SealedImport {
    /// Seals a key to the certificates of all nodes, in their order.
    pub fn seal(
        new: NewKey,
        key: &[u8],
        check: Vec<u8>,
        (cluster, certificates): ([u8; 32], &[&CertificateDer<'_>]),
        not_after: u64,
    ) -> Result<SealedImport> {
        let mut nonce = [0; 32];
        random_bytes(&mut nonce)?;
        let parts = Vec::new();
        let mut file = SealedImport { version: VERSION, cluster, new, check, not_after, nonce, parts };
        let mut last = Zeroizing::new(key.to_vec());
        let mut of_node = Vec::new();
        for _ in 1..certificates.len() {
            let mut part = Zeroizing::new(vec![0; key.len()]);
            random_bytes(&mut part)?;
            last.iter_mut().zip(part.iter()).for_each(|(sum, byte)| *sum ^= byte);
            of_node.push(part);
        }
        of_node.push(last);
        for ((node, part), certificate) in Party::all(certificates.len()).zip(&of_node).zip(certificates) {
            let Sealed { encapsulated, ciphertext } = seal_to(certificate, INFO, &file.said_to(node)?, part)?;
            file.parts.push(SealedPart { encapsulated, ciphertext });
        }
        file.encode()?;
        Ok(file)
    }

    /// A node's own part of the key, of so many bytes.
    pub fn open(&self, node: Party, bytes: usize, identity: &Identity) -> Result<Zeroizing<Vec<u8>>> {
        let none = || Error::misuse("the file has no part for this node");
        let part = self.parts.get(node.index()).ok_or_else(none)?;
        if part.ciphertext.len() != bytes + SEALING_TAG {
            return Err(Error::misuse("the file has parts of another length than the key"));
        }
        let sealed = Sealed { encapsulated: part.encapsulated, ciphertext: part.ciphertext.clone() };
        identity.open_sealed(INFO, &self.said_to(node)?, &sealed)
    }

    /// Everything besides the parts, and for which node a part is.
    fn said_to(&self, node: Party) -> Result<Vec<u8>> {
        let bare = SealedImport { parts: Vec::new(), ..self.clone() };
        let mut said = codec::encode(&bare)?.split_off(4);
        said.push(node.0);
        Ok(said)
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bytes = codec::encode(self)?.split_off(4);
        check(&bytes, self)?;
        Ok(bytes)
    }

    /// Reads a file. Bytes that would not be written again in the same way are refused.
    pub fn decode(bytes: &[u8]) -> Result<SealedImport> {
        let version = codec::version_of(bytes);
        if let Some(version) = version.filter(|version| *version != VERSION) {
            return Err(Error::misuse(format!(
                "this sealed key is of version {version}, and this program speaks version {VERSION}: seal it anew"
            )));
        }
        let wrong = |_| Error::misuse("this is no sealed key, or it was cut or altered");
        let file: SealedImport = codec::decode(bytes, Party(0)).map_err(wrong)?;
        check(bytes, &file)?;
        match codec::encode(&file)?.get(4..) == Some(bytes) {
            true => Ok(file),
            false => Err(Error::misuse("this sealed key has another encoding than it must have")),
        }
    }

    /// Whether it has no more bytes than it may have.
    pub fn check_size(&self) -> Result<()> {
        self.encode().map(drop)
    }
}

fn check(bytes: &[u8], file: &SealedImport) -> Result<()> {
    let fits = |part: &SealedPart| part.ciphertext.len() <= MOST_KEY + SEALING_TAG;
    match bytes.len() <= MOST_BYTES && file.parts.iter().all(fits) {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "a sealed key of {} bytes; at most {MOST_BYTES} are allowed, and {MOST_KEY} for a part",
            bytes.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;

    fn nodes() -> Vec<Identity> {
        ["a", "b", "c"].iter().map(|name| Identity::generate_named(name, 1).expect("an identity")).collect()
    }

    fn sealed(nodes: &[Identity], key: &[u8]) -> SealedImport {
        let new = NewKey::for_modes("k", "aes-128", &[Mode::Cbc], 9);
        let certificates: Vec<CertificateDer<'_>> = nodes.iter().map(Identity::certificate).collect();
        let certificates: Vec<&CertificateDer<'_>> = certificates.iter().collect();
        SealedImport::seal(new, key, vec![1; 5], ([7; 32], &certificates), 1_800_000_000).expect("sealed")
    }

    fn opened(file: &SealedImport, nodes: &[Identity]) -> Vec<Result<Zeroizing<Vec<u8>>>> {
        Party::all(nodes.len()).zip(nodes).map(|(party, node)| file.open(party, 16, node)).collect()
    }

    #[test]
    fn the_parts_add_up_to_the_key_and_each_opens_for_its_node_alone() {
        let (nodes, key) = (nodes(), [9; 16]);
        let file = sealed(&nodes, &key);
        let file = SealedImport::decode(&file.encode().expect("encoded")).expect("decoded");
        let parts: Vec<_> = opened(&file, &nodes).into_iter().map(|part| part.expect("its own")).collect();
        let sum = |parts: &[Zeroizing<Vec<u8>>]| {
            parts.iter().fold(vec![0; 16], |sum: Vec<u8>, part| {
                sum.iter().zip(part.iter()).map(|(a, b)| a ^ b).collect()
            })
        };
        assert_eq!(sum(&parts), key);
        // Of the same key another time: every part is another one.
        let again = sealed(&nodes, &key);
        let others: Vec<_> = opened(&again, &nodes).into_iter().map(|part| part.expect("its own")).collect();
        assert!(parts.iter().zip(&others).all(|(one, other)| one != other));
        for (party, node) in [(Party(1), &nodes[0]), (Party(0), &nodes[1]), (Party(3), &nodes[0])] {
            assert!(file.open(party, 16, node).is_err());
        }
        assert!(file.open(Party(0), 24, &nodes[0]).is_err());
    }

    #[test]
    fn whatever_is_changed_in_a_file_it_opens_no_more() {
        let nodes = nodes();
        let (file, other) = (sealed(&nodes, &[9; 16]), sealed(&nodes, &[9; 16]));
        let changes: [&dyn Fn(&mut SealedImport); 7] = [
            &|f| f.cluster[0] ^= 1,
            &|f| f.new.name = "k2".into(),
            &|f| f.new.modes = vec![Mode::Ecb],
            &|f| f.check[4] ^= 1,
            &|f| f.not_after += 1,
            &|f| f.nonce[0] ^= 1,
            &|f| f.version += 1,
        ];
        for change in changes {
            let mut changed = file.clone();
            change(&mut changed);
            assert!(opened(&changed, &nodes).iter().all(Result::is_err));
        }
        // A part of another file for the same nodes.
        let mut mixed = file.clone();
        mixed.parts[1] = other.parts[1].clone();
        let found: Vec<bool> = opened(&mixed, &nodes).iter().map(Result::is_ok).collect();
        assert_eq!(found, [true, false, true]);
        mixed.parts.swap(0, 2);
        assert!(opened(&mixed, &nodes).iter().all(Result::is_err));
        let bytes = file.encode().expect("encoded");
        assert!((0..bytes.len()).all(|len| SealedImport::decode(&bytes[..len]).is_err()));
        assert!(SealedImport::decode(&[&bytes[..], &[0]].concat()).is_err());
        let older = SealedImport { version: VERSION - 1, ..file };
        let told = SealedImport::decode(&older.encode().expect("encoded")).expect_err("another version");
        assert!(told.to_string().contains("seal it anew"), "{told}");
    }
}
