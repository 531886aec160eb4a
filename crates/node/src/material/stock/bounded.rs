//! The stock as a session sees it: what is taken is bounded, and what is not there yet is waited for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use polyclave_protocol::net::Net;
use polyclave_protocol::stock::{Kind, Purpose, Stock};
use polyclave_protocol::{Error, Result};
use polyclave_traces::part;
use zeroize::Zeroizing;

use super::Lots;
use crate::material::target::Target;

/// The most blocks that are claimed at once where claims wait. Requests that wait take turns with such
/// pieces.
const MAX_AT_ONCE: usize = 64;

/// The stock as one request uses it: takes no more than fits into its memory, and nothing that was given up.
pub(crate) struct BoundedStock {
    pub(crate) lots: Arc<Lots>,
    pub(crate) targets: Arc<[Target]>,
    /// The bytes that the request may take at once, if that is more than the level; the same at all nodes.
    pub(crate) memory: usize,
    /// Whether the request takes material that it could go on without.
    pub(crate) takes_circuits: bool,
    /// How many blocks have taken some.
    pub(crate) through_circuits: Arc<AtomicU64>,
    /// The stock was given up.
    pub(crate) over: Arc<AtomicBool>,
    /// The circuits that the session asked for first, if they are of one kind.
    pub(crate) first: OnceLock<Option<(Kind, usize)>>,
    /// What was claimed before it asked.
    pub(crate) ahead: Mutex<Option<Claimed>>,
}

/// Material that is claimed before the session asks for it, of a kind that a session could go on without.
/// The leading node chooses it, and all nodes compare it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// The number of the kind.
    pub(crate) kind: u8,
    /// How many items; 0 if nothing is claimed ahead.
    pub(crate) count: u8,
}

impl Ahead {
    /// As nodes tell and compare it.
    pub(crate) fn bytes(self) -> [u8; 2] {
        [self.kind, self.count]
    }

    pub(crate) fn of([kind, count]: [u8; 2]) -> Ahead {
        Ahead { kind, count }
    }
}

/// A claim that was made before the session asked: its kind and number, and the items, if there were enough.
pub(crate) struct Claimed {
    kind: Kind,
    count: usize,
    items: Option<Zeroizing<Vec<u8>>>,
}

impl Stock for BoundedStock {
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        // The targets are the same at all nodes, so all nodes refuse, and cut in the same way.
        let target = self.targets.iter().find(|target| target.kind == *kind);
        let bytes = count.saturating_mul(kind.item_bytes);
        let waits = self.lots.claiming.waits();
        match target {
            Some(target)
                if count > target.items() && !(waits && target.items() > 0 && bytes <= self.memory) =>
            {
                Err(Error::OutOfMaterial { detail: too_much(target, count) })
            }
            Some(target) if waits => {
                let most = (MAX_AT_ONCE * kind.per_block).min(target.items().div_ceil(2)).max(1);
                self.take_in_pieces(kind, count, most, net)
            }
            _ => self.claim(kind, count, net),
        }
    }

    fn take_if_there(
        &self,
        wanted: &[(Kind, usize)],
        net: &mut dyn Net,
    ) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
        if !self.takes_circuits {
            return Ok(None);
        }
        self.refuse_over()?;
        if wanted.iter().any(|(kind, _)| kind.purpose != Purpose::Circuits) {
            let _part = part("claim");
            return self.ends_if_it_failed(self.lots.take_if_there(wanted, net));
        }
        // Nobody keeps so many, and a claim of so many could not be told ahead. The same at all nodes.
        let too_many = |target: &Target| {
            wanted.iter().any(|(kind, count)| target.kind == *kind && *count > target.accepted())
        };
        if self.targets.iter().any(too_many) {
            return Ok(None);
        }
        let only = <[(Kind, usize); 1]>::try_from(wanted).ok().map(|[only]| only);
        self.first.get_or_init(|| only);
        let ahead = self.ahead.lock().take();
        let taken = match ahead {
            Some(ahead) if only == Some((ahead.kind, ahead.count)) => ahead.items.map(|items| vec![items]),
            // The session does not take what was expected, which is lost. The same at all nodes.
            _ => {
                let _part = part("claim");
                self.ends_if_it_failed(self.lots.take_if_there(wanted, net))?
            }
        };
        if taken.is_some() {
            let count: usize = wanted.iter().map(|(_, count)| count).sum();
            self.through_circuits.fetch_add(count as u64, Relaxed);
        }
        Ok(taken)
    }
}

