//! Points in time between which the time counts in which the machine was suspended. The clock of [`Instant`]
//! stands still then on some systems, and that of the day may be set: so the longer of both times counts.

use std::time::{Duration, Instant, SystemTime};

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    instant: Instant,
    day: SystemTime,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment { instant: Instant::now(), day: SystemTime::now() }
    }

    /// By the clock of the day.
    pub(crate) fn day(self) -> SystemTime {
        self.day
    }

    /// The time since an earlier one.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        let by_day = self.day.duration_since(earlier.day).unwrap_or_default();
        self.instant.saturating_duration_since(earlier.instant).max(by_day)
    }

    /// The time since then.
    pub(crate) fn elapsed(self) -> Duration {
        Moment::now().since(self)
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, time: Duration) -> Moment {
        Moment { instant: self.instant + time, day: self.day + time }
    }
}

#[cfg(test)]
impl Moment {
    /// The same, if the machine was suspended for so long before it, or after it.
    pub(crate) fn after_suspension(self, time: Duration) -> Moment {
        Moment { day: self.day + time, ..self }
    }

    pub(crate) fn before_suspension(self, time: Duration) -> Moment {
        Moment { day: self.day - time, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_in_which_the_machine_was_suspended_or_its_clock_was_put_back() {
        let (began, second) = (Moment::now(), Duration::from_secs(1));
        assert_eq!((began + 5 * second).since(began), 5 * second);
        assert_eq!((began + second).after_suspension(60 * second).since(began), 61 * second);
        let put_back = Moment { day: began.day - 60 * second, ..began + 5 * second };
        assert_eq!(put_back.since(began), 5 * second);
        assert_eq!(began.since(began + second), Duration::ZERO);
    }
}
