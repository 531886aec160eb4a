//! `node.toml`: the settings of one node.

use polyclave_protocol::stock::Transfers;
use serde::{Deserialize, Serialize};

use crate::card::{MAX_WORKERS, check_address};
use crate::{AuditSettings, Error, Place, Result, TraceSettings, check_name};

/// Settings of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSettings {
    /// Its name in the cluster.
    pub name: String,
    /// `host:port` under which other nodes reach it.
    pub address: String,
    /// `host:port` under which clients reach it.
    pub client_address: String,
    /// `host:port` on which it listens for other nodes.
    pub listen: String,
    /// `host:port` on which it listens for clients.
    pub client_listen: String,
    /// `host:port` on which it answers HTTP requests about its health and metrics; none if absent.
    pub http_listen: Option<String>,
    /// How many processors the node counts on; all that the machine has if absent. It makes material with
    /// half of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<usize>,
    /// The PostgreSQL server that keeps its store, `postgresql://USER@HOST/DATABASE`; a file in its directory
    /// if absent. Moved by `node migrate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Which of the node's workers this directory is of. They share one store, at a server.
    #[serde(default, skip_serializing_if = "is_first")]
    pub worker: u16,
    /// Where the further workers are, from number 1 on; in the settings of the first worker alone. They come
    /// into the node's card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Place>,
    /// The settings of its audit log.
    #[serde(default)]
    pub audit: AuditSettings,
    /// How much clients may use.
    #[serde(default)]
    pub limits: NodeLimits,
    /// How much material the nodes keep in stock, under protocols that need some. The same at all nodes.
    #[serde(default)]
    pub stock: StockSettings,
    /// What the nodes do where they are far from each other.
    #[serde(default)]
    pub latency: LatencySettings,
    /// When the node orders a refresh of all shares by itself.
    #[serde(default)]
    pub refresh: RefreshSettings,
    /// When the node warns of certificates that end.
    #[serde(default)]
    pub certificates: CertificateSettings,
    /// Where traces of requests go.
    #[serde(default)]
    pub traces: TraceSettings,
}

fn is_first(worker: &u16) -> bool {
    *worker == 0
}

/// When a node warns of certificates that end: its own, and those of its peers and clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CertificateSettings {
    /// How many days before the end it warns; 0: only once they have ended.
    pub warn_days: u32,
}

impl CertificateSettings {
    /// Enough days for people on holiday, and for giving a changed file to everybody.
    pub const WARN_DAYS: u32 = 30;
}

impl Default for CertificateSettings {
    fn default() -> CertificateSettings {
        CertificateSettings { warn_days: CertificateSettings::WARN_DAYS }
    }
}

/// When a node orders a refresh by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RefreshSettings {
    /// How many days after the last refresh; never if absent. It begins once all nodes want it, so write the
    /// same at all of them.
    pub every_days: Option<u32>,
}

impl RefreshSettings {
    fn check(&self) -> Result<()> {
        match self.every_days {
            Some(0) => Err(Error::misuse(
                "every_days under [refresh] is 0; write at least 1, or leave it out for no scheduled refresh",
            )),
            _ => Ok(()),
        }
    }
}

/// The most bytes of material that settings can ask a node to hold: it is held in memory.
const MAX_STOCK_BYTES: u64 = 16 << 30;
/// About how much memory the material for one block takes.
const AES_BLOCK_BYTES: u64 = 470 << 10;
const DES_BLOCK_BYTES: u64 = 230 << 10;

/// Levels of the stock, in blocks. The nodes make material in the background up to this level, and hold it in
/// memory. What is absent is as the protocol has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StockSettings {
    /// Blocks of AES, about 370 kB each (spdz-lt), 470 kB (tinytable-linear64) or 26 kB (spdz-tower); 0 for a
    /// cluster that has no keys of it.
    pub aes_blocks: Option<usize>,
    /// Blocks of Triple DES, about 230 kB each; 0 for a cluster that has no keys of it.
    pub des_blocks: Option<usize>,
    /// What oblivious transfers of `spdz-tower` are good at: little computation, few bytes, or the fewest
    /// bytes under the assumption that learning parity with noise is hard.
    #[serde(skip_serializing_if = "is_usual")]
    pub transfers: Transfers,
}

