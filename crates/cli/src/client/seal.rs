//! `client seal` and `client unseal`: the client's key under PINs, for PKCS#11, and in the clear again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use polyclave_config::{ClientDir, PinOwner, SealedClient, Strength, private};
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

    /// Makes a login a fifth of the work, and a guess at a PIN some 17 times cheaper: PINs then have 20 bytes
    /// or more
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
    dir.refuse_renewed()?;
    if dir.with_next_identity().is_some() {
        bail!("the client's certificate is being changed; finish that first with `polyclave client rotate`");
    }
    let strength = if arguments.quick_login { Strength::Quick } else { Strength::Full };
    let user = pin(PinOwner::User, arguments.user_pin_file.as_deref(), true)?;
    let officer = pin(PinOwner::SecurityOfficer, arguments.so_pin_file.as_deref(), true)?;
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
    let pin = pin(PinOwner::User, arguments.user_pin_file.as_deref(), false)?;
    SealedClient::at(&arguments.dir).unseal_for_good(PinOwner::User, &pin)?;
    say!("The client's key is in {} in the clear.", arguments.dir.display());
    Ok(ExitCode::SUCCESS)
}

/// A PIN from a private file, or typed; a new one twice.
fn pin(whose: PinOwner, file: Option<&Path>, is_new: bool) -> Result<Zeroizing<Vec<u8>>> {
    let pin = match file {
        Some(file) => {
            let bytes = private::read(file)?;
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            Zeroizing::new(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
        }
        None => {
            let first = typed(&format!("PIN of the {whose}: "))?;
            if is_new && typed(&format!("Repeat the PIN of the {whose}: "))? != first {
                bail!("the two PINs differ; nothing was changed");
            }
            first
        }
    };
    Ok(pin)
}

fn typed(prompt: &str) -> Result<Zeroizing<Vec<u8>>> {
    let text = rpassword::prompt_password(prompt).context(
        "no terminal is there to ask for a PIN; give it in a file with --user-pin-file and --so-pin-file",
    )?;
    Ok(Zeroizing::new(text.into_bytes()))
}
