//! Material that is made before a key, under a protocol that takes it from a stock.

use std::sync::Arc;
use std::thread;

use polyclave_protocol::Party;
use polyclave_protocol::any::{AnyServiceConfig, AnySetup};
use polyclave_protocol::catalog;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::stock::{Kind, Levels, Purpose, Stock};
use polyclave_store::Store;
use zeroize::Zeroizing;

use super::of_cluster;
use super::recorder::Recorder;
use crate::Result;
use crate::material::stock::Lots;
use crate::material::stock::fill::{Run, fill};
use crate::material::target::{Target, targets};
use crate::peers::exchange::tell_all;

/// How many items of each kind the requests of the vectors take.
const LOOKUPS: usize = 40 + 309 + 160 + 160 + 640;
const PRODUCTS: usize = 254;
/// This start of a node.
const BOOT: [u8; 16] = [0xb0; 16];

/// A stock with what the requests take; none under a protocol that has none.
pub(super) fn filled(
    config: &AnyServiceConfig,
    setup: &AnySetup,
    epoch: [u8; 32],
    store: Arc<Store>,
    net: &mut Recorder,
) -> Result<Option<Arc<dyn Stock>>> {
    if !config.keeps_stock() {
        return Ok(None);
    }
    let (me, nodes) = (net.me(), net.parties());
    let of_all: Vec<_> = Party::all(nodes).map(|party| config.kinds(party)).collect();
    let kinds = || of_all[me.index()].clone();
    let lots = unseeded(|| Lots::permanent(me, nodes, (epoch, BOOT), kinds(), store, config.quorum()))?;
    let serving = catalog::find(config.name()).and_then(|protocol| protocol.serving.as_ref());
    let targets = targets(&of_all, me, serving.map_or(Levels::FEW, |serving| serving.stock));
    for target in &targets {
        let count = match target.kind.purpose {
            Purpose::Inversions | Purpose::All => LOOKUPS,
            Purpose::Tags => PRODUCTS,
            _ => continue,
        };
        net.begin("material", target.kind.name);
        make(config, setup, (&lots, &targets), (target, count), net)?;
    }
    Ok(Some(Arc::new(Unseeded(lots))))
}

/// The stock of a node. Its store draws for each change, and no message depends on that: so it draws from the
/// system, and the seed is for what the pages say is drawn.
struct Unseeded(Arc<Lots>);

impl Stock for Unseeded {
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        unseeded(|| self.0.take(kind, count, net))
    }
}

/// Work in a thread that has no seed.
fn unseeded<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().expect("no panic"))
}

/// As `material/preparation.rs` does, on one stream.
fn make(
    config: &AnyServiceConfig,
    setup: &AnySetup,
    (lots, targets): (&Lots, &[Target]),
    (target, count): (&Target, usize),
    net: &mut Recorder,
) -> Result<()> {
    // The meeting, and the number of streams.
    tell_all(&[1], net)?;
    tell_all(&[1], net)?;
    let levels: Vec<&Target> = targets.iter().collect();
    let parameters = of_cluster(net)
        .with("duty of these workers (cluster file)", b"serve and make material")
        .with("level of the stock (node.toml)", format!("{levels:?}").as_bytes());
    let run = Run { kind: &target.kind, count, level: target.items(), streams: 1 };
    fill(lots, config.handshake(parameters), &run, net, &|_| (), |stream, count, net: &mut dyn Net| {
        config.make_material(setup, stream, &target.kind, count, net)
    })
}