fn is_usual(transfers: &Transfers) -> bool {
    *transfers == Transfers::default()
}

impl StockSettings {
    /// With these levels.
    pub fn of(aes_blocks: usize, des_blocks: usize) -> StockSettings {
        StockSettings {
            aes_blocks: Some(aes_blocks),
            des_blocks: Some(des_blocks),
            ..StockSettings::default()
        }
    }

    fn check(&self) -> Result<()> {
        if self.aes_blocks == Some(0) && self.des_blocks == Some(0) {
            return Err(Error::misuse(
                "aes_blocks and des_blocks are both 0: nothing could ever be computed; write at least 1 for one of them",
            ));
        }
        let [aes_blocks, des_blocks] = [self.aes_blocks, self.des_blocks].map(Option::unwrap_or_default);
        let bytes = (aes_blocks as u64)
            .saturating_mul(AES_BLOCK_BYTES)
            .saturating_add((des_blocks as u64).saturating_mul(DES_BLOCK_BYTES));
        if bytes > MAX_STOCK_BYTES {
            return Err(Error::misuse(format!(
                "a stock for {aes_blocks} blocks of AES and {des_blocks} of DES takes about {} GiB of memory; at most {} GiB are \
                 allowed: write lower levels under [stock]",
                bytes >> 30,
                MAX_STOCK_BYTES >> 30
            )));
        }
        Ok(())
    }
}

/// How blocks are computed in few round trips where the nodes are far from each other, under protocols that
/// can: through garbled circuits, which the nodes make ahead. What the first node has here counts for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatencySettings {
    /// So many milliseconds there and back between nodes are far. Short messages of HMAC take circuits at any
    /// distance.
    pub from_ms: u32,
    /// How many circuits the nodes keep for each cipher that is asked for, about 180 kB each for AES-128,
    /// 250 kB for Triple DES and 730 kB for SHA-256, between two nodes 430, 600 and 1,700 kB; of SHA-512 as
    /// many as take 64 MB; 0 for none. If absent as the protocol has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuits: Option<usize>,
}

impl LatencySettings {
    /// Less than this many milliseconds there and back are as quick in rounds.
    pub const FROM_MS: u32 = 5;
    /// The most circuits for a cipher. They are held in memory.
    pub const MOST_CIRCUITS: usize = 64;

    fn check(&self) -> Result<()> {
        match self.circuits {
            Some(circuits) if circuits > LatencySettings::MOST_CIRCUITS => Err(Error::misuse(format!(
                "circuits under [latency] is {circuits}; write at most {}",
                LatencySettings::MOST_CIRCUITS
            ))),
            _ => Ok(()),
        }
    }
}

impl Default for LatencySettings {
    fn default() -> LatencySettings {
        LatencySettings { from_ms: LatencySettings::FROM_MS, circuits: None }
    }
}

/// How much clients may use at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeLimits {
    /// Requests of one client at the same time. Fewer than there are channels, so that one client cannot hold
    /// them all.
    pub requests_at_once_per_client: usize,
    /// Connections of one client.
    pub connections_per_client: usize,
    /// Connections of all clients together.
    pub connections: usize,
    /// Bytes of payload per second and client; no limit if absent.
    pub bytes_per_second_per_client: Option<u64>,
    /// New requests per second and client; no limit if absent.
    pub requests_per_second_per_client: Option<u64>,
    /// Concurrent computations with the same other nodes.
    pub channels: usize,
    /// Memory, in MiB, in which one use of a key is computed. A use that takes more is cut into pieces. It
    /// must be the same at all nodes, because all have to cut in the same way.
    pub memory_per_request_mib: usize,
    /// The same for all concurrent computations. Further requests wait.
    pub memory_mib: usize,
    /// Keys of all clients together. Beyond this number no key is made.
    pub keys: usize,
    /// Payment commands under one key that may fail in an hour, at all nodes together: each tells its client
    /// something of a PIN or a code.
    pub failed_payments_an_hour: u64,
}

