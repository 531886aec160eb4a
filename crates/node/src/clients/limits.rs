//! The limits of one client: connections, requests and bytes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use polyclave_api::{Reason, Refusal};
use polyclave_config::NodeLimits;

use super::connections::Place;

/// The longest time for which a client in debt for bytes is delayed at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Beyond so many clients, those that use nothing are forgotten: an authority can vouch for any number.
const MANY: usize = 10_000;
/// How long what a client has used counts in its rates.
const REMEMBERED: Duration = Duration::from_secs(60);

/// What clients use at present, by name.
pub(crate) struct Clients {
    pub(super) limits: NodeLimits,
    /// How many connections that were refused or given away are still open.
    pub(super) leaving: AtomicUsize,
    now: Mutex<HashMap<String, Account>>,
    /// How many clients there may be before some are forgotten.
    prune_beyond: AtomicUsize,
}

#[derive(Default)]
pub(super) struct Account {
    pub(super) connections: Vec<Arc<Mutex<Place>>>,
    requests: usize,
    calls: Bucket,
    bytes: Bucket,
}

/// A rate limit that allows a burst of one second's worth. Not a library's (governor): those admit or refuse
/// an amount before it is used, and have no debt for bytes that have been computed already, which a client
/// pays for by waiting.
#[derive(Default)]
struct Bucket {
    /// The amount that was used beyond the rate, as of `at`.
    used: f64,
    at: Option<Instant>,
}

impl Bucket {
    /// Charges an amount if that stays within a second's worth. Returns whether it did.
    fn admit(&mut self, amount: f64, rate: u64) -> bool {
        let admitted = self.charge(0.0, rate).is_zero() && self.used + amount <= rate as f64;
        self.used += if admitted { amount } else { 0.0 };
        admitted
    }

    /// Charges an amount. Returns how long it takes until the amount is paid for, beyond a second's worth.
    fn charge(&mut self, amount: f64, rate: u64) -> Duration {
        let now = Instant::now();
        let passed = self.at.map_or(0.0, |at| now.duration_since(at).as_secs_f64());
        self.at = Some(now);
        let rate = rate.max(1) as f64;
        self.used = (self.used - passed * rate).max(0.0) + amount;
        Duration::try_from_secs_f64((self.used - rate).max(0.0) / rate).unwrap_or(LONGEST_PAUSE)
    }
}

/// A request that counts for a client; released when dropped.
pub(crate) struct Held<'c> {
    clients: &'c Clients,
    client: String,
    give_back: fn(&mut Account),
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut now = self.clients.lock();
        if let Some(account) = now.get_mut(&self.client) {
            (self.give_back)(account);
        }
    }
}

pub(super) fn busy(what: String) -> Refusal {
    Refusal::new(Reason::Busy, format!("{what}; try again later"))
}

impl Clients {
    pub(crate) fn new(limits: NodeLimits) -> Clients {
        Clients {
            limits,
            leaving: AtomicUsize::new(0),
            now: Mutex::default(),
            prune_beyond: AtomicUsize::new(MANY),
        }
    }

    /// Counts a request of a client.
    pub(crate) fn request(&self, client: &str) -> Result<Held<'_>, Refusal> {
        let mut now = self.lock();
        let account = now.entry(client.to_owned()).or_default();
        if account.requests >= self.limits.requests_at_once_per_client {
            return Err(busy(format!("{client} has {} requests under way", account.requests)));
        }
        if let Some(rate) = self.limits.requests_per_second_per_client
            && !account.calls.admit(1.0, rate)
        {
            return Err(busy(format!("{client} may make {rate} requests a second")));
        }
        account.requests += 1;
        Ok(self.held(client, |account| account.requests -= 1))
    }

    /// Charges bytes. Returns how long the client must wait for them.
    pub(crate) fn charge(&self, client: &str, bytes: usize) -> Duration {
        let Some(rate) = self.limits.bytes_per_second_per_client else { return Duration::ZERO };
        let mut now = self.lock();
        let account = now.entry(client.to_owned()).or_default();
        account.bytes.charge(bytes as f64, rate).min(LONGEST_PAUSE)
    }

    fn held(&self, client: &str, give_back: fn(&mut Account)) -> Held<'_> {
        Held { clients: self, client: client.to_owned(), give_back }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<String, Account>> {
        let mut now = self.now.lock();
        if now.len() > self.prune_beyond.load(Relaxed) {
            now.retain(|_, account| account.is_in_use());
            self.prune_beyond.store(MANY.max(2 * now.len()), Relaxed);
        }
        now
    }
}

impl Account {
    fn is_in_use(&self) -> bool {
        let counts = |bucket: &Bucket| bucket.at.is_some_and(|at| at.elapsed() < REMEMBERED);
        !self.connections.is_empty() || self.requests > 0 || counts(&self.calls) || counts(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(change: impl Fn(&mut NodeLimits)) -> Clients {
        let mut limits = NodeLimits::default();
        change(&mut limits);
        Clients::new(limits)
    }

    #[test]
    fn what_is_given_back_can_be_had_again() {
        let clients = clients(|limits| limits.requests_at_once_per_client = 1);
        let first = clients.request("alice");
        assert!(first.is_ok() && clients.request("alice").is_err() && clients.request("bob").is_ok());
        drop(first);
        assert!(clients.request("alice").is_ok());
    }

    #[test]
    fn of_many_clients_those_that_use_nothing_are_forgotten() {
        let clients = clients(|_| {});
        let held = clients.request("kept").expect("the first");
        for number in 0..2 * MANY {
            drop(clients.request(&format!("client {number}")).expect("one"));
        }
        assert!(clients.lock().len() <= MANY + 1);
        assert!(clients.lock().contains_key("kept"));
        drop(held);
    }

    #[test]
    fn a_rate_allows_a_second_in_advance_and_no_more() {
        let clients = clients(|limits| limits.requests_per_second_per_client = Some(3));
        let made = (0..10).filter(|_| clients.request("alice").is_ok()).count();
        assert_eq!(made, 3);
        assert!(clients.charge("alice", 1 << 30).is_zero(), "bytes are not limited here");
    }

    #[test]
    fn bytes_beyond_the_rate_hold_the_client_up() {
        let clients = clients(|limits| limits.bytes_per_second_per_client = Some(1000));
        assert!(clients.charge("alice", 1000).is_zero());
        assert!(!clients.charge("alice", 500).is_zero());
    }
}
