//! One node of a drill: a backup, restored under a certificate and at an address of its own.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use polyclave_api::Right;
use polyclave_config::{
    AuditSettings, Card, ClientCard, ClientPolicy, Cluster, Consent, NodeDir, NodeSettings, Place,
    StockSettings,
};
use polyclave_node::admin::{Instruction, order};
use polyclave_node::audit;
use polyclave_store::{Secret, Store, restore};
use polyclave_transport::Identity;
use serde::Serialize;

use super::scratch;
use crate::key::date;

/// How long the certificates of a drill are valid.
pub const VALID_DAYS: u32 = 30;
/// The file of the real cluster in the directory of a restored node. A directory with it is of a drill.
const REAL: &str = "drilled-cluster.toml";
/// Material for so many blocks is enough: a check value takes one.
const STOCK: usize = 16;

/// What is known of a backup.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// The node of which it is.
    pub node: String,
    /// The file.
    pub backup: PathBuf,
    /// When the last line of the audit log in it was written: it was made then or later.
    pub made_after: Option<String>,
    /// When the file was written: it was made then or earlier.
    pub made_before: Option<String>,
    /// How many keys and versions are in it.
    pub keys: usize,
    /// Blocks that count as spent in it, of all budgets together.
    pub blocks_spent: u64,
    /// Distinguishes the common secrets in it, which a refresh replaces.
    pub common_secrets: Option<String>,
    /// When they were made.
    pub secrets_since: Option<String>,
    /// Why the node was in quarantine.
    pub quarantine: Option<String>,
}

/// Restores a backup into a new directory, as a node of a drill at this place.
pub fn unpack(backup: &Path, key: &Path, dir: &Path, place: &Place) -> Result<Part> {
    let key = Secret::load_file(key)
        .with_context(|| format!("the key file of {} cannot be used", backup.display()))?;
    restore(backup, &key, dir).context("nothing was restored")?;
    let part = settle(backup, dir, place);
    if part.is_err() {
        // This made it, and the first error is the one that matters.
        let _ = std::fs::remove_dir_all(dir);
    }
    part
}

fn settle(backup: &Path, path: &Path, place: &Place) -> Result<Part> {
    let mut dir = NodeDir::open(path)?;
    let name = dir.settings().name.clone();
    let real = dir.cluster()?.with_context(|| {
        format!(
            "{} is a backup of {name} from before it joined a cluster; take a later one",
            backup.display()
        )
    })?;
    scratch::refuse_real_place(&real, place)?;
    real.save(&path.join(REAL))?;
    take_own_identity(&mut dir)?;
    forget_server(&dir)?;
    let before = dir.settings().clone();
    let few = |level: Option<usize>| Some(level.unwrap_or(STOCK).min(STOCK));
    dir.set_settings(NodeSettings {
        listen: place.address.clone(),
        client_listen: place.client_address.clone(),
        audit: AuditSettings { syslog: None, ..before.audit },
        limits: before.limits,
        stock: StockSettings {
            aes_blocks: few(before.stock.aes_blocks),
            des_blocks: few(before.stock.des_blocks),
            ..before.stock
        },
        ..NodeSettings::new(&name, &place.address, &place.client_address)
    })?;
    let store = store_of(&dir)?;
    // A refresh that its operator had ordered is none of the drill.
    store.forget_refresh()?;
    let setup = store.setup()?;
    let written = std::fs::metadata(backup).and_then(|metadata| metadata.modified()).ok();
    let since_1970 = written.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    Ok(Part {
        node: name,
        backup: backup.into(),
        made_after: audit::verify(&dir.audit_path(), None).ok().and_then(|log| log.last),
        made_before: since_1970.map(|time| date(time.as_secs())),
        keys: store.keys()?.len(),
        blocks_spent: store.spent_of_all()?.values().sum(),
        common_secrets: setup.filter(|setup| setup.agreed).map(|setup| hex::encode(&setup.id[..8])),
        secrets_since: store.secrets_since()?.map(date),
        quarantine: store.quarantined()?.map(|quarantine| quarantine.reason),
    })
}

fn store_of(dir: &NodeDir) -> Result<Store> {
    Ok(Store::of(dir, &Secret::from(dir.secret()?))?)
}

/// What gives access to the server of the real store. The restored one is a file.
fn forget_server(dir: &NodeDir) -> Result<()> {
    for file in [dir.store_password_path(), dir.store_authority_path()] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", file.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The real nodes do not know the new certificate, and the private key of the real one is gone.
fn take_own_identity(dir: &mut NodeDir) -> Result<()> {
    if dir.next_identity().is_some() {
        dir.finish_rotation()?;
    }
    let identity = Identity::generate_named(&dir.settings().name, VALID_DAYS)?;
    dir.begin_rotation(&identity.certificate(), &identity.reveal_private_key())?;
    dir.finish_rotation()?;
    Ok(())
}

/// The card of a restored node.
pub fn card(dir: &Path) -> Result<Card> {
    Ok(NodeDir::open(dir)?.card())
}

/// The cluster that the backup of this directory is of.
pub fn real_cluster(dir: &Path) -> Result<Cluster> {
    let file = dir.join(REAL);
    if !file.exists() {
        bail!(
            "{} is not of a drill, and nothing in it was changed; make one with `polyclave cluster drill restore`",
            dir.display()
        );
    }
    Ok(Cluster::load(&file)?)
}

/// Lets a restored node take part in a drill. The client of the drill is the only one that it serves, and may
/// list keys and compute check values.
pub fn join(path: &Path, drill: &Cluster, client: &ClientCard) -> Result<()> {
    let real = real_cluster(path)?;
    scratch::refuse_real_nodes(&real, drill)?;
    let dir = NodeDir::open(path)?;
    dir.set_cluster(drill, Consent::Certificates)?;
    let mut policy = ClientPolicy::default();
    policy.allow(client, &[Right::List], &["*".into()])?;
    dir.save_policy(&policy)?;
    // The rules in the backup may want approvals for a change of rules.
    store_of(&dir)?.note_policy(&policy.to_text())?;
    let name = &dir.settings().name;
    for peer in drill.cards().iter().filter(|card| card.name != *name) {
        // Each comes back from a backup.
        order(&dir, &Instruction::Readmit { node: peer.name.clone() })?;
    }
    Ok(())
}
