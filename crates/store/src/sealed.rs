//! Which sealed keys were imported: the id of the key that was made of each file, and how often that was
//! tried. They stay for ever, because each was sealed by a person.

use serde::{Deserialize, Serialize};

use super::engine::{Records, Table};
use super::{Result, Store};

/// What is known of a sealed key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedNote {
    /// How often nodes were about to open the check value of a key that they had made of it.
    pub tries: u8,
    /// The id of the key that was made of it, or was about to be.
    pub id: Option<[u8; 16]>,
}

fn record(nonce: [u8; 32]) -> Vec<u8> {
    [b"sealed key ", &nonce[..]].concat()
}

impl Store {
    /// Counts an attempt to make a key of a sealed key.
    pub fn try_sealed(&self, nonce: [u8; 32]) -> Result<()> {
        self.change(|changes| {
            let mut note: SealedNote = changes.get(Table::Meta, &record(nonce))?.unwrap_or_default();
            note.tries = note.tries.saturating_add(1);
            changes.put(Table::Meta, &record(nonce), &note)
        })
    }

    /// Notes which key is about to be stored of a sealed key. A later attempt replaces it.
    pub fn note_sealed(&self, nonce: [u8; 32], id: [u8; 16]) -> Result<()> {
        self.change(|changes| {
            let note: SealedNote = changes.get(Table::Meta, &record(nonce))?.unwrap_or_default();
            changes.put(Table::Meta, &record(nonce), &SealedNote { id: Some(id), ..note })
        })
    }

    /// What is known of a sealed key.
    pub fn sealed_note(&self, nonce: [u8; 32]) -> Result<SealedNote> {
        let note = self.engine.read(|records| records.get(Table::Meta, &record(nonce)))?;
        Ok(note.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::KeyState;
    use super::super::testing::*;
    use super::*;

    #[test]
    fn a_crash_at_any_write_of_an_import_leaves_no_key_of_which_the_file_is_not_known() {
        let (store, disk) = in_memory();
        disk.record();
        let made = key("k", 4);
        store.try_sealed([1; 32]).expect("counted");
        store.note_sealed([1; 32], made.info.id).expect("noted");
        store.put_pending(&made).expect("put");
        store.announce("k", made.info.id).expect("announced");
        store.delete("k", made.info.id).expect("deleted");
        let mut seen = Vec::new();
        for bytes in disk.history() {
            let crashed = reopen(&Disk::from_bytes(bytes));
            let noted = crashed.sealed_note([1; 32]).expect("read").id;
            let state = crashed.state("k", made.info.id).expect("read");
            assert!(state.is_none() || noted == Some(made.info.id), "{state:?}");
            seen.push(state);
        }
        for state in [None, Some(KeyState::Pending), Some(KeyState::Announced), Some(KeyState::Deleted)] {
            assert!(seen.contains(&state), "{state:?}");
        }
        assert_eq!(store.sealed_note([2; 32]).expect("read"), SealedNote::default());
        store.try_sealed([1; 32]).expect("counted");
        store.note_sealed([1; 32], [9; 16]).expect("noted");
        let reopened = reopen(&disk.copy()).sealed_note([1; 32]).expect("read");
        assert_eq!(reopened, SealedNote { tries: 2, id: Some([9; 16]) });
    }
}
