//! The connections of one client.
//!
//! A client at its limit of connections gets another one if one of its connections is quiet: that one is
//! closed. Several programs of one client may keep connections for their next requests without knowing of
//! each other. Connections of other clients stay.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::Refusal;
use polyclave_transport::CLIENT_CONNECT;

use super::limits::{Account, Clients, busy};

/// A connection may be closed for another one of the same client if it was quiet for this time: a client that
/// has just been answered may be sending its next request.
const QUIET: Duration = Duration::from_secs(2);

/// The most connections that stay open for a moment after their client was refused. They count for no client,
/// so a client that dials again and again could otherwise have any number of them.
const MAX_LEAVING: usize = 32;

/// What a connection is doing.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// It waits for a request, since then.
    Quiet(Instant),
    Used,
    /// It is to be closed, and counts no longer.
    GivenAway,
}

/// A connection that counts for a client; released when dropped.
pub(crate) struct Connection<'c> {
    clients: &'c Clients,
    client: String,
    place: Arc<Mutex<Place>>,
}

impl Connection<'_> {
    /// Whether it was given away. A request that is there already, or comes now, is not served then.
    pub(crate) fn is_given_away(&self) -> bool {
        matches!(*self.place.lock(), Place::GivenAway)
    }

    /// A request has come. `None` if the connection was given away.
    #[must_use]
    pub(crate) fn begin(&self) -> Option<()> {
        self.turn(Place::Used)
    }

    /// The request was answered.
    pub(crate) fn end(&self) {
        // Nobody gives away a connection in use.
        let _ = self.turn(Place::Quiet(Instant::now()));
    }

    fn turn(&self, to: Place) -> Option<()> {
        let mut place = self.place.lock();
        match *place {
            Place::GivenAway => None,
            Place::Quiet(_) | Place::Used => {
                *place = to;
                Some(())
            }
        }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let mut now = self.clients.lock();
        if let Some(account) = now.get_mut(&self.client) {
            account.connections.retain(|place| !Arc::ptr_eq(place, &self.place));
        }
    }
}

/// A connection that stays open until its client has read why it is refused.
pub(crate) struct Leaving<'c>(&'c Clients);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leaving.fetch_sub(1, Relaxed);
    }
}

impl Account {
    /// Gives the connection away that is quiet for the longest time. Returns whether there was one.
    fn give_away(&mut self, now: Instant) -> bool {
        let longest_first = self.quiet(now);
        self.give_away_first_of(&longest_first)
    }

    /// Those that may be given away, each with the time since when it is quiet, the longest first.
    fn quiet(&self, now: Instant) -> Vec<(Instant, Arc<Mutex<Place>>)> {
        let since = |place: &Arc<Mutex<Place>>| match *place.lock() {
            Place::Quiet(since) if now.saturating_duration_since(since) >= QUIET => Some(since),
            Place::Quiet(_) | Place::Used | Place::GivenAway => None,
        };
        let mut all: Vec<_> =
            self.connections.iter().filter_map(|place| Some((since(place)?, place.clone()))).collect();
        all.sort_by_key(|(since, _)| *since);
        all
    }

    /// Gives away the first of some connections that has had no request since it was last examined.
    fn give_away_first_of(&mut self, quiet: &[(Instant, Arc<Mutex<Place>>)]) -> bool {
        let given = quiet.iter().find(|(since, place)| {
            let mut place = place.lock();
            let is_quiet = matches!(*place, Place::Quiet(of) if of == *since);
            if is_quiet {
                *place = Place::GivenAway;
            }
            is_quiet
        });
        let Some((_, given)) = given else { return false };
        self.connections.retain(|place| !Arc::ptr_eq(place, given));
        true
    }
}

impl Clients {
    /// Lets a refused connection stay open for a moment, if few others do.
    pub(crate) fn leave(&self) -> Option<Leaving<'_>> {
        let leaving = Leaving(self);
        (self.leaving.fetch_add(1, Relaxed) < MAX_LEAVING).then_some(leaving)
    }

    /// Counts a connection of a client.
    pub(crate) fn connection(&self, client: &str) -> Result<Connection<'_>, Refusal> {
        self.connection_at(client, Instant::now())
    }

    fn connection_at(&self, client: &str, at: Instant) -> Result<Connection<'_>, Refusal> {
        let mut now = self.lock();
        let total: usize = now.values().map(|account| account.connections.len()).sum();
        let account = now.entry(client.to_owned()).or_default();
        let own = account.connections.len();
        // A quarter is reserved for clients that have none; otherwise a few clients could keep all others
        // out.
        let most = self.limits.connections;
        let most = if own == 0 { most } else { most - most / 4 };
        let is_full = own >= self.limits.connections_per_client || total >= most;
        if is_full && !account.give_away(at) {
            let message = format!(
                "{client} has {own} of the {total} connections of this node, and none of its own was quiet for {} seconds",
                QUIET.as_secs()
            );
            return Err(busy(message));
        }
        // Its client may still be dialling other nodes, and asks nobody before it is connected with all or
        // has given them up.
        let place = Arc::new(Mutex::new(Place::Quiet(at + CLIENT_CONNECT)));
        account.connections.push(place.clone());
        Ok(Connection { clients: self, client: client.to_owned(), place })
    }
}

