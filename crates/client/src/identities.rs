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
    /// Why what is in the files now is not taken, as a person was told.
    told: Option<String>,
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
        // Before they are read, so that a change from then on is noticed.
        let stamps = stamps(&files);
        let identity = files.load()?;
        let name = name_of(&files, &identity)?;
        let held = PerProcess::default();
        // If the files cannot be used when the first connection is made, there is this identity. A child of a
        // fork reads them anew.
        *held.get(|_| Mutex::default()).lock() = Some(Held { stamps, identity, told: None });
        Ok(Identities::Renewed(Arc::new(Renewed { files, name, held })))
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

    /// For a new connection. `remark` tells a person what is wrong with files, once.
    pub(crate) fn current(&self, remark: &dyn Fn(&str)) -> Result<Identity> {
        match self {
            Identities::Own(identity) => Ok(identity.clone()),
            Identities::Renewed(renewed) => renewed.current(remark),
        }
    }
}

impl Renewed {
    /// What is in the files now. While they cannot be used, perhaps because one of them is written before the
    /// other, what was read before is good until it ends.
    fn current(&self, remark: &dyn Fn(&str)) -> Result<Identity> {
        let mut held = self.held.get(|_| Mutex::default()).lock();
        let stamps = stamps(&self.files);
        if let Some(known) = held.as_ref().filter(|held| held.stamps == stamps) {
            return Ok(known.identity.clone());
        }
        match (self.read(), &mut *held) {
            (Ok(identity), _) => {
                *held = Some(Held { stamps, identity: identity.clone(), told: None });
                Ok(identity)
            }
            (Err(e), Some(known)) if is_valid(&known.identity) => {
                let (identity, why) = (known.identity.clone(), e.to_string());
                let is_new = known.told.as_ref() != Some(&why);
                known.told = Some(why.clone());
                drop(held);
                if is_new {
                    remark(&format!(
                        "the renewed certificate of {} cannot be used, and the one from before is until it ends: {why}",
                        self.name
                    ));
                }
                Ok(identity)
            }
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

fn stamps(files: &RenewedFiles) -> [Option<Stamp>; 2] {
    [&files.certificate, &files.key].map(|path| path.metadata().ok().map(|found| stamp(&found)))
}

fn stamp(found: &Metadata) -> Stamp {
    Stamp { modified: found.modified().ok(), bytes: found.len(), file: (found.dev(), found.ino()) }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, rename, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use polyclave_harness::authority::{Authority, Signed, svid, within};

    use super::*;

    const WEB: &str = "spiffe://corp.example/web";

    fn put(path: &Path, text: &str) {
        let next = path.with_extension("next");
        write(&next, text).expect("written");
        set_permissions(&next, Permissions::from_mode(0o600)).expect("set");
        rename(next, path).expect("renamed");
    }

    fn renew(files: &RenewedFiles, signed: &Signed) {
        put(&files.certificate, &signed.chain);
        put(&files.key, &signed.key);
    }

    /// What is taken, and what a person is told of it.
    fn take(identities: &Identities) -> (Result<Vec<u8>>, Vec<String>) {
        let told = Mutex::new(Vec::new());
        let identity = identities.current(&|remark| told.lock().push(remark.to_owned()));
        (identity.map(|identity| identity.certificate().to_vec()), told.into_inner())
    }

    #[test]
    fn files_that_cannot_be_used_are_told_once_and_what_was_read_before_is_good_until_it_ends() {
        let (dir, corp) = (tempfile::tempdir().expect("a directory"), Authority::new("corp"));
        let files =
            RenewedFiles { certificate: dir.path().join("svid.pem"), key: dir.path().join("svid.key") };
        let [first, second] = [(); 2].map(|()| corp.sign(&svid(WEB)));
        renew(&files, &first);
        let identities = Identities::renewed(files.clone()).expect("they fit");

        // Before the first connection: what was read when the client was made is good.
        put(&files.key, "nothing");
        let (taken, told) = take(&identities);
        assert_eq!(taken.expect("the first one"), first.certificate);
        let names_both = |told: &str| told.contains("svid.pem") && told.contains("svid.key");
        assert!(told.len() == 1 && names_both(&told[0]) && told[0].contains("no private key"), "{told:?}");
        // Once for each failure, however often it is looked at.
        assert_eq!(take(&identities).1, [""; 0]);
        std::fs::remove_file(&files.key).expect("removed");
        let (taken, told) = take(&identities);
        assert_eq!(taken.expect("the first one"), first.certificate);
        assert!(told.len() == 1 && told[0].contains("svid.key") && told[0].contains(WEB), "{told:?}");

        renew(&files, &second);
        let (taken, told) = take(&identities);
        assert_eq!((taken.expect("the second one"), told), (second.certificate.clone(), Vec::new()));
        // The same failure as before is another one now.
        put(&files.key, "nothing");
        assert_eq!(take(&identities).1.len(), 1);
    }

    #[test]
    fn what_was_read_before_is_of_no_use_once_it_has_ended() {
        let (dir, corp) = (tempfile::tempdir().expect("a directory"), Authority::new("corp"));
        let files =
            RenewedFiles { certificate: dir.path().join("svid.pem"), key: dir.path().join("svid.key") };
        let mut params = svid(WEB);
        within(&mut params, -3600, -5);
        renew(&files, &corp.sign(&params));
        let identities = Identities::renewed(files.clone()).expect("they fit");
        put(&files.certificate, "half");
        let (taken, told) = take(&identities);
        let why = taken.expect_err("it has ended").to_string();
        assert!(why.contains("svid.pem") && told.is_empty(), "{why} {told:?}");
    }
}
