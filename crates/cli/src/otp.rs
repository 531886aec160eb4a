//! `polyclave otp`: one-time passwords.

use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use polyclave_client::{OTP_DIGITS, totp_counter};
use subtle::ConstantTimeEq;

use crate::client_option::{ClientOption, persist};
use crate::say;

/// The most counters that one password is compared with.
const MOST_STEPS: u64 = 100;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key import phone --cipher hmac-sha-256 --modes hmac --key-file phone.hex\n  \
    polyclave otp --key phone\n  \
    polyclave otp --key phone --verify 492039\n  \
    polyclave otp --key token --counter 17\n\n\
    TOTP (RFC 6238) of this machine's time, or with --counter HOTP (RFC 4226), under a key for hmac with SHA-256 or SHA-512. The nodes \
    compute the code of the counter, and this program cuts it to digits. With --verify it prints the counter that the password \
    belongs to: keep it, and accept no password of this counter or an earlier one again. The right mac is for both, so whoever may \
    verify passwords can make them.")]
pub struct Arguments {
    /// The key's name
    #[arg(long, value_name = "N")]
    key: String,

    /// The version of the key [default: the current one]
    #[arg(long, value_name = "N")]
    key_version: Option<u32>,

    /// The counter, in place of a time
    #[arg(long, value_name = "N", conflicts_with_all = ["at", "period"])]
    counter: Option<u64>,

    /// The time, in seconds since 1970 [default: now]
    #[arg(long, value_name = "SECONDS")]
    at: Option<u64>,

    /// For how long a password is good, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    period: u64,

    /// Digits of the password: 6 to 8
    #[arg(
        long,
        value_name = "N",
        default_value_t = *OTP_DIGITS.start(),
        value_parser = clap::value_parser!(u8).range(*OTP_DIGITS.start() as i64..=*OTP_DIGITS.end() as i64)
    )]
    digits: u8,

    /// Say whether this is the password; exits with status 1 if not
    #[arg(long, value_name = "PASSWORD")]
    verify: Option<String>,

    /// With --verify: how many counters before and after this one are good, too; with --counter only after it
    /// [default: 1, and 0 with --counter]
    #[arg(long, value_name = "N", requires = "verify", value_parser = clap::value_parser!(u64).range(..=MOST_STEPS))]
    steps: Option<u64>,

    #[command(flatten)]
    client: ClientOption,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let counters = counters(arguments)?;
    let key = match arguments.key_version {
        Some(version) => format!("{}@{version}", arguments.key),
        None => arguments.key.clone(),
    };
    let client = arguments.client.open()?;
    let passwords =
        persist(&client, || true, || Ok(client.key(&key)?.one_time_passwords(&counters, arguments.digits)?))?;
    let Some(expected) = &arguments.verify else {
        passwords.iter().for_each(|password| say!("{}", **password));
        return Ok(ExitCode::SUCCESS);
    };
    let fits = |password: &str| bool::from(password.as_bytes().ct_eq(expected.as_bytes()));
    match counters.iter().zip(&passwords).find(|(_, password)| fits(password)) {
        Some((counter, _)) => say!("the password fits: counter {counter}"),
        None => bail!("the password does not fit: it is wrong or too old, or it belongs to another key"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The counters of the passwords, one without --verify.
fn counters(arguments: &Arguments) -> Result<Vec<u64>> {
    let (least, counter, usual) = match arguments.counter {
        Some(counter) => (counter, counter, 0),
        None => {
            let now = || SystemTime::UNIX_EPOCH.elapsed().context("this machine's clock is before 1970");
            let seconds = arguments.at.map_or_else(|| now().map(|time| time.as_secs()), Ok)?;
            (0, totp_counter(seconds, arguments.period), 1)
        }
    };
    let usual = if arguments.verify.is_some() { usual } else { 0 };
    let steps = arguments.steps.unwrap_or(usual);
    Ok((counter.saturating_sub(steps).max(least)..=counter.saturating_add(steps)).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Given {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn counters_of(given: &str) -> Vec<u64> {
        let line = format!("otp --key k --client c {given}");
        let given = Given::try_parse_from(line.split_whitespace()).expect("well formed");
        counters(&given.arguments).expect("there are some")
    }

    #[test]
    fn a_verification_takes_the_counters_around_a_time_and_behind_a_counter() {
        for (given, expected) in [
            ("--at 89", &[2][..]),
            ("--at 90 --period 60", &[1]),
            ("--at 89 --verify 123456", &[1, 2, 3]),
            ("--at 29 --verify 123456", &[0, 1]),
            ("--at 89 --verify 123456 --steps 0", &[2]),
            ("--counter 7", &[7]),
            ("--counter 7 --verify 123456", &[7]),
            ("--counter 7 --verify 123456 --steps 3", &[7, 8, 9, 10]),
            ("--counter 18446744073709551615 --verify 123456 --steps 3", &[u64::MAX]),
        ] {
            assert_eq!(counters_of(given), expected, "{given}");
        }
        assert_eq!(counters_of("").len(), 1);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for given in [
            "--digits 5",
            "--digits 9",
            "--period 0",
            "--steps 1",
            "--counter 1 --at 59",
            "--counter 1 --period 60",
            "--verify 123456 --steps 101",
        ] {
            let line = format!("otp --key k --client c {given}");
            assert!(Given::try_parse_from(line.split_whitespace()).is_err(), "{given}");
        }
    }
}