#[cfg(test)]
mod tests {
    use polyclave_config::NodeLimits;

    use super::*;

    fn clients(change: impl Fn(&mut NodeLimits)) -> Clients {
        let mut limits = NodeLimits::default();
        change(&mut limits);
        Clients::new(limits)
    }

    #[test]
    fn few_connections_stay_open_after_a_refusal() {
        let clients = clients(|_| {});
        let leaving: Vec<_> = std::iter::from_fn(|| clients.leave()).take(2 * MAX_LEAVING).collect();
        assert_eq!(leaving.len(), MAX_LEAVING);
        drop(leaving);
        assert!(clients.leave().is_some());
    }

    #[test]
    fn clients_that_have_many_connections_leave_some_to_those_that_have_none() {
        let clients = clients(|limits| (limits.connections, limits.connections_per_client) = (16, 12));
        let held = |client: &str| -> Vec<Connection<'_>> {
            std::iter::from_fn(|| clients.connection(client).ok()).take(16).collect()
        };
        let (alice, bob) = (held("alice"), held("bob"));
        assert_eq!((alice.len(), bob.len()), (12, 1));
        assert!(clients.connection("carol").is_ok());
    }

    #[test]
    fn a_client_at_its_limit_gets_the_connection_that_is_quiet_for_the_longest_time() {
        let clients = clients(|limits| limits.connections_per_client = 3);
        let began = Instant::now();
        let later = |seconds: u64| began + CLIENT_CONNECT + Duration::from_secs(seconds);
        let connect = |seconds: u64| clients.connection_at("alice", later(seconds) - CLIENT_CONNECT);
        let retry = |seconds: u64| clients.connection_at("alice", later(seconds));
        let [first, second, third] = [1, 0, 2].map(|second| connect(second).expect("below the limit"));
        let text = retry(1).err().expect("nothing is quiet for long").message;
        assert!(text.contains("alice has 3 of the 3 connections") && text.contains("2 seconds"), "{text}");
        assert!(retry(2).is_ok_and(|_| second.is_given_away()), "quiet for two seconds");
        assert!(!first.is_given_away() && !third.is_given_away());
        assert_eq!(second.begin(), None, "what comes now is not served");
        drop(second);
        let fourth = retry(2).expect("the one above is closed again");
        assert!(retry(2).is_err(), "nothing is quiet for long");
        assert_eq!([first.begin(), third.begin(), fourth.begin()], [Some(()); 3]);
        assert!(retry(3600).is_err(), "all are in use");
        first.end();
        assert!(retry(3600).is_ok_and(|_| first.is_given_away()));
        assert!(clients.connection_at("bob", began).is_ok());
        drop([first, third, fourth]);
        assert_eq!(
            std::iter::from_fn(|| retry(2).ok()).take(9).collect::<Vec<_>>().len(),
            3,
            "none counts twice"
        );
    }

    #[test]
    fn a_connection_is_not_given_away_while_its_client_may_still_dial_other_nodes() {
        let clients = clients(|limits| limits.connections_per_client = 1);
        let began = Instant::now();
        let connect = |after: Duration| clients.connection_at("alice", began + after);
        let first = connect(Duration::ZERO).expect("below the limit");
        assert!(
            connect(CLIENT_CONNECT + QUIET - Duration::from_millis(1)).is_err() && !first.is_given_away()
        );
        assert!(connect(CLIENT_CONNECT + QUIET).is_ok() && first.is_given_away());
    }

    #[test]
    fn if_a_request_comes_to_the_one_that_is_quiet_for_the_longest_time_the_next_is_given_away() {
        let clients = clients(|limits| limits.connections_per_client = 2);
        let began = Instant::now();
        let connect =
            |second: u64| clients.connection_at("alice", began + Duration::from_secs(second)).expect("free");
        let (first, second) = (connect(0), connect(1));
        let mut now = clients.lock();
        let account = now.get_mut("alice").expect("it has connections");
        let quiet = account.quiet(began + Duration::from_secs(3600));
        assert_eq!(first.begin(), Some(()));
        assert!(account.give_away_first_of(&quiet) && second.is_given_away() && !first.is_given_away());
        assert!(!account.give_away_first_of(&quiet), "none is left");
        drop(now);
    }
}
