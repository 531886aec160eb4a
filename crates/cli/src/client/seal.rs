//! `client seal` and `client unseal`: the client's key under PINs, for PKCS#11, and in the clear again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use polyclave_config::{ClientDir, MOST_PIN, PinOwner, SealedClient, Strength, private};
use zeroize::Zeroizing;

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave client seal ~/.polyclave                    # asks for both PINs\n  \
    polyclave client seal ~/.polyclave --quick-login      # for long PINs that a program keeps\n  \
    polyclave client unseal ~/.polyclave                  # asks for the user's PIN\n\n\
    Programs of PKCS#11 open the key with the user's PIN (C_Login). The security officer's PIN sets a new one if it is forgotten or \
    locked. The commands of polyclave need the key in the clear: they take another client, or `client unseal`. Whoever copies the \
    directory has to guess a PIN, so take one as long as a passphrase.")]
pub struct SealArguments {
    /// The client's directory
    dir: PathBuf,

    /// Read the user's PIN from the first line of this private file, and do not ask for it
    #[arg(long, value_name = "FILE")]
    user_pin_file: Option<PathBuf>,

    /// Read the security officer's PIN from the first line of this private file, and do not ask for it
    #[arg(long, value_name = "FILE")]
    so_pin_file: Option<PathBuf>,

    /// Let logins take a fifth of the time, and guesses at the PINs, too: these then have 20 bytes or more
    #[arg(long)]
    quick_login: bool,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
pub struct UnsealArguments {
    /// The client's directory
    dir: PathBuf,

    /// Read the user's PIN from the first line of this private file, and do not ask for it
    #[arg(long, value_name = "FILE")]
    user_pin_file: Option<PathBuf>,
}

/// Seals the key.
pub fn seal(arguments: &SealArguments) -> Result<ExitCode> {
    let path = &arguments.dir;
    if SealedClient::is_sealed(path) {
        bail!(
            "{} is sealed already; a program of PKCS#11 changes PINs (C_SetPIN, C_InitPIN), or unseal it first",
            path.display()
        );
    }
    let dir = ClientDir::open(path)?;
    if dir.with_next_identity().is_some() {
        bail!("the client's certificate is being changed; finish that first with `polyclave client rotate`");
    }
    let strength = if arguments.quick_login { Strength::Quick } else { Strength::Full };
    let user = pin("user", arguments.user_pin_file.as_deref(), Some(strength))?;
    let officer = pin("security officer", arguments.so_pin_file.as_deref(), Some(strength))?;
    SealedClient::at(path).of_strength(strength).seal(dir.identity(), &officer, Some(&user))?;
    say!(
        "The key of the client {} is sealed. It was on this disk in the clear: copies of the disk from before still have it.",
        dir.name()
    );
    Ok(ExitCode::SUCCESS)
}

/// Puts the key into the clear again.
pub fn unseal(arguments: &UnsealArguments) -> Result<ExitCode> {
    if !SealedClient::is_sealed(&arguments.dir) {
        bail!("{} is not sealed", arguments.dir.display());
    }
    let pin = pin("user", arguments.user_pin_file.as_deref(), None)?;
    SealedClient::at(&arguments.dir).unseal_for_good(PinOwner::User, &pin)?;
    say!("The client's key is in {} in the clear.", arguments.dir.display());
    Ok(ExitCode::SUCCESS)
}

/// A PIN from a private file, or typed; a new one, for a seal of some strength, twice.
fn pin(whose: &str, file: Option<&Path>, new: Option<Strength>) -> Result<Zeroizing<Vec<u8>>> {
    let pin = match file {
        Some(file) => {
            let bytes = private::read(file)?;
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            Zeroizing::new(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
        }
        None => {
            let first = typed(&format!("PIN of the {whose}: "))?;
            if new.is_some() && typed(&format!("Repeat the PIN of the {whose}: "))? != first {
                bail!("the two PINs differ; nothing was changed");
            }
            first
        }
    };
    if let Some(least) = new.map(Strength::least_pin)
        && !(least..=MOST_PIN).contains(&pin.len())
    {
        bail!("the PIN of the {whose} has {least} to {MOST_PIN} bytes; this one has {}", pin.len());
    }
    Ok(pin)
}

fn typed(prompt: &str) -> Result<Zeroizing<Vec<u8>>> {
    let text = rpassword::prompt_password(prompt).context(
        "no terminal is there to ask for a PIN; give it in a file with --user-pin-file and --so-pin-file",
    )?;
    Ok(Zeroizing::new(text.into_bytes()))
}
