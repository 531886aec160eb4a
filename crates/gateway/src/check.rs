//! Finds, before a gateway starts or is asked, what would be missing then: files, and keys at the nodes.

use polyclave_api::{KeyInfo, Mode, Reason};
use polyclave_client::{Client, Error as ClientError};
use polyclave_config::{ClientDir, GatewaySettings};

use crate::login::Login;
use crate::transform::Transformations;
use crate::{Error, Result, tls};

/// What was found out.
pub struct Checked {
    /// Why the nodes could not be asked, if so: then the keys are not checked.
    pub nodes: Option<String>,
    /// How many keys each login's issuer has, or why its server could not be asked.
    pub logins: Vec<std::result::Result<usize, String>>,
}

/// Looks for all files that the settings name, asks the servers of issuers for their keys, and the nodes for
/// all keys.
pub fn check(settings: &GatewaySettings) -> Result<Checked> {
    Transformations::new(&settings.transform)?;
    for listener in &settings.listeners {
        tls::acceptor(listener)?;
    }
    for kmip in &settings.kmip {
        tls::kmip_acceptor(kmip)?;
    }
    for key in &settings.access_keys {
        key.read_secret()?;
    }
    for kms in &settings.kms {
        let dir = kms.socket.parent().unwrap_or(&kms.socket);
        if !dir.is_dir() {
            let error = std::io::Error::other("its directory is not there; make it");
            return Err(Error::Listen { place: kms.socket.display().to_string(), error });
        }
    }
    let logins = check_logins(settings)?;
    let client = Client::open(&ClientDir::open(&settings.client)?)?;
    let of_kms = settings
        .kms
        .iter()
        .map(|kms| (format!("the kms {:?}", kms.name), &kms.key, None, (Mode::Gcm, "gcm")));
    let of_tokens = settings.transform.transformation.iter().map(|one| {
        (format!("the transformation {:?}", one.name), &one.key, Some(one.key_version), (Mode::Ff1, "ff1"))
    });
    let mut wrong = Vec::new();
    let of_xks = settings.xks.iter().flat_map(|xks| {
        let whose = |key: &str| format!("the xks {:?}, id {key:?}", xks.path);
        xks.keys.iter().map(move |of| (whose(&of.id), &of.key, None, (Mode::Gcm, "gcm")))
    });
    for (whose, key, version, needed) in of_kms.chain(of_tokens).chain(of_xks) {
        match client.versions(key) {
            Ok(versions) => {
                let message = problem(&versions, version, needed);
                wrong.extend(message.map(|message| format!("{whose}: the key {key:?} {message}")));
            }
            Err(ClientError::Refused { refusal, .. }) if refusal.reason == Reason::NoSuchKey => {
                wrong.push(format!("{whose}: the nodes have no key {key:?}"));
            }
            Err(e) if wrong.is_empty() => return Ok(Checked { nodes: Some(e.to_string()), logins }),
            Err(_) => break,
        }
    }
    if wrong.is_empty() { Ok(Checked { nodes: None, logins }) } else { Err(Error::Keys(wrong.join("; "))) }
}

/// Reads the files of all logins, and asks their issuers.
fn check_logins(settings: &GatewaySettings) -> Result<Vec<std::result::Result<usize, String>>> {
    let logins = settings.logins.iter().map(|login| Login::new(login, None)).collect::<Result<Vec<_>>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(logins.iter().map(|login| runtime.block_on(login.keys())).collect())
}

/// A mode that a key has to be for, with its name.
type Needed = (Mode, &'static str);

/// What is wrong with the versions of a key for a use of one of them, or of the current one.
fn problem(versions: &[KeyInfo], version: Option<u32>, (mode, name): Needed) -> Option<String> {
    let found = match version {
        None => versions.first(),
        Some(version) => versions.iter().find(|info| info.version == version),
    };
    let Some(info) = found else { return Some(format!("has no version {}", version.unwrap_or(1))) };
    let fits = info.properties.modes.contains(&mode);
    (!fits).then(|| format!("is not for {name}; take one that was made with --modes {name}"))
}