impl Default for NodeLimits {
    fn default() -> NodeLimits {
        NodeLimits {
            requests_at_once_per_client: 8,
            connections_per_client: 32,
            connections: 512,
            bytes_per_second_per_client: None,
            requests_per_second_per_client: None,
            channels: 16,
            memory_per_request_mib: 16,
            memory_mib: 256,
            keys: 100_000,
            failed_payments_an_hour: 1000,
        }
    }
}

impl NodeSettings {
    /// The settings of a node that listens on the addresses under which it is reached, with default limits.
    pub fn new(name: &str, address: &str, client_address: &str) -> NodeSettings {
        NodeSettings {
            name: name.into(),
            address: address.into(),
            client_address: client_address.into(),
            listen: address.into(),
            client_listen: client_address.into(),
            http_listen: None,
            processors: None,
            store: None,
            worker: 0,
            workers: Vec::new(),
            audit: AuditSettings::default(),
            limits: NodeLimits::default(),
            stock: StockSettings::default(),
            latency: LatencySettings::default(),
            refresh: RefreshSettings::default(),
            certificates: CertificateSettings::default(),
            traces: TraceSettings::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_name("node", &self.name)?;
        let addresses = [&self.address, &self.client_address, &self.listen, &self.client_listen];
        addresses.into_iter().chain(&self.http_listen).try_for_each(|a| check_address(a))?;
        if self.store.as_ref().is_some_and(|url| !url.starts_with("postgresql://")) {
            return Err(Error::misuse(
                "store is not postgresql://USER@HOST/DATABASE; leave it out for a file in the node's directory",
            ));
        }
        if self.store.is_none() && (self.worker > 0 || !self.workers.is_empty()) {
            return Err(Error::misuse(
                "a node with several workers keeps its store at a server that all of them reach: move it there first (`polyclave node migrate \
                 DIR --to postgresql://USER@HOST/DATABASE`)",
            ));
        }
        if self.worker > 0 && !self.workers.is_empty() {
            return Err(Error::misuse(
                "workers belong into the settings of the first worker; remove them here",
            ));
        }
        if usize::from(self.worker) >= MAX_WORKERS {
            return Err(Error::misuse(format!("worker is {}; it is below {MAX_WORKERS}", self.worker)));
        }
        if self.processors == Some(0) {
            return Err(Error::misuse(
                "processors is 0; write at least 1, or leave it out to count on all that the machine has",
            ));
        }
        self.workers.iter().try_for_each(Place::check)?;
        self.stock.check()?;
        self.audit.check()?;
        self.refresh.check()?;
        self.latency.check()?;
        self.traces.check()?;
        let limits = &self.limits;
        let counts = [
            ("requests_at_once_per_client", limits.requests_at_once_per_client as u64),
            ("connections_per_client", limits.connections_per_client as u64),
            ("connections", limits.connections as u64),
            ("channels", limits.channels as u64),
            ("memory_per_request_mib", limits.memory_per_request_mib as u64),
            ("bytes_per_second_per_client", limits.bytes_per_second_per_client.unwrap_or(1)),
            ("requests_per_second_per_client", limits.requests_per_second_per_client.unwrap_or(1)),
        ];
        if limits.memory_mib < limits.memory_per_request_mib {
            let (all, one) = (limits.memory_mib, limits.memory_per_request_mib);
            return Err(Error::misuse(format!(
                "memory_mib is {all} and memory_per_request_mib {one}: no request could be served; write at least {one} for memory_mib"
            )));
        }
        match counts.iter().find(|(_, count)| *count == 0) {
            Some((name, _)) => {
                Err(Error::misuse(format!("{name} is 0: the node could serve nobody; write at least 1")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WhenUnwritable, text};

    const SHORT: &str = "name='a'\naddress='h:1'\nclient_address='h:2'\nlisten='h:1'\nclient_listen='h:2'\n";

    #[test]
    fn what_is_left_out_has_its_default() {
        let short: NodeSettings = text::parse(SHORT).expect("it fits");
        assert_eq!(short, NodeSettings::new("a", "h:1", "h:2"));
        let some: NodeSettings = text::parse(&format!("{SHORT}[limits]\nchannels = 2\n")).expect("it fits");
        assert_eq!((some.limits.channels, some.limits.connections), (2, 512));
        let some: NodeSettings = text::parse(&format!("{SHORT}[stock]\naes_blocks = 8\n")).expect("it fits");
        let eight = StockSettings { aes_blocks: Some(8), ..StockSettings::default() };
        assert_eq!(some.stock, eight);
        let some: NodeSettings =
            text::parse(&format!("{SHORT}[refresh]\nevery_days = 30\n")).expect("it fits");
        assert_eq!(some.refresh.every_days, Some(30));
        let some: NodeSettings =
            text::parse(&format!("{SHORT}[certificates]\nwarn_days = 7\n")).expect("it fits");
        assert_eq!((short.certificates.warn_days, some.certificates.warn_days), (30, 7));
        let some = format!("{SHORT}[audit]\nwhen_unwritable = 'serve'\nkeep_files = 9\n");
        let some: NodeSettings = text::parse(&some).expect("it fits");
        let expected = (true, WhenUnwritable::Serve, 64, Some(9));
        let AuditSettings { enabled, when_unwritable, rotate_mib, keep_files, syslog: None } = some.audit
        else {
            panic!("no syslog was set")
        };
        assert_eq!((enabled, when_unwritable, rotate_mib, keep_files), expected);
    }

    #[test]
    fn a_node_counts_on_as_many_processors_as_its_file_says() {
        let read = |more: &str| text::parse::<NodeSettings>(&format!("{SHORT}{more}")).expect("it fits");
        assert_eq!(read("").processors, None);
        let settings = read("processors = 8\n");
        assert_eq!((settings.processors, settings.check().is_ok()), (Some(8), true));
        let message = read("processors = 0\n").check().expect_err("it could do nothing").to_string();
        assert!(message.contains("processors is 0"), "{message}");
    }

    #[test]
    fn a_stock_of_nothing_or_beyond_any_memory_is_an_error() {
        let mut settings = NodeSettings::new("a", "h:1", "h:2");
        for (aes_blocks, des_blocks, fits) in [
            (1, 0, true),
            (0, 1, true),
            (0, 0, false),
            (35_000, 0, true),
            (50_000, 0, false),
            (1, usize::MAX, false),
        ] {
            settings.stock = StockSettings::of(aes_blocks, des_blocks);
            assert_eq!(settings.check().is_ok(), fits, "{aes_blocks} {des_blocks}");
        }
        assert!(text::parse::<NodeSettings>(&format!("{SHORT}[stock]\naes_blocks = -1\n")).is_err());
        assert!(text::parse::<NodeSettings>(&format!("{SHORT}[stock]\naes = 1\n")).is_err());
    }

    #[test]
    fn misspelt_and_useless_settings_are_errors() {
        assert!(text::parse::<NodeSettings>(&format!("{SHORT}audti = false\n")).is_err());
        assert!(text::parse::<NodeSettings>(&format!("{SHORT}[limits]\nchanels = 2\n")).is_err());
        let mut settings = NodeSettings::new("a", "h:1", "h:2");
        settings.limits.channels = 0;
        assert!(settings.check().is_err());
        settings = NodeSettings::new("a", "h:1", "h:2");
        settings.limits.memory_per_request_mib = settings.limits.memory_mib + 1;
        assert!(settings.check().is_err());
        settings = NodeSettings::new("a", "h:1", "h:2");
        settings.http_listen = Some("nowhere".into());
        assert!(settings.check().is_err());
        settings = NodeSettings::new("a", "h:1", "h:2");
        settings.refresh.every_days = Some(0);
        assert!(settings.check().is_err());
        settings = NodeSettings::new("a", "h:1", "h:2");
        settings.audit.rotate_mib = 0;
        assert!(settings.check().is_err());
        let unknown = format!("{SHORT}[audit]\nwhen_unwritable = 'ignore'\n");
        assert!(text::parse::<NodeSettings>(&unknown).is_err());
    }
}
