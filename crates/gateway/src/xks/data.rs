//! Encryption and decryption of a request's data by the nodes.

use std::sync::Arc;

use polyclave_api::{KeyInfo, KeyVersion, Reason, Usage};
use polyclave_client::Error;
use zeroize::Zeroizing;

use super::error::{Exception, Kind, Result};
use super::keys::{Current, Nodes, check_use};
use super::requests::{Decrypt, Encrypt};
use super::sealed::{self, Sealed};

/// Encrypts under the current version of a key.
pub(super) async fn encrypt(
    (current, nodes): (&Current, Nodes<'_>),
    key: &str,
    asked: Encrypt,
) -> Result<Sealed> {
    let asked = Arc::new(asked);
    let (info, is_shown) = current.known(nodes, key).await?;
    match encrypt_under(nodes, info, asked.clone()).await {
        // The version may have been retired or deleted a moment ago, or the key may be another one.
        Err(Exception { kind: Kind::KeyNotFound | Kind::InvalidKeyUsage | Kind::InvalidState, .. })
            if !is_shown =>
        {
            encrypt_under(nodes, current.shown(nodes, key).await?, asked).await
        }
        done => done,
    }
}

async fn encrypt_under(nodes: Nodes<'_>, info: KeyInfo, asked: Arc<Encrypt>) -> Result<Sealed> {
    check_use(&info, Usage::Encrypt)?;
    // A value of integrity is given after a decryption only.
    if asked.integrity {
        check_use(&info, Usage::Decrypt)?;
    }
    let asked = nodes.asker.try_to_ask(nodes.queue, move |client| sealed::seal(client, &info, &asked));
    Ok(asked.await??)
}

/// Decrypts under the version of a key that the metadata of the ciphertext names.
pub(super) async fn decrypt(
    (current, nodes): (&Current, Nodes<'_>),
    key: &str,
    asked: Decrypt,
) -> Result<Zeroizing<Vec<u8>>> {
    let id = sealed::version_of(&asked.metadata).ok_or_else(Exception::invalid_ciphertext)?;
    let version = KeyVersion { name: key.into(), id: Some(id) };
    let of_nodes = version.clone();
    let asked = nodes.asker.try_to_ask(nodes.queue, move |client| sealed::open(client, &of_nodes, &asked));
    match asked.await? {
        Ok(plaintext) => Ok(plaintext),
        Err(error) => Err(why_not((current, nodes), version, error).await),
    }
}

/// Why a ciphertext was not decrypted, by what the nodes show of the key.
async fn why_not((current, nodes): (&Current, Nodes<'_>), version: KeyVersion, error: Error) -> Exception {
    let Error::Refused { refusal, .. } = &error else { return error.into() };
    match refusal.reason {
        // If the key is there, the metadata is not of it, or of a version that was destroyed.
        Reason::NoSuchKey => match current.shown(nodes, &version.name).await {
            Ok(_) => Exception::invalid_ciphertext(),
            Err(exception) => exception,
        },
        Reason::NotForThis => {
            let info = nodes
                .asker
                .ask(nodes.queue, move |client| client.key_with_id(version.clone()).info().cloned());
            match info.await {
                Ok(info) => check_use(&info, Usage::Decrypt).err().unwrap_or_else(|| error.into()),
                Err(_) => error.into(),
            }
        }
        _ => error.into(),
    }
}
