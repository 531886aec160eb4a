//! The directory of a node: which files it has, and how they are made, read and joined to a cluster.
//!
//! | file | private | |
//! |---|---|---|
//! | `node.toml` | | [`NodeSettings`] |
//! | `identity.key`, `identity.crt` | the key | TLS identity: PEM of key and certificate; of the certificate alone |
//! | `identity-next.key`, `identity-next.crt` | the key | the same, while it changes |
//! | `secret.key`, or `secret.sealed` | yes | seals the store; in the clear, or under a passphrase. Neither, if the service manager keeps it |
//! | `cluster.toml` | | [`Cluster`], once the node has joined one |
//! | `clients.toml` | | [`ClientPolicy`] |
//! | `clients.approval` | | the approval of it, if it needed one |
//! | `store.redb` | yes | shares of keys, sealed, unless `node.toml` names a server for the store |
//! | `store.password` | yes | the password for that server, if it takes one |
//! | `store-ca.pem` | | the certificate of the authority for that server, if it is on another machine |
//! | `needs.toml` | | [`Needs`], once a feature is switched on |
//! | `audit.log` | yes | who did what, lately; earlier files are `audit-NUMBER.log`, after their last record |

use std::path::{Path, PathBuf};

use polyclave_api::Approval;
use polyclave_transport::CertificateDer;

use crate::{
    Card, ClientPolicy, Cluster, Consent, Error, Needs, NodeSettings, Place, Result, StoredIdentity,
    certificate_fingerprint, load_approval, needs, private, rotation, save_approval, text,
};

mod secret;

use secret::Secrets;
pub use secret::{AskPassphrase, SecretPlace};

const SETTINGS: &str = "node.toml";
const CLUSTER: &str = "cluster.toml";
const POLICY: &str = "clients.toml";
const POLICY_APPROVAL: &str = "clients.approval";
const STORE: &str = "store.redb";
const STORE_PASSWORD: &str = "store.password";
const STORE_AUTHORITY: &str = "store-ca.pem";
const AUDIT: &str = "audit.log";

/// A node's directory.
#[derive(Debug)]
pub struct NodeDir {
    path: PathBuf,
    settings: NodeSettings,
    identity: StoredIdentity,
    next: Option<StoredIdentity>,
    secrets: Secrets,
}

/// A file of a node's directory that a backup keeps as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// Its name in the directory.
    pub name: &'static str,
    /// Whether only its owner may read it.
    pub private: bool,
    /// Whether the node cannot exist without it.
    pub needed: bool,
}

/// The name of the store of a standby pair, before and behind the partner's name.
const STANDBY: &str = "standby-";
const STANDBY_ENDING: &str = ".redb";

impl NodeDir {
    /// The file of the settings. A directory without it is not a node's.
    pub const SETTINGS: &str = SETTINGS;

    /// The file of the secret in the clear. Every backup has it, since a backup is sealed itself.
    pub const SECRET: &str = secret::CLEAR;

    /// What a program has to know to open the directory.
    pub const NEEDS: &str = needs::FILE;

    /// All files except the store. First comes what a program has to know to use the others. The next
    /// identity comes before the current one. If they are read in this order while the next takes the place
    /// of the current one, the new one is read twice rather than not at all.
    pub const KEPT: [KeptFile; 12] = [
        KeptFile { name: NodeDir::NEEDS, private: false, needed: false },
        KeptFile { name: SETTINGS, private: false, needed: true },
        KeptFile { name: rotation::NEXT_KEY, private: true, needed: false },
        KeptFile { name: rotation::NEXT_CERTIFICATE, private: false, needed: false },
        KeptFile { name: rotation::KEY, private: true, needed: true },
        KeptFile { name: rotation::CERTIFICATE, private: false, needed: true },
        KeptFile { name: NodeDir::SECRET, private: true, needed: true },
        KeptFile { name: CLUSTER, private: false, needed: false },
        KeptFile { name: POLICY, private: false, needed: true },
        KeptFile { name: STORE_PASSWORD, private: true, needed: false },
        KeptFile { name: STORE_AUTHORITY, private: false, needed: false },
        KeptFile { name: AUDIT, private: true, needed: false },
    ];

