//! Restoring a backup in two passes. The first verifies all of it and writes nothing. The second writes into
//! a directory that gets its final name when it is complete.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use polyclave_config::private::{self, Draft};
use polyclave_config::{KeptFile, Needs, NodeDir, NodeSettings};
use zeroize::Zeroizing;

use super::super::engine::Table;
use super::super::seal::Seal;
use super::super::stream::Opening;
use super::super::{MARKER, Result, Secret, Store, StoreError};
use super::Frame;

/// The largest frame: a key with all its shares fits.
pub(in super::super) const MAX_FRAME: u64 = 256 << 20;

/// Restores a node from a backup into a directory that does not exist yet, or that is empty and belongs to
/// this user. Everything is verified before anything is written. The directory becomes a node's when it is
/// complete. The restored node has no past that its peers recognise. So they refuse it until they readmit it,
/// even if little or nothing has happened since the backup.
pub fn restore(file: &Path, key: &Secret, dir: &Path) -> Result<()> {
    let is_there = private::is_own_and_empty(dir)?;
    if !is_there && dir.symlink_metadata().is_ok() {
        return Err(StoreError::Exists { path: dir.into() });
    }
    verify(file, reader(file)?, key)?;
    let name = dir.file_name().ok_or_else(|| StoreError::Missing { path: dir.into() })?;
    let staging = match is_there {
        true => dir.join(".restoring"),
        false => dir.with_file_name(format!(".{}.{}.restoring", name.to_string_lossy(), std::process::id())),
    };
    private::make_dir(&staging)?;
    let staged = unpack(file, key, &staging).and_then(|()| {
        // The restored store is in a file, wherever it was before.
        let mut restored = NodeDir::open(&staging)?;
        // So it is the node's one worker, and where the first one was.
        let mut settings =
            NodeSettings { store: None, worker: 0, workers: Vec::new(), ..restored.settings().clone() };
        if restored.settings().worker > 0
            && let Some(first) = restored.cluster()?.and_then(|c| c.card_named(&settings.name).cloned())
        {
            (settings.listen, settings.client_listen) = (first.address.clone(), first.client_address.clone());
            (settings.address, settings.client_address) = (first.address, first.client_address);
        }
        restored.set_settings(settings)?;
        let io = |cause| StoreError::Io { path: dir.into(), cause };
        if is_there {
            move_up(&staging, dir).map_err(io)?;
            return Ok(private::sync_dir(dir)?);
        }
        fs::rename(&staging, dir).map_err(io)?;
        Ok(private::sync_dir(private::parent(dir))?)
    });
    if staged.is_err() {
        // Best effort: the first error is the one that matters.
        let _ = fs::remove_dir_all(&staging);
    }
    staged
}

