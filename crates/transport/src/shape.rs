//! The round-trip time and the rate of a network that is to be imitated.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use polyclave_protocol::{Error, Result};

/// A network's delay and rate, the same between any two parties and in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The round-trip time of a single bit. One way takes half of it.
    pub rtt: Duration,
    /// The rate from one party to another; `None` is as fast as the machine.
    pub bytes_per_second: Option<f64>,
}

impl Shape {
    /// The machine's own network, without changes.
    pub const LOOPBACK: Shape = Shape { rtt: Duration::ZERO, bytes_per_second: None };
    /// One data centre: 0.2 ms, 1 Gb/s.
    pub const LAN: Shape = Shape { rtt: Duration::from_micros(200), bytes_per_second: Some(1e9 / 8.0) };
    /// Between continents: 50 ms, 100 Mb/s.
    pub const WAN: Shape = Shape { rtt: Duration::from_millis(50), bytes_per_second: Some(1e8 / 8.0) };

    /// Whether there is anything to imitate.
    pub fn is_loopback(&self) -> bool {
        *self == Shape::LOOPBACK
    }

    /// How long the line is busy with `bytes`.
    pub fn line_time(&self, bytes: usize) -> Duration {
        let seconds = self.bytes_per_second.map_or(0.0, |rate| bytes as f64 / rate);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// `loopback`, `lan`, `wan`, or a round-trip time (`us`, `ms`, `s`) and a rate (`kbit`, `Mbit`, `Gbit` a
/// second, or `unlimited`) such as `10ms,100Mbit`.
impl FromStr for Shape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shape> {
        match text {
            "loopback" => return Ok(Shape::LOOPBACK),
            "lan" => return Ok(Shape::LAN),
            "wan" => return Ok(Shape::WAN),
            _ => {}
        }
        let wrong = |what: &str| {
            Error::misuse(format!(
                "{what} in network {text:?}; write loopback, lan, wan or RTT,RATE such as 10ms,100Mbit"
            ))
        };
        let (rtt, rate) = text.split_once(',').ok_or_else(|| wrong("no known name and no comma"))?;
        let seconds = quantity(rtt, &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]);
        let seconds = seconds.ok_or_else(|| wrong("no round-trip time in us, ms or s"))?;
        let rtt = Duration::try_from_secs_f64(seconds).ok().filter(|rtt| *rtt <= LONGEST);
        let rtt = rtt.ok_or_else(|| wrong("a round-trip time of more than a minute"))?;
        if rate.trim() == "unlimited" {
            return Ok(Shape { rtt, bytes_per_second: None });
        }
        let bits = quantity(rate, &[("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)]);
        let bits = bits.ok_or_else(|| wrong("no rate in kbit, Mbit or Gbit"))?;
        if bits < SLOWEST {
            return Err(wrong("a rate of less than 1 kbit"));
        }
        Ok(Shape { rtt, bytes_per_second: Some(bits / 8.0) })
    }
}

const LONGEST: Duration = Duration::from_secs(60);
const SLOWEST: f64 = 1e3;

/// A number that is not negative and its unit, in base units.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    let number: f64 = number.parse().ok()?;
    Some(number * factor)
}

/// In the form in which it can be parsed again.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes_per_second {
            _ if *self == Shape::LOOPBACK => f.write_str("loopback"),
            _ if *self == Shape::LAN => f.write_str("lan"),
            _ if *self == Shape::WAN => f.write_str("wan"),
            Some(rate) => write!(f, "{}ms,{}Mbit", self.rtt.as_secs_f64() * 1e3, rate * 8e-6),
            None => write!(f, "{}ms,unlimited", self.rtt.as_secs_f64() * 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_pairs_are_parsed() {
        assert_eq!("loopback".parse(), Ok(Shape::LOOPBACK));
        assert_eq!("lan".parse(), Ok(Shape::LAN));
        assert_eq!("wan".parse(), Ok(Shape::WAN));
        let expected = Shape { rtt: Duration::from_millis(10), bytes_per_second: Some(12.5e6) };
        assert_eq!("10ms,100Mbit".parse(), Ok(expected));
        assert_eq!("0.01s, 0.1 Gbit".parse(), Ok(expected));
        assert_eq!("10000us,100000kbit".parse(), Ok(expected));
    }

    #[test]
    fn what_is_shown_can_be_parsed() {
        for text in ["loopback", "lan", "wan", "10ms,100Mbit", "0.5ms,2.5Mbit", "3ms,unlimited"] {
            assert_eq!(text.parse::<Shape>().map(|shape| shape.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in [
            "",
            "moon",
            "10ms",
            "10,100Mbit",
            "ms,100Mbit",
            "10ms,100",
            "-1ms,1Mbit",
            "1ms,0Mbit",
            "1e9s,1Mbit",
        ] {
            let message = text.parse::<Shape>().map_err(|e| e.to_string());
            assert!(
                message.as_ref().is_err_and(|message| message.contains("10ms,100Mbit")),
                "{text:?}: {message:?}"
            );
        }
    }

    #[test]
    fn a_megabit_takes_a_millisecond_at_a_gigabit_a_second() {
        assert_eq!(Shape::LAN.line_time(125_000), Duration::from_millis(1));
    }
}