    /// Makes the directory of a new node, with a fresh secret and the given identity. Returns the node's
    /// card. An empty directory may be there already, because a package makes one.
    pub fn init(path: &Path, settings: &NodeSettings, certificate: &[u8], key: &[u8]) -> Result<Card> {
        settings.check()?;
        let identity = StoredIdentity::new(certificate, key)?;
        private::make_or_take_dir(path)?;
        let secrets = Secrets::of_this_process();
        let dir = NodeDir { path: path.into(), settings: settings.clone(), identity, next: None, secrets };
        dir.identity.save(&dir.file(rotation::KEY), &dir.file(rotation::CERTIFICATE))?;
        private::generate_secret(&dir.file(secret::CLEAR))?;
        dir.save_policy(&ClientPolicy::default())?;
        // Last, since without it nothing is a node's directory.
        dir.save_settings()?;
        Ok(dir.card())
    }

    /// Adds a worker to the settings of this node. These are the settings of its first worker. Returns the
    /// new worker's number. The node's card has it from now on.
    pub fn add_worker(&mut self, place: Place) -> Result<u16> {
        let mut settings = self.settings.clone();
        settings.workers.push(place);
        let number = settings.workers.len() as u16;
        self.set_settings(settings)?;
        Ok(number)
    }

    /// Makes the directory of another worker of this node, with the same identity, secret, cluster and rules.
    /// It listens where it is reached; `http_listen` is for its health and metrics.
    pub fn init_worker(&self, path: &Path, number: u16, http_listen: Option<String>) -> Result<NodeDir> {
        let place = usize::from(number).checked_sub(1).and_then(|index| self.settings.workers.get(index));
        let place = place.ok_or_else(|| {
            Error::misuse(format!(
                "{SETTINGS} of {} says nothing of a worker {number}: add its address and client_address under [[workers]]",
                self.path.display()
            ))
        })?;
        let (address, client_address) = (place.address.clone(), place.client_address.clone());
        let settings = NodeSettings {
            listen: address.clone(),
            client_listen: client_address.clone(),
            address,
            client_address,
            http_listen,
            worker: number,
            workers: Vec::new(),
            ..self.settings.clone()
        };
        settings.check()?;
        private::make_or_take_dir(path)?;
        let sealed = KeptFile { name: secret::SEALED, private: true, needed: false };
        let others = [SETTINGS, AUDIT];
        for kept in NodeDir::KEPT.iter().chain([&sealed]).filter(|kept| !others.contains(&kept.name)) {
            let (from, to) = (self.file(kept.name), path.join(kept.name));
            match (from.exists(), kept.private) {
                (false, _) => {}
                (true, true) => private::write(&to, &private::read(&from)?)?,
                (true, false) => private::write_public(&to, private::read_public(&from)?.as_bytes())?,
            }
        }
        // Last, since without it nothing is a node's directory.
        private::write_public(&path.join(SETTINGS), render(&settings).as_bytes())?;
        NodeDir::open(path)
    }