/// Moves all files of a node to the directory above. The settings come last: a directory without them is not
/// a node's.
fn move_up(staging: &Path, dir: &Path) -> io::Result<()> {
    let mut names =
        fs::read_dir(staging)?.map(|file| Ok(file?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort_by_key(|name| name == NodeDir::SETTINGS);
    names.iter().try_for_each(|name| fs::rename(staging.join(name), dir.join(name)))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    fs::remove_dir(staging)
}

/// Reads a whole backup: every frame is authentic, known and complete, and every record opens under the
/// node's secret.
pub(in super::super) fn verify(file: &Path, from: impl BufRead, key: &Secret) -> Result<()> {
    let mut files = Vec::new();
    let mut secret = Zeroizing::new(Vec::with_capacity(128));
    let mut needs = Vec::new();
    let mut records: Option<(Table, Seal)> = None;
    let mut marked = false;
    each_frame(file, from, key, |frame| {
        match frame {
            Frame::File(name) => {
                if kept(name).is_none() || files.contains(&name.to_owned()) || records.is_some() {
                    return Err(damaged(file));
                }
                check_needs(&needs)?;
                files.push(name.to_owned());
            }
            Frame::Piece(bytes) => match files.last() {
                Some(name) if records.is_none() => match name.as_str() {
                    NodeDir::SECRET => secret.extend_from_slice(bytes),
                    NodeDir::NEEDS => needs.extend_from_slice(bytes),
                    _ => {}
                },
                _ => return Err(damaged(file)),
            },
            Frame::Table(name) => {
                let table = table(name).ok_or_else(|| damaged(file))?;
                let mut bytes = Zeroizing::new([0; 32]);
                hex::decode_to_slice(secret.trim_ascii(), &mut *bytes).map_err(|_| damaged(file))?;
                records = Some((table, Seal::new(&bytes.into())));
            }
            Frame::Record(record, sealed) => {
                let (table, seal) = records.as_ref().ok_or_else(|| damaged(file))?;
                seal.open(table.name(), record, sealed).map_err(|_| damaged(file))?;
                marked |= *table == Table::Meta && record == MARKER;
            }
            Frame::End(_) => {}
        }
        Ok(())
    })?;
    let whole =
        NodeDir::KEPT.iter().filter(|kept| kept.needed).all(|kept| files.iter().any(|f| f == kept.name));
    if whole && marked { Ok(()) } else { Err(damaged(file)) }
}

/// Refuses a backup of a release that knows more than this program.
fn check_needs(needs: &[u8]) -> Result<()> {
    match needs.is_empty() {
        true => Ok(()),
        false => Ok(Needs::parse(&String::from_utf8_lossy(needs))?.met().map(drop)?),
    }
}

/// Writes the contents of a verified backup.
fn unpack(file: &Path, key: &Secret, staging: &Path) -> Result<()> {
    let mut draft: Option<(PathBuf, Draft)> = None;
    let mut engine = None;
    let mut batch: Vec<(Table, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut current = Table::Meta;
    each_frame(file, reader(file)?, key, |frame| {
        match frame {
            Frame::File(name) => {
                commit(draft.take())?;
                let path = staging.join(name);
                let private = kept(name).is_some_and(|kept| kept.private);
                let begun = if private { Draft::private(&path)? } else { Draft::public(&path)? };
                draft = Some((path, begun));
            }
            Frame::Piece(bytes) => {
                let (path, draft) = draft.as_mut().ok_or_else(|| damaged(file))?;
                draft.write_all(bytes).map_err(|cause| StoreError::Io { path: path.clone(), cause })?;
            }
            Frame::Table(name) => {
                commit(draft.take())?;
                current = table(name).ok_or_else(|| damaged(file))?;
                if engine.is_none() {
                    let secret = Secret::load_file(&staging.join("secret.key"))?;
                    engine = Some(Store::create(&staging.join("store.redb"), &secret)?);
                }
            }
            Frame::Record(record, sealed) => {
                batch.push((current, record.to_vec(), sealed.to_vec()));
                if batch.len() >= 1000 {
                    put(engine.as_ref(), &mut batch)?;
                }
            }
            Frame::End(_) => {
                put(engine.as_ref(), &mut batch)?;
                engine.as_ref().map_or(Ok(()), Store::begin_restored)?;
            }
        }
        Ok(())
    })
}

fn put(store: Option<&Store>, batch: &mut Vec<(Table, Vec<u8>, Vec<u8>)>) -> Result<()> {
    let store = store.ok_or_else(|| StoreError::corrupt("the backup"))?;
    store.engine.fill(|changes| {
        batch.iter().try_for_each(|(table, record, sealed)| changes.put_sealed(*table, record, sealed))
    })?;
    batch.clear();
    Ok(())
}

fn commit(draft: Option<(PathBuf, Draft)>) -> Result<()> {
    draft.map_or(Ok(()), |(_, draft)| Ok(draft.commit()?))
}

fn reader(file: &Path) -> Result<BufReader<File>> {
    let opened = File::open(file).map_err(|cause| StoreError::Io { path: file.into(), cause });
    opened.map(BufReader::new)
}

/// Reads the frames of a backup in order. All are authentic; the last is an end frame with the right number
/// of frames.
fn each_frame(
    file: &Path,
    from: impl BufRead,
    key: &Secret,
    mut work: impl FnMut(Frame) -> Result<()>,
) -> Result<()> {
    let io = |cause: io::Error| match cause.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => damaged(file),
        _ => StoreError::Io { path: file.into(), cause },
    };
    let mut opening = Opening::new(from, key).map_err(io)?;
    for number in 0.. {
        let mut len = [0; 4];
        opening.read_exact(&mut len).map_err(io)?;
        let len = u64::from(u32::from_le_bytes(len));
        if len > MAX_FRAME {
            return Err(damaged(file));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(len as usize));
        (&mut opening).take(len).read_to_end(&mut bytes).map_err(io)?;
        let (frame, rest) = postcard::take_from_bytes(&bytes).map_err(|_| damaged(file))?;
        if !rest.is_empty() {
            return Err(damaged(file));
        }
        let end = if let Frame::End(frames) = frame { Some(frames) } else { None };
        work(frame)?;
        if let Some(frames) = end {
            let ended = opening.read(&mut [0]).map_err(io)? == 0;
            return if frames == number && ended { Ok(()) } else { Err(damaged(file)) };
        }
    }
    Err(damaged(file))
}

fn kept(name: &str) -> Option<KeptFile> {
    NodeDir::KEPT.into_iter().find(|kept| kept.name == name)
}

fn table(name: &str) -> Option<Table> {
    Table::ALL.into_iter().find(|table| table.name() == name)
}

fn damaged(file: &Path) -> StoreError {
    StoreError::BadBackup { path: file.into() }
}
