//! When a rule is in force: from one moment to another, on some days of the week, at some hours. All of it in
//! UTC, by the node's own clock.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toml::value::Datetime;

const DAY: u64 = 24 * 60 * 60;
const MINUTES: u16 = 24 * 60;

/// A moment, to the second. In TOML `2026-12-31T18:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// From seconds since 1970.
    pub fn from_seconds(seconds: u64) -> Moment {
        Moment(seconds)
    }

    /// By the clock of this machine.
    pub fn now() -> Moment {
        Moment(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()))
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> u64 {
        self.0
    }

    /// The hour, counted since 1970.
    pub fn hour(self) -> u64 {
        self.0 / 3600
    }

    /// The day, counted since 1970.
    pub fn day(self) -> u64 {
        self.0 / DAY
    }

    fn minute(self) -> u16 {
        (self.0 % DAY / 60) as u16
    }

    fn weekday(self) -> Day {
        // The first of January 1970 was a Thursday.
        Day::ALL[((self.day() + 3) % 7) as usize]
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let wrong = || format!("{text:?} is no moment; write it as 2026-12-31T18:00:00Z");
        let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| wrong())?;
        // Years of five digits could not be written again.
        let within = |seconds: &u64| *seconds < 253_402_300_800;
        u64::try_from(moment.unix_timestamp()).ok().filter(within).map(Moment).ok_or_else(wrong)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = i64::try_from(self.0).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
        match moment.and_then(|moment| moment.format(&Rfc3339).ok()) {
            Some(text) => f.write_str(&text),
            None => write!(f, "{} s after 1970", self.0),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Datetime::from_str(&self.to_string()).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        Datetime::deserialize(deserializer)?.to_string().parse().map_err(de::Error::custom)
    }
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    /// From Monday on.
    pub const ALL: [Day; 7] = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun];
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Day::Mon => "mon",
            Day::Tue => "tue",
            Day::Wed => "wed",
            Day::Thu => "thu",
            Day::Fri => "fri",
            Day::Sat => "sat",
            Day::Sun => "sun",
        })
    }
}

/// Hours of the day. In TOML `"08:00-18:00"`: from the first minute on, until just before the last.
/// `"22:00-06:00"` goes over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    from: u16,
    to: u16,
}

impl Hours {
    fn contains(self, minute: u16) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Hours, String> {
        let number = |digits: &str| {
            let two = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
            two.then(|| digits.parse::<u16>().ok()).flatten()
        };
        let minute = |text: &str| {
            let (hours, minutes) = text.split_once(':')?;
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            (minutes < 60).then_some(60 * hours + minutes).filter(|minute| *minute <= MINUTES)
        };
        let hours = || {
            let (from, to) = text.split_once('-')?;
            let (from, to) = (minute(from)?, minute(to)?);
            (from != to && from < MINUTES && to > 0).then_some(Hours { from, to })
        };
        hours().ok_or_else(|| {
            format!("{text:?} are no hours; write them as 08:00-18:00, in UTC, 24:00 for midnight at the end")
        })
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hours { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

impl Serialize for Hours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hours, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Why a rule with these limits is not in force at a moment; `None` if it is.
pub(super) fn why_not(
    (not_before, not_after): (Option<Moment>, Option<Moment>),
    days: &[Day],
    hours: Option<Hours>,
    at: Moment,
) -> Option<String> {
    if let Some(from) = not_before.filter(|from| at < *from) {
        return Some(format!("it begins at {from}"));
    }
    if let Some(to) = not_after.filter(|to| at > *to) {
        return Some(format!("it ended at {to}"));
    }
    if !days.is_empty() && !days.contains(&at.weekday()) {
        let days: Vec<String> = days.iter().map(Day::to_string).collect();
        return Some(format!("it is for {} (UTC)", days.join(", ")));
    }
    let hours = hours.filter(|hours| !hours.contains(at.minute()))?;
    Some(format!("it is for the hours {hours} (UTC)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Moment {
        text.parse().expect("a moment")
    }

    #[test]
    fn a_moment_has_its_day_hour_and_minute_in_utc() {
        let moment = at("2026-11-24T07:45:30+02:00");
        assert_eq!(moment.to_string(), "2026-11-24T05:45:30Z");
        assert_eq!((moment.weekday(), moment.minute()), (Day::Tue, 5 * 60 + 45));
        assert_eq!(at("1970-01-01T00:00:00Z").weekday(), Day::Thu);
        assert_eq!(at("2024-02-29T23:59:59Z").weekday(), Day::Thu);
        assert_eq!((at("1970-01-02T01:00:00Z").day(), at("1970-01-02T01:00:00Z").hour()), (1, 25));
    }

    #[test]
    fn limits_of_time_hold_to_the_second() {
        let span = (Some(at("2026-01-01T00:00:00Z")), Some(at("2026-12-31T18:00:00Z")));
        let why = |moment: &str| why_not(span, &[], None, at(moment));
        assert!(why("2025-12-31T23:59:59Z").expect("early").contains("begins at 2026-01-01"));
        assert_eq!(why("2026-01-01T00:00:00Z"), None);
        assert_eq!(why("2026-12-31T18:00:00Z"), None);
        assert!(why("2026-12-31T18:00:01Z").expect("late").contains("ended at 2026-12-31T18"));
        let weekdays = &Day::ALL[..5];
        assert_eq!(why_not((None, None), weekdays, None, at("2026-11-27T23:59:59Z")), None);
        assert!(why_not((None, None), weekdays, None, at("2026-11-28T00:00:00Z")).is_some());
    }

    #[test]
    fn hours_may_go_over_midnight() {
        let within = |hours: &str, moment: &str| {
            let hours: Hours = hours.parse().expect("hours");
            hours.contains(at(&format!("2026-11-24T{moment}Z")).minute())
        };
        assert!(within("08:00-18:00", "08:00:00") && within("08:00-18:00", "17:59:59"));
        assert!(!within("08:00-18:00", "07:59:59") && !within("08:00-18:00", "18:00:00"));
        assert!(within("22:00-06:00", "23:00:00") && within("22:00-06:00", "05:59:59"));
        assert!(!within("22:00-06:00", "06:00:00") && !within("22:00-06:00", "21:59:59"));
        assert!(within("12:00-24:00", "23:59:59") && within("00:00-24:00", "00:00:00"));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "8-18",
            "08:00",
            "08:60-09:00",
            "25:00-26:00",
            "24:00-08:00",
            "08:00-08:00",
            "0800-1800",
            "+8:00-18:00",
        ] {
            assert!(bad.parse::<Hours>().is_err(), "{bad}");
        }
        for bad in ["", "2026-12-31", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-12-31T18:00:00"] {
            assert!(bad.parse::<Moment>().is_err(), "{bad}");
        }
    }
}
