//! The features that are switched on: abilities that a program of an older release does not have. Once one is
//! on, the store may have records that only programs with it can read, so the store needs it.

use polyclave_config::{Need, Needs, NodeDir};
use polyclave_protocol::versions::{Feature, FeatureSet};

use super::engine::{Records, Table};
use super::{Result, Store};

const FEATURES: &[u8] = b"features";

impl Store {
    /// The features that are switched on. An error if this program does not know one of them.
    pub fn features(&self) -> Result<FeatureSet> {
        self.engine.read(|records| Ok(noted(records)?.met()?))
    }

    /// Switches a feature on, for ever, at the node of a directory. The file comes first: if the power fails
    /// in between, the directory needs a feature that nothing uses yet, never the other way round.
    pub fn switch_on(&self, dir: &NodeDir, feature: &Feature) -> Result<()> {
        let mut needs = self.engine.read(|records| noted(records))?;
        if needs.add(feature) {
            restate(dir, &needs)?;
            self.change(|changes| changes.put(Table::Meta, FEATURES, &pairs(&needs)))?;
        }
        Ok(())
    }

    /// Writes down in a node's directory what its store needs, if the file does not say it: another worker
    /// may have switched something on, or the directory is older than its store.
    pub fn restate_needs(&self, dir: &NodeDir) -> Result<()> {
        restate(dir, &self.engine.read(|records| noted(records))?)
    }
}

/// Adds needs to those of a directory.
fn restate(dir: &NodeDir, needs: &Needs) -> Result<()> {
    let mut stated = Needs::of(dir.path())?;
    let missing: Vec<Need> =
        needs.features.iter().filter(|need| !stated.features.contains(need)).cloned().collect();
    if !missing.is_empty() {
        stated.features.extend(missing);
        stated.save(dir.path())?;
    }
    Ok(())
}

/// Refuses a store that needs what this program does not know.
pub(super) fn check(records: &impl Records) -> Result<()> {
    Ok(noted(records)?.met().map(drop)?)
}

fn noted(records: &impl Records) -> Result<Needs> {
    let noted: Vec<(String, String)> = records.get(Table::Meta, FEATURES)?.unwrap_or_default();
    let features = noted.into_iter().map(|(name, release)| Need { name, release }).collect();
    Ok(Needs { features, ..Needs::default() })
}

fn pairs(needs: &Needs) -> Vec<(&str, &str)> {
    needs.features.iter().map(|need| (need.name.as_str(), need.release.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{in_memory, reopen, secret};
    use super::super::{Store, StoreError};
    use super::*;

    /// Nothing but the sealed record says it here: the file was removed.
    #[test]
    fn a_store_that_needs_an_unknown_feature_is_refused_also_without_the_file() {
        let (store, disk) = in_memory();
        assert_eq!(store.features().expect("read"), FeatureSet::default());
        store
            .change(|changes| changes.put(Table::Meta, FEATURES, &vec![("flying", "9.1.0")]))
            .expect("written");
        drop(store);
        let error = Store::with_backend(disk.copy(), &secret()).expect_err("refused");
        assert!(matches!(&error, StoreError::File(why) if why.to_string().contains("Run 9.1.0")), "{error}");
    }

    #[test]
    fn what_the_store_needs_is_written_into_the_directory_again_and_nothing_there_is_forgotten() {
        let place = tempfile::tempdir().expect("a directory");
        let identity = polyclave_transport::Identity::generate().expect("made");
        let settings = polyclave_config::NodeSettings::new("a", "localhost:1", "localhost:2");
        let (certificate, key) = (identity.certificate(), identity.reveal_private_key());
        let path = place.path().join("node");
        NodeDir::init(&path, &settings, &certificate, &key).expect("made");
        let dir = NodeDir::open(&path).expect("opened");
        let (store, disk) = in_memory();
        store.restate_needs(&dir).expect("nothing to write");
        assert!(!path.join(NodeDir::NEEDS).exists());
        let other = Feature { name: "other", bit: 1, release: "9.2.0", about: "" };
        let mut stated = Needs::default();
        assert!(stated.add(&other) && !stated.add(&other));
        stated.save(&path).expect("saved");
        let flying = Feature { name: "flying", bit: 2, release: "9.1.0", about: "" };
        store.switch_on(&dir, &flying).expect("switched on");
        store.switch_on(&dir, &flying).expect("it is on already");
        let names = |needs: Needs| needs.features.into_iter().map(|need| need.name).collect::<Vec<_>>();
        assert_eq!(names(Needs::of(&path).expect("there")), ["other", "flying"]);
        assert_eq!(names(store.engine.read(|records| noted(records)).expect("read")), ["flying"]);
        drop((store, reopen));
        assert!(Store::with_backend(disk.copy(), &secret()).is_err(), "this program does not know it");
    }
}
