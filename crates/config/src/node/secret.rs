//! Where a node keeps the secret that seals its store, and how it changes.
//!
//! | place | what a copy of the disk alone gives |
//! |---|---|
//! | `secret.key` | the secret |
//! | `secret.sealed` | the secret, for half a second and 256 MiB a guess of the passphrase |
//! | the credential `polyclave-secret` of the service manager | nothing, if it is sealed to the machine (for instance to its TPM) |
//!
//! A service manager passes credentials as files in a directory that it names in `$CREDENTIALS_DIRECTORY`.
//! The passphrase may be such a credential, too: `polyclave-passphrase`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use zeroize::Zeroizing;

use super::NodeDir;
use crate::sealed_secret::{Passphrase, SealedSecret};
use crate::{Error, Result, private};

pub(super) const CLEAR: &str = "secret.key";
pub(super) const SEALED: &str = "secret.sealed";
const SECRET_CREDENTIAL: &str = "polyclave-secret";
const PASSPHRASE_CREDENTIAL: &str = "polyclave-passphrase";

/// Asks somebody for the passphrase of a node.
pub type AskPassphrase = Arc<dyn Fn(&NodeDir) -> Result<Passphrase> + Send + Sync>;

/// Where a node's secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// In the directory, in the clear.
    Clear,
    /// In the directory, under a passphrase.
    Sealed,
    /// With the service manager, in this file.
    Credential(PathBuf),
}

/// How a node gets at its secret.
pub(super) struct Secrets {
    /// Where the service manager puts credentials, if it started this process with any.
    credentials: Option<PathBuf>,
    ask: Option<AskPassphrase>,
    /// Once it was read: a node that runs asks nobody again.
    known: OnceLock<Zeroizing<[u8; 32]>>,
}

impl Secrets {
    pub(super) fn of_this_process() -> Secrets {
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        Secrets { credentials, ask: None, known: OnceLock::new() }
    }