    /// Opens a node's directory, if this program knows all that it needs. If a crash interrupted a change of
    /// identity, it is finished or undone first.
    pub fn open(path: &Path) -> Result<NodeDir> {
        if !path.join(SETTINGS).is_file() {
            let detail =
                format!("is not the directory of a node: it has no {SETTINGS}; make one with `node init`");
            return Err(Error::malformed(path, detail));
        }
        Needs::of(path)?.met().map_err(|e| e.in_file(path))?;
        let settings: NodeSettings = text::load(&path.join(SETTINGS))?;
        settings.check().map_err(|e| e.in_file(&path.join(SETTINGS)))?;
        let (identity, next) = rotation::recover(path)?;
        Ok(NodeDir { path: path.into(), settings, identity, next, secrets: Secrets::of_this_process() })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The settings of the node.
    pub fn settings(&self) -> &NodeSettings {
        &self.settings
    }

    /// Changes the settings of the node.
    pub fn set_settings(&mut self, settings: NodeSettings) -> Result<()> {
        settings.check()?;
        self.settings = settings;
        self.save_settings()
    }

    /// The node's identity.
    pub fn identity(&self) -> &StoredIdentity {
        &self.identity
    }

    /// The node's next identity, while its identity changes.
    pub fn next_identity(&self) -> Option<&StoredIdentity> {
        self.next.as_ref()
    }

    /// What others need to know about it. It has both certificates while the identity changes.
    pub fn card(&self) -> Card {
        let settings = &self.settings;
        let identities = [Some(&self.identity), self.next.as_ref()];
        let certificates: Vec<CertificateDer<'static>> =
            identities.into_iter().flatten().map(|identity| identity.certificate.clone()).collect();
        Card {
            name: settings.name.clone(),
            address: settings.address.clone(),
            client_address: settings.client_address.clone(),
            certificates,
            workers: settings.workers.clone(),
        }
    }

    /// Begins to change the node's identity. The returned card has the certificates of both identities. It
    /// has to reach all other nodes and clients before [`NodeDir::finish_rotation`].
    pub fn begin_rotation(&mut self, certificate: &[u8], key: &[u8]) -> Result<Card> {
        self.refuse_further_worker("key and certificate")?;
        if self.next.is_some() {
            return Err(Error::misuse("the identity is already being changed; finish that first"));
        }
        let next = StoredIdentity::new(certificate, key)?;
        if next.certificate == self.identity.certificate {
            return Err(Error::misuse("the new certificate is the old one; make a fresh identity"));
        }
        rotation::begin(&self.path, &next)?;
        self.next = Some(next);
        Ok(self.card())
    }

    /// Makes the next identity the node's only one.
    pub fn finish_rotation(&mut self) -> Result<Card> {
        let Some(next) = self.next.clone() else {
            return Err(Error::misuse("the identity is not being changed; begin that first"));
        };
        rotation::finish(&self.path, &next)?;
        self.identity = next;
        self.next = None;
        Ok(self.card())
    }

    /// The cluster that the node belongs to, if any.
    pub fn cluster(&self) -> Result<Option<Cluster>> {
        let path = self.file(CLUSTER);
        path.exists().then(|| Cluster::load(&path)).transpose()
    }

    /// Joins a cluster, or accepts a changed file of it. It has to be the same cluster, and contain this node
    /// unchanged.
    pub fn set_cluster(&self, cluster: &Cluster, consent: Consent) -> Result<()> {
        if let Some(before) = self.cluster()? {
            if before.lasting_digest() != cluster.lasting_digest() {
                return Err(Error::misuse(
                    "the node belongs to another cluster; a node belongs to one as long as it lives",
                ));
            }
            if consent == Consent::None {
                cluster.refuse_replaced(&before)?;
            }
        }
        if cluster.party_of(&self.identity.certificate) != cluster.party_named(&self.settings.name) {
            let name = &self.settings.name;
            return Err(Error::misuse(format!(
                "the cluster has no node {name} with this certificate; update its card"
            )));
        }
        if cluster.party_of(&self.identity.certificate).is_none() {
            return Err(Error::misuse(
                "the cluster does not know this node; define it with this node's card",
            ));
        }
        if let Some(listed) = cluster.card_named(&self.settings.name) {
            self.check_listed(listed)?;
        }
        cluster.save(&self.file(CLUSTER))
    }

    /// Refuses a cluster that does not contain this node as it is.
    pub fn check_member(&self, cluster: &Cluster) -> Result<()> {
        let name = &self.settings.name;
        let listed =
            cluster.card_named(name).filter(|card| card.certificates.contains(&self.identity.certificate));
        let unknown = || {
            Error::Misuse(format!("the cluster has no node {name} with this certificate; update its card"))
        };
        self.check_listed(listed.ok_or_else(unknown)?)
    }

    /// Goes over to the cluster that has taken the keys of this node's one over, or joins it with a new node.
    /// The caller has made sure that the node's store belongs to it.
    pub fn follow_cluster(&self, cluster: &Cluster) -> Result<()> {
        self.check_member(cluster)?;
        cluster.save(&self.file(CLUSTER))
    }

    /// Each node checks its own card. So if all nodes have a file with the same fingerprint, no card in it
    /// was changed before the cluster was defined.
    fn check_listed(&self, listed: &Card) -> Result<()> {
        let own = self.card();
        let name = &own.name;
        let foreign = listed.certificates.iter().find(|certificate| !own.certificates.contains(certificate));
        if let Some(foreign) = foreign {
            return Err(Error::misuse(format!(
                "the cluster file has a certificate for {name} that this node does not have ({}): who has its key could take this \
                 node's place. Put this node's card into the file with `cluster update`",
                certificate_fingerprint(foreign)
            )));
        }
        // The first worker knows where all of them are, and each other one where it is.
        let listed: Vec<Place> = match self.settings.worker {
            0 => listed.places().collect(),
            number => listed.places().skip(number.into()).take(1).collect(),
        };
        let own: Vec<Place> = own.places().collect();
        let addresses = |places: &[Place]| {
            let message =
                places.iter().map(|place| format!("{}, for clients {}", place.address, place.client_address));
            if places.is_empty() { "nowhere".to_owned() } else { message.collect::<Vec<_>>().join("; ") }
        };
        if listed != own {
            return Err(Error::misuse(format!(
                "the cluster file has {name} at {}; by its own settings it is at {}. Put the card of the node's first worker into the file \
                 with `cluster update`",
                addresses(&listed),
                addresses(&own)
            )));
        }
        Ok(())
    }

    /// What clients may do here.
    pub fn policy(&self) -> Result<ClientPolicy> {
        ClientPolicy::load(&self.file(POLICY))
    }

    /// Changes what clients may do here.
    pub fn save_policy(&self, policy: &ClientPolicy) -> Result<()> {
        self.refuse_further_worker("the rules for clients")?;
        policy.save(&self.file(POLICY))
    }

    /// Replaces what clients may do here by a file, as it is, if it is in order. Its approval is there before
    /// it is.
    pub fn replace_policy(&self, file: &Path, approval: Option<&Approval>) -> Result<ClientPolicy> {
        self.refuse_further_worker("the rules for clients")?;
        let text = private::read_public(file)?;
        let policy = ClientPolicy::parse(&text).map_err(|e| e.in_file(file))?;
        if let Some(approval) = approval {
            save_approval(approval, &self.file(POLICY_APPROVAL))?;
        }
        private::write_public(&self.file(POLICY), text.as_bytes())?;
        Ok(policy)
    }

    /// The approval of the policy, if one was left beside it.
    pub fn policy_approval(&self) -> Result<Option<Approval>> {
        let path = self.file(POLICY_APPROVAL);
        path.exists().then(|| load_approval(&path).map(|(approval, _)| approval)).transpose()
    }

    /// Where the policy is, to see whether it has changed.
    pub fn policy_path(&self) -> PathBuf {
        self.file(POLICY)
    }

    /// Where the store is.
    pub fn store_path(&self) -> PathBuf {
        self.file(STORE)
    }

    /// Where the store of this node's shares in the standby pair with another node is.
    pub fn standby_path(&self, partner: &str) -> PathBuf {
        self.file(&format!("{STANDBY}{partner}{STANDBY_ENDING}"))
    }

    /// The stores of standby pairs that are there, with those that are not complete.
    pub fn standby_stores(&self) -> Result<Vec<PathBuf>> {
        let unreadable = |cause| Error::Io { path: self.path().into(), doing: "read", cause };
        let mut stores = Vec::new();
        for entry in std::fs::read_dir(self.path()).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with(STANDBY) && name.contains(STANDBY_ENDING) {
                stores.push(path);
            }
        }
        stores.sort();
        Ok(stores)
    }

