//! Who a client is to nodes: an identity of its own, or what an agent writes into files and renews.
//!
//! Files are looked at for each new connection. Connections that there are go on with the certificate with
//! which they began, and nodes close them when it ends.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use polyclave_config::RenewedFiles;
use polyclave_kernels::process::PerProcess;
use polyclave_transport::{Identity, expiry, identity_of};

use crate::{Error, Result};

/// Who a client is to nodes.
#[derive(Clone)]
pub(crate) enum Identities {
    /// By one certificate, which nodes list.
    Own(Identity),
    /// By the identity in the certificates that an agent renews, for which an authority vouches.
    Renewed(Arc<Renewed>),
}

/// An identity in files.
pub(crate) struct Renewed {
    files: RenewedFiles,
    /// What stays the same in every certificate.
    name: String,
    held: PerProcess<Mutex<Option<Held>>>,
}

/// What was read last.
struct Held {
    stamps: [Option<Stamp>; 2],
    identity: Identity,
}

#[derive(PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    file: (u64, u64),
}

impl Identities {
    /// With the identity that is in files now, and whose later certificates will be there.
    pub(crate) fn renewed(files: RenewedFiles) -> Result<Identities> {
        let name = name_of(&files, &files.load()?)?;
        Ok(Identities::Renewed(Arc::new(Renewed { files, name, held: PerProcess::default() })))
    }

    /// The identity for which an authority vouches; `None` for a client that nodes list.
    pub(crate) fn vouched(&self) -> Option<&str> {
        match self {
            Identities::Own(_) => None,
            Identities::Renewed(renewed) => Some(&renewed.name),
        }
    }

    /// What nodes compare where they bind something to the client.
    pub(crate) fn bound(&self) -> Vec<u8> {
        match self {
            Identities::Own(identity) => identity.certificate().to_vec(),
            Identities::Renewed(renewed) => renewed.name.as_bytes().to_vec(),
        }
    }

    /// For a new connection.
    pub(crate) fn current(&self) -> Result<Identity> {
        match self {
            Identities::Own(identity) => Ok(identity.clone()),
            Identities::Renewed(renewed) => renewed.current(),
        }
    }
}

impl Renewed {
    /// What is in the files now. While they cannot be used, perhaps because one of them is written before the
    /// other, what was read before is good until it ends.
    fn current(&self) -> Result<Identity> {
        let mut held = self.held.get(|_| Mutex::default()).lock();
        let stamps =
            [&self.files.certificate, &self.files.key].map(|path| path.metadata().ok().map(|m| stamp(&m)));
        if let Some(known) = held.as_ref().filter(|held| held.stamps == stamps) {
            return Ok(known.identity.clone());
        }
        match (self.read(), &*held) {
            (Ok(identity), _) => {
                *held = Some(Held { stamps, identity: identity.clone() });
                Ok(identity)
            }
            (Err(_), Some(known)) if is_valid(&known.identity) => Ok(known.identity.clone()),
            (Err(e), _) => Err(e),
        }
    }

    fn read(&self) -> Result<Identity> {
        let identity = self.files.load()?;
        let name = name_of(&self.files, &identity)?;
        match name == self.name {
            true => Ok(identity),
            false => Err(Error::Misuse(format!(
                "{} has a certificate of {name} now, and this client is {}; start it anew to be another",
                self.files.certificate.display(),
                self.name
            ))),
        }
    }
}

fn name_of(files: &RenewedFiles, identity: &Identity) -> Result<String> {
    identity_of(&identity.certificate()).map_err(|why| {
        let path = files.certificate.display();
        Error::Misuse(format!(
            "the certificate in {path} is of no client that an authority could vouch for: {why}"
        ))
    })
}

fn is_valid(identity: &Identity) -> bool {
    expiry(&identity.certificate()).is_ok_and(|(_, to)| SystemTime::now() <= to)
}

fn stamp(found: &Metadata) -> Stamp {
    Stamp { modified: found.modified().ok(), bytes: found.len(), file: (found.dev(), found.ino()) }
}