impl BoundedStock {
    /// Claims what the session is expected to ask for first. All serving nodes do this at the same place.
    pub(crate) fn claim_ahead(&self, ahead: Ahead, net: &mut dyn Net) -> Result<()> {
        let (target, count) = (self.targets.get(usize::from(ahead.kind)), usize::from(ahead.count));
        let fits = |target: &&Target| target.kind.purpose == Purpose::Circuits && count <= target.accepted();
        let Some(Target { kind, .. }) = target.filter(fits) else {
            return Err(Error::misuse("material was to be claimed ahead that no session can go on without"));
        };
        self.refuse_over()?;
        let _part = part("claim");
        let taken = self.ends_if_it_failed(self.lots.take_if_there(&[(*kind, count)], net))?;
        let items = taken.and_then(|mut taken| taken.pop());
        *self.ahead.lock() = Some(Claimed { kind: *kind, count, items });
        Ok(())
    }

    /// The circuits that the session asked for first, if it may take some; none if they are of several kinds.
    pub(crate) fn first_taken(&self) -> Option<Ahead> {
        let first = || {
            let (kind, count) = self.first.get()?.as_ref()?;
            let at = self.targets.iter().position(|target| target.kind == *kind)?;
            Some(Ahead { kind: at.try_into().ok()?, count: (*count).try_into().ok()? })
        };
        self.takes_circuits.then(|| first().unwrap_or_default())
    }

    fn take_in_pieces(
        &self,
        kind: &Kind,
        count: usize,
        most: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if count <= most {
            return self.claim(kind, count, net);
        }
        // Allocated at its full size: growing would leave copies behind.
        let mut items = Zeroizing::new(Vec::with_capacity(count * kind.item_bytes));
        for from in (0..count).step_by(most) {
            items.extend_from_slice(&self.claim(kind, most.min(count - from), net)?);
        }
        Ok(items)
    }

    fn claim(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let _part = part("claim");
        self.refuse_over()?;
        self.ends_if_it_failed(self.lots.take(kind, count, net))
    }

    fn refuse_over(&self) -> Result<()> {
        match self.over.load(Relaxed) {
            true => Err(Error::System("the material in stock was given up meanwhile".into())),
            false => Ok(()),
        }
    }

    fn ends_if_it_failed<T>(&self, claimed: Result<T>) -> Result<T> {
        claimed.inspect_err(|e| {
            if matches!(e, Error::System(_)) && self.lots.claiming.ends_with_a_failed_claim() {
                self.over.store(true, Relaxed);
            }
        })
    }
}

fn too_much(target: &Target, count: usize) -> String {
    let Target { kind, ciphers, blocks, .. } = target;
    let asked = count.div_ceil(kind.per_block.max(1));
    let setting =
        if *ciphers == kind.name { "aes_blocks or des_blocks".into() } else { format!("{ciphers}_blocks") };
    format!(
        "this needs material for {asked} blocks at once, and the nodes keep material for at most {blocks}: it can never be \
         served. Ask for less at a time; or the operators can set a higher {setting} under [stock] in node.toml at every \
         node"
    )
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::Party;
    use polyclave_protocol::mesh::mesh;
    use polyclave_protocol::stock::{Levels, Purpose};

    use polyclave_store::{Secret, Store};

    use super::*;
    use crate::material::target::targets;

    const KIND: Kind =
        Kind { name: "tables of 8 bits", purpose: Purpose::Tables(8), item_bytes: 3, per_block: 160 };

    fn stock() -> BoundedStock {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::create(&dir.path().join("store.redb"), &Secret::from_bytes([7; 32]));
        let lots = Lots::new(Party(0), 2, [1; 32], vec![KIND], Arc::new(store.expect("made")));
        BoundedStock {
            lots: lots.expect("empty"),
            targets: targets(&[vec![KIND]], Party(0), Levels { aes_blocks: 2, des_blocks: 1, circuits: 0 })
                .into(),
            memory: 480,
            takes_circuits: false,
            through_circuits: Arc::default(),
            over: Arc::default(),
            first: OnceLock::default(),
            ahead: Mutex::default(),
        }
    }

    #[test]
    fn what_fits_into_neither_level_nor_memory_is_told_with_the_setting_that_says_so() {
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
