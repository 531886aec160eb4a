//! A key is sealed to the nodes, and a node opens its part. [`SealedImport`] describes the content of the
//! file, and why nothing of it can be moved elsewhere.

use polyclave_api::{NewKey, SealedImport, SealedPart, version_of_files};
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Error, Party, Result};
use polyclave_transport::{CertificateDer, Identity, SEALING_TAG, Sealed, seal_to};
use zeroize::Zeroizing;

const INFO: &[u8] = b"polyclave 2026 part of a sealed key";

/// Seals a key to the certificates of all nodes, in their order.
pub fn seal_import(
    new: NewKey,
    key: &[u8],
    check: Vec<u8>,
    (cluster, certificates): ([u8; 32], &[&CertificateDer<'_>]),
    not_after: u64,
) -> Result<SealedImport> {
    let mut nonce = [0; 32];
    random_bytes(&mut nonce)?;
    let parts = Vec::new();
    let mut file = SealedImport { version: version_of_files(), cluster, new, check, not_after, nonce, parts };
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

/// A node's own part of the key, `bytes` bytes long.
pub fn open_import(
    file: &SealedImport,
    node: Party,
    bytes: usize,
    identity: &Identity,
) -> Result<Zeroizing<Vec<u8>>> {
    let none = || Error::misuse("the file has no part for this node");
    let part = file.parts.get(node.index()).ok_or_else(none)?;
    if part.ciphertext.len() != bytes + SEALING_TAG {
        return Err(Error::misuse("the file has parts of another length than the key"));
    }
    let sealed = Sealed { encapsulated: part.encapsulated, ciphertext: part.ciphertext.clone() };
    identity.open_sealed(INFO, &file.said_to(node)?, &sealed)
}

#[cfg(test)]
mod tests {
    use polyclave_api::{Mode, VERSION};

    use super::*;

    fn nodes() -> Vec<Identity> {
        ["a", "b", "c"].iter().map(|name| Identity::generate_named(name, 1).expect("an identity")).collect()
    }

    fn sealed(nodes: &[Identity], key: &[u8]) -> SealedImport {
        let new = NewKey::for_modes("k", "aes-128", &[Mode::Cbc], 9);
        let certificates: Vec<CertificateDer<'_>> = nodes.iter().map(Identity::certificate).collect();
        let certificates: Vec<&CertificateDer<'_>> = certificates.iter().collect();
        seal_import(new, key, vec![1; 5], ([7; 32], &certificates), 1_800_000_000).expect("sealed")
    }

    fn opened(file: &SealedImport, nodes: &[Identity]) -> Vec<Result<Zeroizing<Vec<u8>>>> {
        Party::all(nodes.len()).zip(nodes).map(|(party, node)| open_import(file, party, 16, node)).collect()
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
            assert!(open_import(&file, party, 16, node).is_err());
        }
        assert!(open_import(&file, Party(0), 24, &nodes[0]).is_err());
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
        let message = SealedImport::decode(&older.encode().expect("encoded")).expect_err("another version");
        assert!(message.to_string().contains("seal it anew"), "{message}");
    }
}
