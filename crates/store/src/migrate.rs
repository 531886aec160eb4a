//! Moving the store of a node that does not run: from its file to a server, back, or to another server.
//!
//! Records are moved as they are, sealed, since what they are sealed with does not depend on where they are.
//! The order makes a crash at any moment harmless: all records are at the new place in one transaction; they
//! are compared with the old ones; the settings name the new place; the old place is emptied. Until the
//! settings change, the old store is the store, and the next try overwrites everything at the new place.
//! Afterwards only the new one is used. A file that is left of the old one is removed by the same command
//! again; records that are left at a server are sealed, and of no use to a node.

use polyclave_config::{NodeDir, NodeSettings};

use super::engine::postgres::Access;
use super::engine::{Record, Table};
use super::{Result, Secret, Store, StoreError, erase};

/// What was moved.
#[derive(Debug)]
pub struct Migrated {
    /// Records, of all tables.
    pub records: usize,
    /// Where the store was.
    pub from: String,
    /// Where it is.
    pub to: String,
}

/// Moves the store of a node to the server of a URL, or into a file in its directory. `None` if it is there
/// already.
pub fn migrate(dir: &mut NodeDir, to: Option<String>) -> Result<Option<Migrated>> {
    let has_workers = !dir.settings().workers.is_empty();
    if dir.settings().worker > 0 || (has_workers && to.is_none()) {
        let message = "is shared by several workers. Move it at the first worker, to a server only, and write the new place into node.toml of \
                    the others";
        return Err(StoreError::unusable("the store", message));
    }
    let secret = Secret::from(dir.secret()?);
    let old = Store::alone(dir, &secret)?;
    if dir.settings().store == to {
        erase_leftover(dir)?;
        return Ok(None);
    }
    let settings = NodeSettings { store: to, ..dir.settings().clone() };
    let new = Store::at_or_new(dir, settings.store.as_deref(), Access::Alone, &secret)?;
    let mut records = 0;
    new.engine.fill(|changes| {
        for table in Table::ALL {
            changes.clear(table)?;
            old.engine.read(|state| {
                state.each_sealed(table, |record, sealed| {
                    records += 1;
                    changes.put_sealed(table, record, sealed)
                })
            })?;
        }
        changes.clear(Table::Changes)
    })?;
    new.engine.load()?;
    for table in Table::ALL {
        if all(&old, table)? != all(&new, table)? {
            return Err(StoreError::corrupt(format!("the copy of {}", table.name())));
        }
    }
    let (from, to) = (old.engine.place().to_owned(), new.engine.place().to_owned());
    dir.set_settings(settings)?;
    empty(&old)?;
    drop(old);
    erase_leftover(dir)?;
    Ok(Some(Migrated { records, from, to }))
}

/// Removes the file, if the store is at a server.
fn erase_leftover(dir: &NodeDir) -> Result<()> {
    match dir.settings().store.is_some() && dir.store_path().exists() {
        true => erase::erase_file(&dir.store_path()),
        false => Ok(()),
    }
}

fn all(store: &Store, table: Table) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    store.engine.read(|state| {
        state.each_sealed(table, |record, sealed| {
            records.push((record.to_vec(), sealed.to_vec()));
            Ok(())
        })
    })?;
    Ok(records)
}

fn empty(store: &Store) -> Result<()> {
    let tables = || Table::ALL.into_iter().chain([Table::Changes]);
    store.engine.fill(|changes| tables().try_for_each(|table| changes.clear(table)))
}
