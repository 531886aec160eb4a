//! What approvers sign before an operation is done: the whole operation, the client that will ask for it, and
//! the last moment.
//!
//! A statement is signed and compared in its encoding, which is the only one that its content has
//! ([`Statement::decode`]). So nobody can show one content to an approver and another to a node.

use polyclave_protocol::{Error, Party, Result};
use serde::{Deserialize, Serialize};

use super::{Operation, codec};

/// The most bytes of a statement's encoding, of its purpose and of a certificate, and the most signatures.
const MAX_STATEMENT: usize = 16 << 10;
/// The most bytes of the purpose.
pub const MAX_PURPOSE: usize = 256;
const MAX_CERTIFICATE: usize = 4 << 10;
const MAX_SIGNATURES: usize = 32;

/// What is approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// [`version_of_files`](super::version_of_files): with another one the same bytes could mean another
    /// operation.
    pub version: u16,
    /// The cluster's id.
    pub cluster: [u8; 16],
    /// What will be done.
    pub subject: Subject,
    /// The keys that exist and that the operation names. A node refuses if what it has in such a place is
    /// another key, or another version.
    pub keys: Vec<NamedKey>,
    /// The last second, since 1970, in which it may be done.
    pub not_after: u64,
    /// Drawn at random. Every node takes it once.
    pub nonce: [u8; 32],
    /// The reason that the person who asks for approval gives. Nodes do not read it.
    pub purpose: String,
}

/// What will be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A request of a client.
    Operation {
        /// The certificate of the client that will ask.
        #[serde(with = "serde_bytes")]
        requester: Vec<u8>,
        /// Everything that it will ask for. The steps that follow are not part of it.
        operation: Box<Operation>,
    },
    /// New rules for clients take the place of old ones at a node.
    Policy {
        /// The digest of the new rules.
        digest: [u8; 32],
    },
    /// All keys move to the nodes of another cluster.
    Reshare {
        /// The fingerprint of the cluster file from before.
        from: [u8; 32],
        /// The fingerprint of the cluster file that takes over.
        to: [u8; 32],
    },
    /// All keys get fresh shares under fresh common secrets.
    Refresh {
        /// The id of the common secrets that are replaced.
        secrets: [u8; 32],
        /// Also if more checks have failed than a node accepts.
        despite_failures: bool,
    },
}

/// A version of a key that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedKey {
    /// Its name.
    pub name: String,
    /// The number of the version, for people.
    pub version: u32,
    /// Its id, which distinguishes it from others that had or will have its name.
    pub id: [u8; 16],
}

/// A statement with signatures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The encoding of a [`Statement`].
    #[serde(with = "serde_bytes")]
    pub statement: Vec<u8>,
    /// The approvals so far.
    pub signatures: Vec<ApprovalSignature>,
}

/// One approver's signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalSignature {
    /// The approver's certificate.
    #[serde(with = "serde_bytes")]
    pub certificate: Vec<u8>,
    /// The signature of the digest ([`Approval::digest`]).
    #[serde(with = "serde_bytes")]
    pub signature: Vec<u8>,
}

impl Statement {
    /// The bytes that are signed.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bytes = codec::encode(self)?.split_off(4);
        check(&bytes, self)?;
        Ok(bytes)
    }

    /// Reads a statement. Bytes that would not be written again in the same way are refused.
    pub fn decode(bytes: &[u8]) -> Result<Statement> {
        super::check_file(bytes, "this approval", "make a new one")?;
        let wrong = |_| Error::misuse("this is no statement of an approval");
        let statement: Statement = codec::decode(bytes, Party(0)).map_err(wrong)?;
        check(bytes, &statement)?;
        if codec::encode(&statement)?.get(4..) != Some(bytes) {
            return Err(Error::misuse(
                "this statement of an approval has another encoding than it must have",
            ));
        }
        Ok(statement)
    }
}

fn check(bytes: &[u8], statement: &Statement) -> Result<()> {
    if bytes.len() > MAX_STATEMENT || statement.purpose.len() > MAX_PURPOSE {
        let (len, purpose) = (bytes.len(), statement.purpose.len());
        return Err(Error::misuse(format!(
            "a statement of {len} bytes with a purpose of {purpose}; {MAX_STATEMENT} and {MAX_PURPOSE} are allowed"
        )));
    }
    Ok(())
}

impl Approval {
    /// A statement that nobody has signed yet.
    pub fn new(statement: &Statement) -> Result<Approval> {
        Ok(Approval { statement: statement.encode()?, signatures: Vec::new() })
    }

    /// What every approver signs: a digest of the statement's encoding.
    pub fn digest(&self) -> [u8; 32] {
        blake3::derive_key("polyclave 2026 statement of an approval", &self.statement)
    }

    /// Whether it has no more bytes than it may have.
    pub fn check_size(&self) -> Result<()> {
        let fits = |s: &ApprovalSignature| s.certificate.len() <= MAX_CERTIFICATE && s.signature.len() <= 64;
        if self.statement.len() > MAX_STATEMENT
            || self.signatures.len() > MAX_SIGNATURES
            || !self.signatures.iter().all(fits)
        {
            return Err(Error::misuse(format!(
                "this approval is too large: at most {MAX_SIGNATURES} signatures, and {MAX_STATEMENT} bytes that are signed"
            )));
        }
        Ok(())
    }

    /// Adds a signature of [`digest`](Self::digest). An older one under the same certificate is replaced.
    pub fn add(&mut self, signature: ApprovalSignature) -> Result<()> {
        self.signatures.retain(|old| old.certificate != signature.certificate);
        self.signatures.push(signature);
        self.check_size()
    }

    /// The signature that claims to be under a certificate. It is still to be verified.
    pub fn signature_under(&self, certificate: &[u8]) -> Option<&ApprovalSignature> {
        self.signatures.iter().find(|s| s.certificate == certificate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{VERSION, operations};

    fn statement() -> Statement {
        Statement {
            version: VERSION,
            cluster: [1; 16],
            subject: Subject::Operation {
                requester: vec![0x30, 1],
                operation: Box::new(Operation::Delete(operations::Delete { key: "k".into(), version: None })),
            },
            keys: vec![NamedKey { name: "k".into(), version: 1, id: [2; 16] }],
            not_after: 1_800_000_000,
            nonce: [3; 32],
            purpose: "the year is over".into(),
        }
    }

    #[test]
    fn a_statement_comes_back_and_has_one_encoding() {
        let bytes = statement().encode().expect("encoded");
        assert_eq!(Statement::decode(&bytes).expect("decoded"), statement());
        assert!(Statement::decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(Statement::decode(&[&bytes[..], &[0]].concat()).is_err());
        // A number may be written with zeros in front, which is another encoding of the same.
        let mut longer = bytes.clone();
        assert_eq!(longer[0], VERSION as u8);
        longer[0] |= 0x80;
        longer.insert(1, 0);
        assert!(Statement::decode(&longer).is_err());
        let other = Statement { version: VERSION + 1, ..statement() }.encode().expect("encoded");
        let error = Statement::decode(&other).expect_err("another version").to_string();
        assert!(error.contains("make a new one"), "{error}");
        assert!(Statement { purpose: "x".repeat(MAX_PURPOSE + 1), ..statement() }.encode().is_err());
    }
}