    fn credential(&self, name: &str) -> Option<PathBuf> {
        self.credentials.as_ref().map(|dir| dir.join(name)).filter(|file| file.is_file())
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

impl NodeDir {
    /// Sets the function that asks for the passphrase, if the secret is sealed under one and the service
    /// manager has not passed it.
    pub fn ask_passphrase(&mut self, ask: AskPassphrase) {
        self.secrets.ask = Some(ask);
    }

    /// Where the secret is.
    pub fn secret_place(&self) -> Result<SecretPlace> {
        let (clear, sealed) = (self.file(CLEAR), self.file(SEALED));
        match (clear.exists(), sealed.exists(), self.secrets.credential(SECRET_CREDENTIAL)) {
            (true, false, None) => Ok(SecretPlace::Clear),
            (false, true, None) => Ok(SecretPlace::Sealed),
            (false, false, Some(file)) => Ok(SecretPlace::Credential(file)),
            (true, true, _) => Err(Error::malformed(
                &clear,
                format!(
                    "is here beside {SEALED}, because a change was interrupted; run `node seal` or `node unseal` again"
                ),
            )),
            (_, _, Some(file)) => Err(Error::malformed(
                &file,
                format!(
                    "has the node's secret, and so has the directory {}; delete one of the two",
                    self.path.display()
                ),
            )),
            (false, false, None) => Err(Error::malformed(
                &self.path,
                format!(
                    "has neither {CLEAR} nor {SEALED}, and no credential {SECRET_CREDENTIAL} was passed; restore it from a copy, or \
                     start the node by the service manager that keeps it"
                ),
            )),
        }
    }

    /// The secret that seals the store. Asks for the passphrase if it is sealed under one.
    pub fn secret(&self) -> Result<Zeroizing<[u8; 32]>> {
        if let Some(known) = self.secrets.known.get() {
            return Ok(known.clone());
        }
        let secret = match self.secret_place()? {
            SecretPlace::Clear => private::load_secret(&self.file(CLEAR))?,
            SecretPlace::Credential(file) => private::load_secret(&file)?,
            SecretPlace::Sealed => self.unsealed()?,
        };
        Ok(self.secrets.known.get_or_init(|| secret).clone())
    }

    fn unsealed(&self) -> Result<Zeroizing<[u8; 32]>> {
        let path = self.file(SEALED);
        let sealed = SealedSecret::load(&path)?;
        let passphrase = match (self.secrets.credential(PASSPHRASE_CREDENTIAL), &self.secrets.ask) {
            (Some(file), _) => Passphrase::load(&file)?,
            (None, Some(ask)) => ask(self)?,
            (None, None) => {
                return Err(Error::malformed(
                    &path,
                    "is sealed under a passphrase, and there is nobody to ask for it",
                ));
            }
        };
        sealed.open(&passphrase).map_err(|e| e.in_file(&path))
    }

    /// Seals the secret under a passphrase. It was in the clear, or sealed under another passphrase, and the
    /// node asks for that one. After a crash the secret is where it was, or in both places. Then this can be
    /// repeated.
    pub fn seal_secret(&self, passphrase: &Passphrase) -> Result<()> {
        let (clear, sealed) = (self.file(CLEAR), self.file(SEALED));
        let secret = if clear.exists() { private::load_secret(&clear)? } else { self.secret_to_move()? };
        SealedSecret::seal(&secret, passphrase)?.save(&sealed)?;
        let opened = SealedSecret::load(&sealed)?.open(passphrase).map_err(|e| e.in_file(&sealed))?;
        if opened != secret {
            return Err(Error::malformed(
                &sealed,
                "came back from the disk with another secret; examine the disk",
            ));
        }
        self.remove(&clear)
    }

    /// Puts a sealed secret into the clear again. After a crash it is sealed, or in both places; then this
    /// can be repeated.
    pub fn unseal_secret(&self) -> Result<()> {
        let secret = if self.file(SEALED).exists() { self.unsealed()? } else { self.secret_to_move()? };
        let mut text = Zeroizing::new([0; 65]);
        hex::encode_to_slice(*secret, &mut text[..64]).expect("twice as long");
        text[64] = b'\n';
        private::write(&self.file(CLEAR), &*text)?;
        self.remove(&self.file(SEALED))
    }

    /// The secret, unless it is not this directory's to move.
    fn secret_to_move(&self) -> Result<Zeroizing<[u8; 32]>> {
        if let SecretPlace::Credential(file) = self.secret_place()? {
            return Err(Error::malformed(
                &file,
                "has the node's secret: the service manager keeps it, and not this directory",
            ));
        }
        self.secret()
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(path, "remove")(e)),
            _ => private::sync_dir(&self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::new_node;
    use super::*;

    fn passphrase(text: &str) -> Passphrase {
        Passphrase::new(Zeroizing::new(text.into()))
    }

    fn opened(path: &Path, answer: &'static str) -> NodeDir {
        let mut dir = NodeDir::open(path).expect("opened");
        dir.ask_passphrase(Arc::new(move |_| Ok(passphrase(answer))));
        dir
    }

    /// A node's directory, and its secret.
    fn node() -> (tempfile::TempDir, PathBuf, Zeroizing<[u8; 32]>) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("node");
        new_node(&path);
        let secret = NodeDir::open(&path).expect("opened").secret().expect("read");
        (dir, path, secret)
    }

    #[test]
    fn a_sealed_secret_is_the_same_and_nothing_of_it_is_left_in_the_clear() {
        let (_dir, path, secret) = node();
        NodeDir::open(&path).expect("opened").seal_secret(&passphrase("first of two words")).expect("sealed");
        assert!(!path.join(CLEAR).exists());
        let dir = opened(&path, "first of two words");
        assert_eq!(dir.secret_place().expect("known"), SecretPlace::Sealed);
        assert_eq!(dir.secret().expect("opened"), secret);
        let wrong = opened(&path, "first of two wards").secret().expect_err("wrong").to_string();
        assert!(wrong.contains("secret.sealed") && wrong.contains("passphrase is wrong"), "{wrong}");
        let nobody = NodeDir::open(&path).expect("opened").secret().expect_err("nobody to ask").to_string();
        assert!(nobody.contains("nobody to ask"), "{nobody}");
        // Another passphrase, then none.
        dir.seal_secret(&passphrase("second of two words")).expect("sealed anew");
        assert!(opened(&path, "first of two words").secret().is_err());
        let dir = opened(&path, "second of two words");
        dir.unseal_secret().expect("in the clear");
        let clear = NodeDir::open(&path).expect("opened");
        assert_eq!(
            (clear.secret_place().expect("known"), clear.secret().expect("read")),
            (SecretPlace::Clear, secret)
        );
        assert!(!path.join(SEALED).exists());
    }

    #[test]
    fn a_change_that_was_interrupted_can_be_finished_either_way() {
        for seals in [true, false] {
            let (_dir, path, secret) = node();
            let clear = fs::read(path.join(CLEAR)).expect("read");
            opened(&path, "").seal_secret(&passphrase("some words of mine")).expect("sealed");
            private::write(&path.join(CLEAR), &clear).expect("as if it had not been removed yet");
            let dir = opened(&path, "some words of mine");
            let message = dir.secret().expect_err("in both places").to_string();
            assert!(message.contains("node seal") && message.contains("node unseal"), "{message}");
            match seals {
                true => dir.seal_secret(&passphrase("some words of mine")).expect("sealed"),
                false => dir.unseal_secret().expect("in the clear"),
            }
            assert_eq!(opened(&path, "some words of mine").secret().expect("there"), secret);
        }
    }

    #[test]
    fn credentials_of_the_service_manager_are_taken() {
        let (_dir, path, secret) = node();
        let credentials = tempfile::tempdir().expect("a directory");
        let with = |path: &Path| {
            let mut dir = NodeDir::open(path).expect("opened");
            dir.secrets.credentials = Some(credentials.path().into());
            dir
        };
        let credential = credentials.path().join(SECRET_CREDENTIAL);
        fs::copy(path.join(CLEAR), &credential).expect("copied");
        assert!(with(&path).secret().expect_err("in both").to_string().contains("delete one of the two"));
        fs::remove_file(path.join(CLEAR)).expect("removed");
        assert_eq!(with(&path).secret().expect("passed"), secret);
        let kept = with(&path).seal_secret(&passphrase("some words of mine")).expect_err("not its own");
        assert!(kept.to_string().contains("service manager keeps it"), "{kept}");
        let alone = NodeDir::open(&path).expect("opened").secret().expect_err("nowhere").to_string();
        assert!(alone.contains("service manager"), "{alone}");
        // The passphrase in place of the secret.
        fs::copy(&credential, path.join(CLEAR)).expect("copied");
        fs::remove_file(&credential).expect("removed");
        NodeDir::open(&path).expect("opened").seal_secret(&passphrase("some words of mine")).expect("sealed");
        private::write(&credentials.path().join(PASSPHRASE_CREDENTIAL), b"some words of mine\n")
            .expect("written");
        assert_eq!(with(&path).secret().expect("passed"), secret);
    }
}
