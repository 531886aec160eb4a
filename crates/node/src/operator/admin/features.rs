//! The features that the operators of a cluster switch on, each at his own node
//! ([`polyclave_protocol::versions`]).

use polyclave_config::NodeDir;
use polyclave_protocol::versions::{Feature, FeatureSet, feature, features, release};
use polyclave_protocol::{Error, Party};
use polyclave_store::Store;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::core::Core;
use crate::error::system;

/// A feature, as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureState {
    /// Its name.
    pub name: String,
    /// What it does.
    pub about: String,
    /// The release that brought it.
    pub release: String,
    /// Whether it is switched on at this node.
    pub on: bool,
    /// Names of nodes of which this one does not know that they know it.
    pub unknown_at: Vec<String>,
    /// Names of nodes that have not said that it is switched on there.
    pub off_at: Vec<String>,
}

/// The features that this program knows, as a running node sees them.
pub(super) fn list(core: &Core) -> Vec<FeatureState> {
    let nodes = |holds: &dyn Fn(Party) -> bool| {
        core.members
            .others()
            .filter(|peer| !holds(*peer))
            .map(|peer| core.members.name_of(peer).into())
            .collect()
    };
    let state = |feature: &Feature| FeatureState {
        unknown_at: nodes(&|peer| knows(core, peer).has(feature)),
        off_at: nodes(&|peer| core.network.peers.features(peer).has(feature)),
        ..alone(feature, core.members.features())
    };
    features().iter().map(state).collect()
}

/// The same while the node does not run: nothing is known of others.
pub(super) fn list_alone(store: &Store) -> Result<Vec<FeatureState>> {
    let on = store.features().map_err(system)?;
    Ok(features().iter().map(|feature| alone(feature, on)).collect())
}

fn alone(feature: &Feature, on: FeatureSet) -> FeatureState {
    FeatureState {
        name: feature.name.into(),
        about: feature.about.into(),
        release: feature.release.into(),
        on: on.has(feature),
        unknown_at: Vec::new(),
        off_at: Vec::new(),
    }
}

/// What a peer that is connected says it knows.
fn knows(core: &Core, peer: Party) -> FeatureSet {
    let program = core.network.peers.connected().contains(peer).then(|| core.network.peers.program(peer));
    program.flatten().map(|program| program.knows).unwrap_or_default()
}

/// Switches a feature on at this node, if all nodes know it.
pub(super) fn switch_on(core: &Core, dir: &NodeDir, name: &str) -> Result<()> {
    let feature = known(name)?;
    let lacking: Vec<&str> = core
        .members
        .others()
        .filter(|peer| !knows(core, *peer).has(feature))
        .map(|peer| core.members.name_of(peer))
        .collect();
    if !lacking.is_empty() {
        return Err(Error::misuse(format!(
            "'{name}' is not switched on, and nothing was changed: {} must be connected and run {} or a later release",
            lacking.join(", "),
            feature.release
        )));
    }
    core.store.switch_on(dir, feature).map_err(system)?;
    core.members.note_features(core.store.features().map_err(system)?);
    core.members.others().for_each(|peer| core.network.peers.beat_now(peer));
    Ok(())
}

/// The error if somebody wants to switch on a feature at a node that does not run.
pub(super) fn refuse_alone(name: &str) -> Error {
    known(name).err().unwrap_or_else(|| {
        Error::misuse("a running node switches features on, because it asks the others whether they know them: start it first")
    })
}

fn known(name: &str) -> Result<&'static Feature> {
    feature(name).ok_or_else(|| {
        Error::misuse(format!(
            "this program ({}) knows no feature '{name}'; see `node features DIR`",
            release()
        ))
    })
}
