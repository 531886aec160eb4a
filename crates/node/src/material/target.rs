//! How much material is to be in stock. The settings of the nodes are in blocks; the protocol's kinds are
//! counted in items.

use polyclave_config::{LatencySettings, StockSettings};
use polyclave_protocol::stock::{Kind, Levels, Purpose};
use polyclave_protocol::{Party, catalog};

/// The material for tags, and for what surrounds blocks, is for at most this many blocks.
const MAX_FOR_TAGS: usize = 128;
/// Where AES uses no tables of 8 bits, there are such tables for at most this many blocks.
const MAX_WITHOUT_AES: usize = 32;

/// Circuits of a kind take at most so many bytes at the node whose part is the largest.
const MOST_BYTES_OF_CIRCUITS: usize = 64 << 20;

/// A standby pair has so many blocks in stock, unless the settings of the node say how many.
const MOST_IN_STANDBY: usize = 1024;

/// The target level of one kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// The ciphers that it is for: the setting's name without its unit, or the kind's own name if all ciphers
    /// use it.
    pub(crate) ciphers: &'static str,
    pub(crate) blocks: usize,
    /// Bytes of an item at the node whose part of it is the largest.
    pub(crate) largest: usize,
}

/// Nodes compare this text (`preparation::compared`), so it says what it said in earlier
/// versions.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Target { kind, ciphers, blocks, largest: _ } = self;
        let mut target = f.debug_struct("Target");
        target.field("kind", kind).field("ciphers", ciphers).field("blocks", blocks).finish()
    }
}

impl Target {
    /// How many items this node keeps if the first node orders them.
    pub(crate) fn accepted(&self) -> usize {
        match self.kind.purpose {
            // The first node decides how many are made.
            Purpose::Circuits => LatencySettings::MOST_CIRCUITS,
            _ => self.items(),
        }
    }

    /// The target in items.
    pub(crate) fn items(&self) -> usize {
        self.blocks * self.kind.per_block
    }
}

/// The targets for the kinds of a protocol at one of its nodes, from those of each node.
pub(crate) fn targets(of_all: &[Vec<Kind>], me: Party, levels: Levels) -> Vec<Target> {
    let kinds = &of_all[me.index()];
    let Levels { aes_blocks, des_blocks, circuits } = levels;
    let inverts = kinds.iter().any(|kind| kind.purpose == Purpose::Inversions);
    let target = |(at, kind): (usize, &Kind)| {
        let largest = of_all.iter().map(|kinds| kinds[at].item_bytes).max().unwrap_or_default();
        let (ciphers, blocks) = match kind.purpose {
            Purpose::Tables(7..) if inverts => (kind.name, aes_blocks.min(MAX_WITHOUT_AES)),
            Purpose::Tables(7..) | Purpose::Inversions => ("aes", aes_blocks),
            Purpose::Tables(_) => ("des", des_blocks),
            // Ciphers that GCM takes have blocks of 16 bytes. A tag takes products by the message, not by the
            // block.
            Purpose::Tags => ("aes", aes_blocks.min(MAX_FOR_TAGS)),
            Purpose::Surroundings => (kind.name, aes_blocks.max(des_blocks).min(MAX_FOR_TAGS)),
            Purpose::All => (kind.name, aes_blocks.max(des_blocks)),
            Purpose::Circuits => (kind.name, circuits.min(MOST_BYTES_OF_CIRCUITS / largest.max(1))),
        };
        Target { kind: *kind, ciphers, blocks, largest }
    };
    kinds.iter().enumerate().map(target).collect()
}

/// The same for a standby pair, which serves only while a node is away. Its usual level is lower, because a
/// node keeps it for two pairs, and it is most of the memory that they take.
pub(crate) fn levels_in_standby(protocol: &str, settings: &StockSettings) -> Levels {
    let usual = usual_levels(protocol);
    Levels {
        circuits: 0,
        aes_blocks: settings.aes_blocks.unwrap_or(usual.aes_blocks.min(MOST_IN_STANDBY)),
        des_blocks: settings.des_blocks.unwrap_or(usual.des_blocks.min(MOST_IN_STANDBY)),
    }
}

