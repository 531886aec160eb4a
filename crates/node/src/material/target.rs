//! How much material is to be in stock: settings of the nodes, in blocks, for the kinds that the scheme names, in items.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use polyclave_config::StockSettings;
use polyclave_protocol::net::Net;
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::{Error, Result};
use zeroize::Zeroizing;

use crate::material::stock::Lots;

/// Blocks for which there is material for tags.
const MOST_FOR_TAGS: usize = 128;

/// How much of one kind is to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// For which ciphers: the setting without its unit; or its own name, if all ciphers take of it.
    pub(crate) ciphers: &'static str,
    pub(crate) blocks: usize,
}

impl Target {
    /// The same in items.
    pub(crate) fn items(&self) -> usize {
        self.blocks * self.kind.per_block
    }
}

/// The targets for the kinds of a scheme.
pub(crate) fn targets(kinds: &[Kind], settings: &StockSettings) -> Vec<Target> {
    let StockSettings { aes_blocks, des_blocks } = *settings;
    let target = |kind: &Kind| {
        let (ciphers, blocks) = match kind.name {
            name if name.ends_with("of 8 bits") => ("aes", aes_blocks),
            name if name.ends_with("of 6 bits") => ("des", des_blocks),
            // AES alone inverts, and no other cipher here has blocks for GCM, which takes them by the tag, not by the block.
            "masked powers" => ("aes", aes_blocks),
            "element triples" => ("aes", aes_blocks.min(MOST_FOR_TAGS)),
            name => (name, aes_blocks.max(des_blocks)),
        };
        Target { kind: *kind, ciphers, blocks }
    };
    kinds.iter().map(target).collect()
}

/// A stock in use by a request: what could never be there, or is given up, is not waited for.
pub(crate) struct BoundedStock {
    pub(crate) lots: Arc<Lots>,
    pub(crate) targets: Arc<[Target]>,
    /// The stock was given up.
    pub(crate) over: Arc<AtomicBool>,
}

impl Stock for BoundedStock {
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        if self.over.load(Relaxed) {
            return Err(Error::System("the material in stock was given up meanwhile".into()));
        }
        // The targets are the same at all nodes, so all come to it.
        match self.targets.iter().find(|target| target.kind == *kind) {
            Some(target) if count > target.items() => {
                Err(Error::OutOfMaterial { detail: too_much(target, count) })
            }
            // The nodes' stocks differ, if by nothing but a claim that was lost: they begin anew.
            _ => self.lots.take(kind, count, net).inspect_err(|e| {
                if matches!(e, Error::System(_)) && !self.lots.stands() {
                    self.over.store(true, Relaxed);
                }
            }),
        }
    }
}

fn too_much(target: &Target, count: usize) -> String {
    let Target { kind, ciphers, blocks } = target;
    let asked = count.div_ceil(kind.per_block.max(1));
    let setting =
        if *ciphers == kind.name { "aes_blocks or des_blocks".into() } else { format!("{ciphers}_blocks") };
    format!(
        "this takes the material for {asked} blocks at once, and the nodes never keep more than for {blocks}: it can never be \
         served. Ask for less at a time; or let the operators write a higher {setting} under [stock] in node.toml, at every \
         node"
    )
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::Party;
    use polyclave_protocol::mesh::mesh;

    use super::*;
    use crate::store::{Secret, Store};

    const KIND: Kind = Kind { name: "tables of 8 bits", item_bytes: 3, per_block: 160 };

    fn stock() -> BoundedStock {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::create(&dir.path().join("store.redb"), &Secret::from_bytes([7; 32]));
        let lots = Lots::new(Party(0), 2, [1; 32], vec![KIND], Arc::new(store.expect("made")));
        let settings = StockSettings { aes_blocks: 2, des_blocks: 1 };
        BoundedStock {
            lots: lots.expect("empty"),
            targets: targets(&[KIND], &settings).into(),
            over: Arc::default(),
        }
    }

    #[test]
    fn every_kind_has_the_level_of_its_ciphers() {
        let kind = |name| Kind { name, item_bytes: 1, per_block: 10 };
        let kinds = [kind("unit vectors of 8 bits"), kind("unit vectors of 6 bits"), kind("triples")];
        let targets = targets(&kinds, &StockSettings { aes_blocks: 3, des_blocks: 7 });
        let levels: Vec<_> = targets.iter().map(|target| (target.ciphers, target.blocks)).collect();
        assert_eq!(levels, [("aes", 3), ("des", 7), ("triples", 7)]);
        assert_eq!(targets[1].items(), 70);
    }

    #[test]
    fn what_can_never_be_served_is_told_with_the_setting_that_says_so() {
        let (stock, mut nets) = (stock(), mesh(2));
        let Err(Error::OutOfMaterial { detail }) = stock.take(&KIND, 321, &mut nets[0]) else {
            panic!("not refused");
        };
        assert!(detail.contains("3 blocks at once") && detail.contains("aes_blocks"), "{detail}");
    }

    #[test]
    fn nothing_comes_out_of_a_stock_that_was_given_up() {
        let (stock, mut nets) = (stock(), mesh(2));
        stock.over.store(true, Relaxed);
        assert!(matches!(stock.take(&KIND, 1, &mut nets[0]), Err(Error::System(_))));
    }
}