    /// Where the password for the server of the store is, if it takes one.
    pub fn store_password_path(&self) -> PathBuf {
        self.file(STORE_PASSWORD)
    }

    /// Where the certificate of the authority is that signed the certificate of the store's server.
    pub fn store_authority_path(&self) -> PathBuf {
        self.file(STORE_AUTHORITY)
    }

    /// Where the audit log is.
    pub fn audit_path(&self) -> PathBuf {
        self.file(AUDIT)
    }

    fn refuse_further_worker(&self, what: &str) -> Result<()> {
        match self.settings.worker {
            0 => Ok(()),
            number => Err(Error::misuse(format!(
                "this directory is of worker {number}, and {what} are changed in that of the node's first worker"
            ))),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn save_settings(&self) -> Result<()> {
        private::write_public(&self.file(SETTINGS), render(&self.settings).as_bytes())
    }
}

fn render(settings: &NodeSettings) -> String {
    text::render("Settings of a node of Polyclave.", settings)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::card::tests::{card, certificate};
    use crate::identity::tests::identity;

    pub(crate) fn new_node(path: &Path) -> Card {
        let identity = identity(1);
        let settings = NodeSettings::new("a", "a.example:1", "a.example:2");
        NodeDir::init(path, &settings, &identity.certificate, &identity.key).expect("made")
    }

    #[test]
    fn a_node_comes_back_with_the_same_secret() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("node");
        let card = new_node(&path);
        let (one, two) = (NodeDir::open(&path).expect("opened"), NodeDir::open(&path).expect("opened"));
        assert_eq!(one.card(), card);
        assert_eq!(one.identity(), &identity(1));
        assert_eq!(one.secret().expect("read"), two.secret().expect("read"));
        assert_eq!(one.cluster().expect("none is no error"), None);
    }

    #[test]
    fn a_node_is_never_made_over_another() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("node");
        new_node(&path);
        let secret = NodeDir::open(&path).expect("opened").secret().expect("read");
        let settings = NodeSettings::new("b", "b.example:1", "b.example:2");
        let again = NodeDir::init(&path, &settings, &identity(2).certificate, &identity(2).key);
        assert!(matches!(again, Err(Error::Exists { .. })));
        assert_eq!(NodeDir::open(&path).expect("opened").secret().expect("read"), secret);
        assert!(NodeDir::open(dir.path()).is_err());
    }

