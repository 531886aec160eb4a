//! How much material is to be in stock: settings of the nodes, in blocks, for the kinds that the scheme names, in items.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use polyclave_config::StockSettings;
use polyclave_protocol::net::Net;
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::{Error, Result};
use zeroize::Zeroizing;

use crate::stock::Lots;

/// How much of one kind is to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// For which ciphers: the setting without its unit.
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
    let target = |kind: &Kind| {
        let (ciphers, blocks) = match is_for_des(kind) {
            true => ("des", settings.des_blocks),
            false => ("aes", settings.aes_blocks),
        };
        Target { kind: *kind, ciphers, blocks }
    };
    kinds.iter().map(target).collect()
}

fn is_for_des(kind: &Kind) -> bool {
    kind.name.contains("6 bits")
}

/// A stock in use by a request: what could never be there, or is given up, is not waited for.
pub(crate) struct Shelf {
    pub(crate) lots: Arc<Lots>,
    pub(crate) targets: Arc<[Target]>,
    /// The stock was given up.
    pub(crate) over: Arc<AtomicBool>,
}

impl Stock for Shelf {
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        if self.over.load(Relaxed) {
            return Err(Error::System("the material in stock was given up meanwhile".into()));
        }
        // The targets are the same at all nodes, so all come to it.
        match self.targets.iter().find(|target| target.kind == *kind) {
            Some(target) if count > target.items() => Err(Error::Dry { detail: too_much(target, count) }),
            _ => self.lots.take(kind, count, net),
        }
    }
}

fn too_much(target: &Target, count: usize) -> String {
    let Target { kind, ciphers, blocks } = target;
    let asked = count.div_ceil(kind.per_block.max(1));
    format!(
        "this takes the material for {asked} blocks at once, and the nodes never keep more than for {blocks}: it can never be \
         served. Ask for less at a time; or let the operators write a higher {ciphers}_blocks under [stock] in node.toml, at \
         every node"
    )
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::Party;
    use polyclave_protocol::mesh::mesh;

    use super::*;
    use crate::store::{Secret, Store};

    const KIND: Kind = Kind { name: "tables of 8 bits", item_bytes: 3, per_block: 160 };

    fn shelf() -> Shelf {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::create(&dir.path().join("store.redb"), &Secret::from_bytes([7; 32]));
        let lots =
            Lots::new(Party(0), 2, [1; 32], vec![KIND], Arc::new(store.expect("made"))).expect("begun");
        let settings = StockSettings { aes_blocks: 2, des_blocks: 1 };
        Shelf { lots, targets: targets(&[KIND], &settings).into(), over: Arc::default() }
    }

    #[test]
    fn what_can_never_be_served_is_told_with_the_setting_that_says_so() {
        let (shelf, mut nets) = (shelf(), mesh(2));
        let Err(Error::Dry { detail }) = shelf.take(&KIND, 321, &mut nets[0]) else {
            panic!("not refused");
        };
        assert!(detail.contains("3 blocks at once") && detail.contains("aes_blocks"), "{detail}");
    }

    #[test]
    fn nothing_comes_out_of_a_stock_that_was_given_up() {
        let (shelf, mut nets) = (shelf(), mesh(2));
        shelf.over.store(true, Relaxed);
        assert!(matches!(shelf.take(&KIND, 1, &mut nets[0]), Err(Error::System(_))));
    }
}