/// The levels of the stock: those of the node's settings, or else those that the protocol usually has.
pub(crate) fn levels(protocol: &str, settings: &StockSettings, latency: &LatencySettings) -> Levels {
    let usual = usual_levels(protocol);
    Levels {
        circuits: latency.circuits.unwrap_or(usual.circuits),
        aes_blocks: settings.aes_blocks.unwrap_or(usual.aes_blocks),
        des_blocks: settings.des_blocks.unwrap_or(usual.des_blocks),
    }
}

fn usual_levels(protocol: &str) -> Levels {
    let serving = catalog::find(protocol).and_then(|protocol| protocol.serving.as_ref());
    serving.map_or(Levels::FEW, |serving| serving.stock)
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::Party;
    use polyclave_protocol::service::ServiceConfig;

    use super::*;

    #[test]
    fn every_kind_has_the_level_of_its_ciphers() {
        let kind = |name, purpose| Kind { name, purpose, item_bytes: 1, per_block: 10 };
        let kinds = [
            kind("unit vectors of 8 bits", Purpose::Tables(8)),
            kind("unit vectors of 6 bits", Purpose::Tables(6)),
            kind("triples", Purpose::All),
        ];
        let targets =
            targets(&[kinds.into()], Party(0), Levels { aes_blocks: 3, des_blocks: 7, circuits: 0 });
        let levels: Vec<_> = targets.iter().map(|target| (target.ciphers, target.blocks)).collect();
        assert_eq!(levels, [("aes", 3), ("des", 7), ("triples", 7)]);
        assert_eq!(targets[1].items(), 70);
    }

    #[test]
    fn the_first_node_says_how_many_circuits_there_are_and_the_others_bound_it() {
        let kinds = catalog::service("replicated-active", 3, 1).expect("it serves").kinds(Party(1));
        assert!(kinds.iter().all(|kind| kind.purpose == Purpose::Circuits));
        let none = LatencySettings { circuits: Some(0), ..LatencySettings::default() };
        let own = levels("replicated-active", &StockSettings::default(), &none);
        for target in targets(std::slice::from_ref(&kinds), Party(0), own) {
            assert_eq!((target.items(), target.accepted()), (0, LatencySettings::MOST_CIRCUITS));
        }
        let usual = levels("replicated-active", &StockSettings::default(), &LatencySettings::default());
        assert!(
            usual.circuits > 0 && levels("shamir-active", &StockSettings::default(), &none).circuits == 0
        );
    }

    #[test]
    fn a_standby_pair_keeps_less_unless_its_operator_wants_more() {
        let usual = StockSettings::default();
        let (all, pair) = (usual_levels("spdz-tower"), levels_in_standby("spdz-tower", &usual));
        assert!(pair.aes_blocks == MOST_IN_STANDBY && all.aes_blocks > MOST_IN_STANDBY, "{all:?}");
        let wanted = StockSettings { aes_blocks: Some(9000), ..usual };
        assert_eq!(levels_in_standby("spdz-tower", &wanted).aes_blocks, 9000);
        let kinds = catalog::service("spdz-tower", 2, 1).expect("it serves").kinds(Party(0));
        let bytes: usize = targets(std::slice::from_ref(&kinds), Party(0), pair)
            .iter()
            .map(|target| target.items() * target.kind.item_bytes)
            .sum();
        assert!(bytes < 64 << 20, "{bytes}");
    }

    #[test]
    fn a_stock_for_thousands_of_blocks_holds_little_besides_what_aes_takes() {
        let kinds = catalog::service("spdz-tower", 2, 1).expect("it serves").kinds(Party(0));
        let targets = targets(&[kinds], Party(0), Levels { aes_blocks: 4096, des_blocks: 0, circuits: 0 });
        let (of_aes, others): (Vec<_>, Vec<_>) =
            targets.iter().partition(|target| target.kind.purpose == Purpose::Inversions);
        let bytes = |targets: &[&Target]| -> usize {
            targets.iter().map(|target| target.items() * target.kind.item_bytes).sum()
        };
        assert_eq!(bytes(&of_aes), 4096 * 160 * 164);
        assert!(bytes(&others) < bytes(&of_aes) / 5, "{}", bytes(&others));
    }
}