    #[test]
    fn an_exposed_secret_or_identity_stops_the_node() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("node");
        new_node(&path);
        let expose = |name: &str| {
            let open_to_all = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(path.join(name), open_to_all).expect("set");
        };
        expose(NodeDir::SECRET);
        assert!(matches!(NodeDir::open(&path).expect("opened").secret(), Err(Error::Exposed { .. })));
        expose(rotation::KEY);
        assert!(matches!(NodeDir::open(&path), Err(Error::Exposed { .. })));
    }

    #[test]
    fn a_node_joins_one_cluster_that_knows_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("node");
        let mine = new_node(&path);
        let node = NodeDir::open(&path).expect("opened");
        let stranger = Cluster::define("shamir", 1, vec![card("a", 8), card("b", 2)]).expect("it fits");
        assert!(node.set_cluster(&stranger, Consent::None).is_err());
        let without = Cluster::define("shamir", 1, vec![card("c", 8), card("b", 2)]).expect("it fits");
        assert!(node.set_cluster(&without, Consent::None).is_err());
        let mut cluster = Cluster::define("shamir", 1, vec![mine.clone(), card("b", 2)]).expect("it fits");
        node.set_cluster(&cluster, Consent::None).expect("joined");
        cluster.replace(card("b", 7)).expect("it fits");
        let error = node.set_cluster(&cluster, Consent::None).expect_err("replaced in silence").to_string();
        assert!(error.contains("--expect"), "{error}");
        node.set_cluster(&cluster, Consent::Certificates).expect("another certificate is no other cluster");
        assert_eq!(node.cluster().expect("read"), Some(cluster));
        let other = Cluster::define("shamir", 1, vec![mine, card("b", 2)]).expect("it fits");
        assert!(node.set_cluster(&other, Consent::Cluster).is_err());
    }

    #[test]
    fn a_node_joins_no_cluster_that_has_it_otherwise_than_it_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("node");
        let mine = new_node(&path);
        let node = NodeDir::open(&path).expect("opened");
        let with = |change: &dyn Fn(&mut Card)| {
            let mut listed = mine.clone();
            change(&mut listed);
            let cluster = Cluster::define("shamir", 1, vec![listed, card("b", 2)]).expect("it fits");
            node.set_cluster(&cluster, Consent::Cluster).map_err(|e| e.to_string())
        };
        let second = with(&|card| card.certificates.push(certificate(9))).expect_err("somebody else's");
        assert!(second.contains(&certificate_fingerprint(&certificate(9))), "{second}");
        assert!(
            with(&|card| card.address = "b.example:99".into())
                .expect_err("elsewhere")
                .contains("b.example:99")
        );
        assert!(with(&|card| card.client_address = "b.example:99".into()).is_err());
        assert_eq!(node.cluster().expect("readable"), None, "nothing was written");
        with(&|_| ()).expect("as it is");
    }
}
