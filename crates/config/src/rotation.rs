//! Rotation of a node's certificate. A crash at any point leaves the old identity, or both, or the new one.
//!
//! The commit point is one rename: `identity-next.key`, which holds key and certificate, takes the name
//! `identity.key`. The files with certificates alone are copies for people; opening writes them again if they
//! do not fit.

use std::fs;
use std::path::Path;

use crate::{Error, Result, StoredIdentity, private};

pub(crate) const KEY: &str = "identity.key";
pub(crate) const CERTIFICATE: &str = "identity.crt";
pub(crate) const NEXT_KEY: &str = "identity-next.key";
pub(crate) const NEXT_CERTIFICATE: &str = "identity-next.crt";

/// Keeps the next identity beside the current one.
pub(crate) fn begin(dir: &Path, next: &StoredIdentity) -> Result<()> {
    next.save(&dir.join(NEXT_KEY), &dir.join(NEXT_CERTIFICATE))
}

/// Puts the next identity in place of the current one.
pub(crate) fn finish(dir: &Path, next: &StoredIdentity) -> Result<()> {
    let path = dir.join(KEY);
    fs::rename(dir.join(NEXT_KEY), &path).map_err(Error::io(&path, "replace"))?;
    private::sync_dir(dir)?;
    next.save_certificate(&dir.join(CERTIFICATE))?;
    remove(&dir.join(NEXT_CERTIFICATE))
}

/// The current identity, and the next one if it is changing. Rewrites copies of certificates that do not fit.
pub(crate) fn recover(dir: &Path) -> Result<(StoredIdentity, Option<StoredIdentity>)> {
    let identity = StoredIdentity::load(&dir.join(KEY))?;
    let next_path = dir.join(NEXT_KEY);
    let next = next_path.exists().then(|| StoredIdentity::load(&next_path)).transpose()?;
    copy(&identity, &dir.join(CERTIFICATE))?;
    match &next {
        Some(next) => copy(next, &dir.join(NEXT_CERTIFICATE))?,
        None => remove(&dir.join(NEXT_CERTIFICATE))?,
    }
    Ok((identity, next))
}

fn copy(identity: &StoredIdentity, path: &Path) -> Result<()> {
    let fits = fs::read_to_string(path).is_ok_and(|text| text == identity.certificate_pem());
    if fits { Ok(()) } else { identity.save_certificate(path) }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, "remove")(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::identity;
    use crate::{NodeDir, NodeSettings};

    fn node(path: &Path) -> NodeDir {
        let settings = NodeSettings::new("a", "a.example:1", "a.example:2");
        NodeDir::init(path, &settings, &identity(1).certificate, &identity(1).key).expect("made");
        NodeDir::open(path).expect("opened")
    }

    #[test]
    fn a_rotation_goes_from_one_certificate_over_two_to_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("node");
        let mut node = node(&path);
        assert!(node.finish_rotation().is_err());
        let both = node.begin_rotation(&identity(2).certificate, &identity(2).key).expect("begun");
        assert_eq!(both.certificates, [identity(1).certificate, identity(2).certificate]);
        assert!(node.begin_rotation(&identity(3).certificate, &identity(3).key).is_err());
        let mut node = NodeDir::open(&path).expect("opened");
        assert_eq!(node.card(), both);
        assert_eq!(node.finish_rotation().expect("finished").certificates, [identity(2).certificate]);
        let node = NodeDir::open(&path).expect("opened");
        assert_eq!((node.identity(), node.next_identity()), (&identity(2), None));
        assert!(!path.join(NEXT_CERTIFICATE).exists());
    }

    /// Every state of the directory between two steps on the disk, as a crash would leave it.
    #[test]
    fn a_crash_anywhere_in_a_rotation_leaves_a_whole_identity() {
        type Step = fn(&Path);
        let steps: [(Step, u8, Option<u8>); 4] = [
            // Begun, but the copy of the next certificate is not written yet.
            (|p| fs::remove_file(p.join(NEXT_CERTIFICATE)).expect("removed"), 1, Some(2)),
            (|_| (), 1, Some(2)),
            // Renamed, and both copies are the old ones.
            (|p| fs::rename(p.join(NEXT_KEY), p.join(KEY)).expect("renamed"), 2, None),
            // The copy is replaced, that of the next one is not removed.
            (
                |p| {
                    fs::rename(p.join(NEXT_KEY), p.join(KEY)).expect("renamed");
                    identity(2).save_certificate(&p.join(CERTIFICATE)).expect("saved");
                },
                2,
                None,
            ),
        ];
        for (step, current, next) in steps {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("node");
            node(&path).begin_rotation(&identity(2).certificate, &identity(2).key).expect("begun");
            step(&path);
            let node = NodeDir::open(&path).expect("opened");
            assert_eq!(node.identity(), &identity(current));
            assert_eq!(node.next_identity(), next.map(identity).as_ref());
            let copy = fs::read_to_string(path.join(CERTIFICATE)).expect("read");
            assert_eq!(copy, identity(current).certificate_pem());
            assert_eq!(path.join(NEXT_CERTIFICATE).exists(), next.is_some());
        }
    }
}
