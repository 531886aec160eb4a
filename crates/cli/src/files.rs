//! What is read and written by commands that work on data: files, or standard input and output.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Cursor, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use polyclave_config::private::Draft;
use zeroize::Zeroizing;

use crate::stop;

/// The most of standard input that is kept in memory.
const MOST_IN_MEMORY: u64 = 256 << 20;

/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Where data comes from.
pub enum Input {
    /// A file.
    File(BufReader<File>, u64),
    /// Standard input.
    Stdin,
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Input> {
        if path == Path::new("-") {
            return Ok(Input::Stdin);
        }
        let broken = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(broken)?;
        let metadata = file.metadata().with_context(broken)?;
        ensure!(!metadata.is_dir(), "{} is a directory; give a file", path.display());
        Ok(Input::File(BufReader::new(file), metadata.len()))
    }

    /// Bytes, where they are known.
    pub fn len(&self) -> Option<u64> {
        match self {
            Input::File(_, len) => Some(*len),
            Input::Stdin => None,
        }
    }

    /// The same from where it can be read twice.
    pub fn seekable(self) -> Result<Seekable> {
        match self {
            Input::File(mut file, _) => {
                file.stream_position().context(
                    "the input cannot be read twice, as this mode needs it; give a regular file, or -",
                )?;
                Ok(Seekable::File(file))
            }
            Input::Stdin => {
                let mut data = Vec::new();
                let read = io::stdin().lock().take(MOST_IN_MEMORY + 1).read_to_end(&mut data);
                let read = read.context("cannot read standard input")? as u64;
                ensure!(
                    read <= MOST_IN_MEMORY,
                    "standard input has more than {} MiB, and this mode reads its input twice; give a file",
                    MOST_IN_MEMORY >> 20
                );
                Ok(Seekable::Memory(Cursor::new(Zeroizing::new(data))))
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::File(file, _) => file.read(buffer),
            Input::Stdin => io::stdin().lock().read(buffer),
        }
    }
}

/// An input that can be read twice.
pub enum Seekable {
    /// A file.
    File(BufReader<File>),
    /// All of standard input.
    Memory(Cursor<Zeroizing<Vec<u8>>>),
}

impl Read for Seekable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Seekable::File(file) => file.read(buffer),
            Seekable::Memory(data) => {
                let all = data.get_ref();
                let from = (data.position() as usize).min(all.len());
                let count = buffer.len().min(all.len() - from);
                buffer[..count].copy_from_slice(&all[from..from + count]);
                data.set_position((from + count) as u64);
                Ok(count)
            }
        }
    }
}

impl Seek for Seekable {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Seekable::File(file) => file.seek(to),
            Seekable::Memory(data) => {
                let len = data.get_ref().len() as i64;
                let at = match to {
                    SeekFrom::Start(at) => at as i64,
                    SeekFrom::End(by) => len + by,
                    SeekFrom::Current(by) => data.position() as i64 + by,
                };
                let at = u64::try_from(at).map_err(|_| io::Error::other("before the beginning"))?;
                data.set_position(at);
                Ok(at)
            }
        }
    }
}

/// Where data goes. A file appears, whole, when it is [`finished`](Output::finish); before that nothing is changed.
pub enum Output {
    /// A file on its way.
    File {
        /// It gets its name at the end.
        draft: BufWriter<Draft>,
        /// Which.
        path: PathBuf,
        /// Whether one that is there is replaced.
        force: bool,
    },
    /// Standard output.
    Stdout(BufWriter<io::Stdout>),
}

/// Who may read what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// It is no secret.
    All,
    /// It is a person's data.
    Owner,
}

impl Output {
    /// Begins a file; `-`, or nothing if it is no terminal, is standard output.
    pub fn begin(path: Option<&Path>, readers: Readers, force: bool) -> Result<Output> {
        let path = match path {
            None if io::stdout().is_terminal() => {
                bail!("say where to: a file as the second name, or - for this terminal")
            }
            None => return Ok(Output::Stdout(BufWriter::new(io::stdout()))),
            Some(path) if path == Path::new("-") => return Ok(Output::Stdout(BufWriter::new(io::stdout()))),
            Some(path) => path,
        };
        check(path, force)?;
        // Through a symbolic link, which stays what it is.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let stopping = stop::on_signals()?;
        let draft = match readers {
            Readers::All => Draft::public(&path)?,
            Readers::Owner => Draft::private(&path)?,
        };
        leave_nothing(stopping, draft.temporary().to_path_buf());
        Ok(Output::File { draft: BufWriter::new(draft), path, force })
    }

    /// Whether what was written stays if there is an error.
    pub fn is_stdout(&self) -> bool {
        matches!(self, Output::Stdout(_))
    }

    /// All is written: the file gets its name.
    pub fn finish(self) -> Result<()> {
        match self {
            Output::Stdout(mut out) => Ok(out.flush().context("cannot write the output")?),
            Output::File { draft, path, force, .. } => {
                check(&path, force)?;
                let draft =
                    draft.into_inner().map_err(|e| e.into_error()).context("cannot write the output")?;
                Ok(draft.commit()?)
            }
        }
    }
}

/// Ends the program on a signal, even while it waits for its input or for nodes, without what is half written.
fn leave_nothing(stopping: Arc<AtomicBool>, temporary: PathBuf) {
    std::thread::spawn(move || {
        while !stopping.load(Relaxed) {
            std::thread::sleep(LOOK);
        }
        // It may have got its name just now.
        let _ = fs::remove_file(&temporary);
        eprintln!("error: stopped by a signal; nothing was written");
        std::process::exit(1);
    });
}

fn check(path: &Path, force: bool) -> Result<()> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let shown = path.display();
    ensure!(
        metadata.is_file(),
        "{shown} is there and is no regular file; give another name, or - for standard output"
    );
    ensure!(force, "{shown} is there already; give another name, or --force to replace it");
    Ok(())
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::File { draft, .. } => draft.write(bytes),
            Output::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File { draft, .. } => draft.flush(),
            Output::Stdout(out) => out.flush(),
        }
    }
}

/// A bar on a terminal, and nothing elsewhere.
pub fn progress(len: Option<u64>) -> ProgressBar {
    let template = match len {
        Some(_) => "{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
        None => "{bytes}, {bytes_per_sec}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = len.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.with_style(style)
}
