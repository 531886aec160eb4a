//! Input and output of the commands that work on data: files, or standard input and output.

mod source;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Cursor, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle, WeakProgressBar};
use parking_lot::Mutex;
use polyclave_config::private::Draft;
use zeroize::Zeroizing;

use crate::stop;
pub use source::Source;
use source::Stdin;

/// The most of standard input that is kept in memory.
const MAX_IN_MEMORY: u64 = 256 << 20;

/// How often the program checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The source of data.
pub enum Input {
    /// A file.
    File(BufReader<File>, u64),
    /// Standard input.
    Stdin(Stdin),
}

impl Input {
    /// The number of bytes, if known.
    pub fn len(&self) -> Option<u64> {
        match self {
            Input::File(_, len) => Some(*len),
            Input::Stdin(_) => None,
        }
    }

    /// The same input in a form that can be read twice, from its beginning, which was read already.
    pub fn seekable(self, beginning: Vec<u8>) -> Result<Seekable> {
        match self {
            Input::File(mut file, _) => {
                let back = file.seek_relative(-(beginning.len() as i64));
                back.and_then(|()| file.stream_position()).context(
                    "the input cannot be read twice, as this mode needs it; give a regular file, or -",
                )?;
                Ok(Seekable::File(file))
            }
            Input::Stdin(stdin) => {
                let mut data = beginning;
                let read = stdin.take(MAX_IN_MEMORY + 1).read_to_end(&mut data);
                let read = read.context("cannot read standard input")? as u64;
                ensure!(
                    read <= MAX_IN_MEMORY,
                    "standard input has more than {} MiB, and this mode reads its input twice; give a file",
                    MAX_IN_MEMORY >> 20
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
            Input::Stdin(stdin) => stdin.read(buffer),
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

/// The destination of data. A file appears, complete, when it is [`finished`](Output::finish); before that
/// nothing is changed.
pub enum Output {
    /// A file that is being written.
    File {
        /// It gets its final name at the end.
        draft: BufWriter<Draft>,
        /// The final path.
        path: PathBuf,
        /// Whether an existing file is replaced.
        force: bool,
    },
    /// Standard output.
    Stdout {
        /// The beginning, until something is passed on. So a short message can be written again from the
        /// start.
        held: Option<Vec<u8>>,
        /// The rest.
        out: BufWriter<io::Stdout>,
    },
}

/// The most output that is held back from standard output until it is complete: a chunk of a sealed file,
/// with its head and tag.
const HELD: usize = (256 << 10) + 4096;

/// Whether this process has passed anything on to its standard output.
static PASSED_ON: AtomicBool = AtomicBool::new(false);

/// Whether everything that a command has written so far can be discarded. A file gets its final name only at
/// the end.
pub fn can_be_taken_back() -> bool {
    !PASSED_ON.load(Relaxed)
}

/// The permissions of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The output is not secret.
    All,
    /// The output is somebody's data.
    Owner,
}

impl Output {
    /// Creates a file. `-` is standard output; so is no name, unless standard output is a terminal.
    pub fn begin(path: Option<&Path>, readers: Readers, force: bool) -> Result<Output> {
        let path = match path {
            None if io::stdout().is_terminal() => {
                bail!("name the output: a file as the second argument, or - for this terminal")
            }
            None => return Ok(Output::stdout()),
            Some(path) if path == Path::new("-") => return Ok(Output::stdout()),
            Some(path) => path,
        };
        check(path, force)?;
        // Writes through a symbolic link, which remains.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let stopping = stop::on_signals()?;
        let draft = match readers {
            Readers::All => Draft::public(&path)?,
            Readers::Owner => Draft::private(&path)?,
        };
        leave_nothing(stopping, draft.temporary().map(Path::to_path_buf));
        Ok(Output::File { draft: BufWriter::new(draft), path, force })
    }

    fn stdout() -> Output {
        Output::Stdout { held: Some(Vec::new()), out: BufWriter::new(io::stdout()) }
    }

    /// Everything is written: the file gets its final name.
    pub fn finish(self) -> Result<()> {
        match self {
            Output::Stdout { held, mut out } => {
                let written = held.map_or(Ok(()), |held| out.write_all(&held)).and_then(|()| out.flush());
                written.context("cannot write the output")
            }
            Output::File { draft, path, force, .. } => {
                check(&path, force)?;
                let draft =
                    draft.into_inner().map_err(|e| e.into_error()).context("cannot write the output")?;
                Ok(draft.commit()?)
            }
        }
    }
}

/// Ends the program on a signal, even while it waits for its input or for nodes, and removes what is half
/// written.
fn leave_nothing(stopping: Arc<AtomicBool>, temporary: Option<PathBuf>) {
    std::thread::spawn(move || {
        while !stopping.load(Relaxed) {
            std::thread::sleep(POLL_INTERVAL);
        }
        if let Some(temporary) = temporary {
            // The file may just have got its final name.
            let _ = fs::remove_file(&temporary);
        }
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
            Output::Stdout { held: Some(held), .. } if held.len() + bytes.len() <= HELD => {
                held.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Output::Stdout { held, out } => {
                PASSED_ON.store(true, Relaxed);
                if let Some(held) = held.take() {
                    out.write_all(&held)?;
                }
                out.write(bytes)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File { draft, .. } => draft.flush(),
            Output::Stdout { held: Some(_), .. } => Ok(()),
            Output::Stdout { out, .. } => out.flush(),
        }
    }
}

/// A progress bar on a terminal, and nothing elsewhere.
pub fn progress(len: Option<u64>) -> ProgressBar {
    let template = match len {
        Some(_) => "{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left {msg}",
        None => "{bytes}, {bytes_per_sec} {msg}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = len.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style);
    *SHOWN.lock() = Some(bar.downgrade());
    bar
}

/// The progress bar of this command, for code that learns only that nodes work.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Shows beside the bar how far the nodes are with a piece that takes long.
pub fn show_work(done: u64, of: u64) {
    let shown = SHOWN.lock();
    if let Some(bar) = shown.as_ref().and_then(WeakProgressBar::upgrade) {
        bar.set_message(format!("(the nodes have computed {done} of the next {of} blocks)"));
    }
}
