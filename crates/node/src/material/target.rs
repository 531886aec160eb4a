//! How much material is to be in stock. The settings of the nodes are in blocks; the protocol's kinds are counted in items.

use polyclave_config::StockSettings;
use polyclave_protocol::stock::{Kind, Purpose};

/// The most blocks for which there is material for tags.
const MOST_FOR_TAGS: usize = 128;

/// The target level of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// The ciphers that it is for: the setting's name without its unit, or the kind's own name if all ciphers use it.
    pub(crate) ciphers: &'static str,
    pub(crate) blocks: usize,
}

impl Target {
    /// The target in items.
    pub(crate) fn items(&self) -> usize {
        self.blocks * self.kind.per_block
    }
}

/// The targets for the kinds of a protocol.
pub(crate) fn targets(kinds: &[Kind], settings: &StockSettings) -> Vec<Target> {
    let StockSettings { aes_blocks, des_blocks } = *settings;
    let target = |kind: &Kind| {
        let (ciphers, blocks) = match kind.purpose {
            Purpose::Tables(7..) | Purpose::Inversions => ("aes", aes_blocks),
            Purpose::Tables(_) => ("des", des_blocks),
            // Ciphers that GCM takes have blocks of 16 bytes. A tag takes products by the message, not by the block.
            Purpose::Tags => ("aes", aes_blocks.min(MOST_FOR_TAGS)),
            Purpose::All => (kind.name, aes_blocks.max(des_blocks)),
        };
        Target { kind: *kind, ciphers, blocks }
    };
    kinds.iter().map(target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_level_of_its_ciphers() {
        let kind = |name, purpose| Kind { name, purpose, item_bytes: 1, per_block: 10 };
        let kinds = [
            kind("unit vectors of 8 bits", Purpose::Tables(8)),
            kind("unit vectors of 6 bits", Purpose::Tables(6)),
            kind("triples", Purpose::All),
        ];
        let targets = targets(&kinds, &StockSettings { aes_blocks: 3, des_blocks: 7 });
        let levels: Vec<_> = targets.iter().map(|target| (target.ciphers, target.blocks)).collect();
        assert_eq!(levels, [("aes", 3), ("des", 7), ("triples", 7)]);
        assert_eq!(targets[1].items(), 70);
    }
}
