//! Which request gets the next channel: how many channels a client may hold, and the order in which requests
//! wait.
//!
//! A request holds a channel from its beginning to its end, and a client may keep it open as long as it goes
//! on. So the leading node of a serving set gives out channels by two rules:
//!
//! * *A share.* A client that holds h channels gets another only while more than h are free in that serving
//!   set. So one client holds at most half of them (8 of 16), and k clients that want as many as they can get
//!   end with 1/(k + 1) of them each. The rest remains for clients that hold fewer, and above all for those
//!   that hold none. (This is the dynamic threshold of Choudhury and Hahne, 1998, for queues that share a
//!   buffer, with alpha = 1; cited from memory.)
//! * *An order.* Among the clients that wait and may have a channel, the one that holds the fewest comes
//!   first; if several hold equally few, the one whose last turn was longest ago. The requests of one client
//!   are served in order of arrival. So a client with many requests waits for itself.
//!
//! A client that leaves a channel idle can lose it early, when a client with fewer channels waits
//! ([`Turns::is_to_yield`]). *Not covered*: clients that keep sending keep their channels. Five of them that
//! never end take all 16 (8, 4, 2, 1, 1); the sixth then waits until one ends. All of them are clients that
//! an operator has allowed.

use std::collections::HashMap;

use polyclave_protocol::PartySet;

/// The lent channels of the serving sets that this node leads, and the requests that wait for one.
pub(crate) struct Turns {
    /// The limit for one serving set, and for all together.
    most: usize,
    most_of_all: usize,
    lent: HashMap<PartySet, usize>,
    clients: HashMap<String, Account>,
    waiting: Vec<Waiting>,
    /// Counts turns and arrivals.
    count: u64,
}

#[derive(Default)]
struct Account {
    /// Channels that the client holds in all serving sets.
    held: usize,
    /// Those of them that the client is giving up for another client.
    yielded: usize,
    last_turn: u64,
}

struct Waiting {
    number: u64,
    client: String,
    serving: PartySet,
}

impl Turns {
    pub(crate) fn new(most: usize, most_of_all: usize) -> Turns {
        let (lent, clients, waiting) = Default::default();
        Turns { most, most_of_all, lent, clients, waiting, count: 0 }
    }

    /// Adds a waiting request of a client. Returns its number in the queue.
    pub(crate) fn enter(&mut self, client: &str, serving: PartySet) -> u64 {
        self.count += 1;
        self.waiting.push(Waiting { number: self.count, client: client.to_owned(), serving });
        self.count
    }

    /// Removes a request that no longer waits.
    pub(crate) fn leave(&mut self, number: u64) {
        self.waiting.retain(|waiting| waiting.number != number);
    }

    /// Takes a channel for a waiting request if it is its turn.
    pub(crate) fn take(&mut self, number: u64) -> bool {
        let next = self.waiting.iter().filter(|waiting| self.may_have(waiting)).min_by_key(|waiting| {
            let account = self.clients.get(&waiting.client);
            account.map_or((0, 0, waiting.number), |a| (a.held, a.last_turn, waiting.number))
        });
        let Some(Waiting { client, serving, .. }) = next.filter(|next| next.number == number) else {
            return false;
        };
        self.count += 1;
        let account = self.clients.entry(client.clone()).or_default();
        (account.held, account.last_turn) = (account.held + 1, self.count);
        *self.lent.entry(*serving).or_default() += 1;
        self.leave(number);
        true
    }

    /// Frees the channel of a client's request that has ended.
    pub(crate) fn give_back(&mut self, client: &str, serving: PartySet) {
        if let Some(account) = self.clients.get_mut(client) {
            account.held = account.held.saturating_sub(1);
            account.yielded = account.yielded.saturating_sub(1);
        }
        if let Some(lent) = self.lent.get_mut(&serving) {
            *lent = lent.saturating_sub(1);
        }
    }

    /// Whether a client must give up a channel that it leaves idle, because a client with fewer channels
    /// waits for one in that set. If so, this channel counts as given up at once; otherwise all would be
    /// given up for one waiting client.
    pub(crate) fn is_to_yield(&mut self, client: &str, serving: PartySet) -> bool {
        let Some(Account { held, yielded, .. }) = self.clients.get(client) else { return false };
        let kept = held.saturating_sub(*yielded);
        let all_lent = self.lent_of_all() >= self.most_of_all;
        let is_to_yield = self.waiting.iter().any(|waiting| {
            (waiting.serving == serving || all_lent)
                && waiting.client != client
                && self.held(&waiting.client) < kept
        });
        if is_to_yield && let Some(account) = self.clients.get_mut(client) {
            account.yielded += 1;
        }
        is_to_yield
    }

    /// How many channels are lent in a serving set.
    pub(crate) fn lent(&self, serving: PartySet) -> usize {
        self.lent.get(&serving).copied().unwrap_or_default()
    }

    /// How many channels are lent in all sets.
    pub(crate) fn lent_of_all(&self) -> usize {
        self.lent.values().sum()
    }

    fn may_have(&self, waiting: &Waiting) -> bool {
        let free = self.most.saturating_sub(self.lent(waiting.serving));
        free > self.held(&waiting.client) && self.lent_of_all() < self.most_of_all
    }

    fn held(&self, client: &str) -> usize {
        self.clients.get(client).map_or(0, |account| account.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: fn() -> PartySet = || PartySet::all(3);

    /// Takes all turns that are due, in order. Returns the clients.
    fn due(turns: &mut Turns) -> Vec<String> {
        let mut order = Vec::new();
        loop {
            let waiting: Vec<(u64, String)> =
                turns.waiting.iter().map(|w| (w.number, w.client.clone())).collect();
            match waiting.into_iter().find(|(number, _)| turns.take(*number)) {
                Some((_, client)) => order.push(client),
                None => return order,
            }
        }
    }

    fn enter(turns: &mut Turns, client: &str, requests: usize) {
        for _ in 0..requests {
            turns.enter(client, SET());
        }
    }

    #[test]
    fn two_clients_that_never_end_leave_channels_to_every_other() {
        let mut turns = Turns::new(16, 64);
        enter(&mut turns, "a", 8);
        assert_eq!(due(&mut turns).len(), 8, "alone a client gets its eight");
        enter(&mut turns, "b", 8);
        assert_eq!(due(&mut turns).len(), 4);
        for other in ["c", "d"] {
            enter(&mut turns, other, 1);
            assert_eq!(due(&mut turns), [other], "it is served before anything of the two has ended");
        }
    }

    #[test]
    fn who_holds_fewest_comes_first_and_then_who_waited_longest() {
        let mut turns = Turns::new(4, 16);
        enter(&mut turns, "a", 6);
        assert_eq!(due(&mut turns), ["a", "a"]);
        enter(&mut turns, "b", 2);
        enter(&mut turns, "c", 2);
        assert_eq!(due(&mut turns), ["b", "c"], "each that holds none gets one");
        turns.give_back("a", SET());
        assert_eq!(due(&mut turns), Vec::<String>::new(), "one is free, and all three hold one");
        turns.give_back("a", SET());
        assert_eq!(due(&mut turns), ["a"], "it holds none now");
        turns.give_back("b", SET());
        assert_eq!(due(&mut turns), ["b"]);
    }

    /// When requests of three clients with eight each end in the order in which they began, the clients are
    /// served in turn.
    #[test]
    fn of_three_clients_with_eight_requests_each_none_is_served_more_than_its_part() {
        let mut turns = Turns::new(16, 64);
        ["a", "b", "c"].into_iter().for_each(|client| enter(&mut turns, client, 8));
        let (mut running, mut begun) = (std::collections::VecDeque::new(), Vec::new());
        loop {
            for client in due(&mut turns) {
                begun.push(client.clone());
                running.push_back(client);
            }
            let Some(client) = running.pop_front() else { break };
            turns.give_back(&client, SET());
        }
        assert_eq!(begun.len(), 24);
        for (at, part) in begun.chunks(3).enumerate() {
            let mut part = part.to_vec();
            part.sort();
            assert_eq!(part, ["a", "b", "c"], "turn {at} of {begun:?}");
        }
    }

    #[test]
    fn one_client_among_many_sets_leaves_room_in_all() {
        let mut turns = Turns::new(4, 8);
        let sets: Vec<PartySet> = (0..5).map(|at| PartySet::from_bits(0b11 << at)).collect();
        for set in sets.iter().chain(&sets).chain(&sets) {
            turns.enter("a", *set);
        }
        assert_eq!(due(&mut turns).len(), 4, "it holds as many as a set has");
        turns.enter("b", sets[0]);
        assert_eq!(due(&mut turns), ["b"]);
    }

    #[test]
    fn a_channel_is_given_back_for_who_holds_fewer_and_not_for_who_holds_more() {
        let mut turns = Turns::new(2, 2);
        enter(&mut turns, "a", 2);
        assert_eq!(due(&mut turns), ["a"]);
        assert!(!turns.is_to_yield("a", SET()), "its own requests do not count");
        enter(&mut turns, "b", 2);
        assert_eq!(due(&mut turns), ["b"]);
        assert!(!turns.is_to_yield("a", SET()) && !turns.is_to_yield("b", SET()), "each has one");
        let third = turns.enter("c", SET());
        assert!(turns.is_to_yield("a", SET()));
        turns.leave(third);
        assert!(!turns.is_to_yield("b", SET()));
    }

    #[test]
    fn no_more_channels_are_given_back_than_make_the_two_equal() {
        let mut turns = Turns::new(16, 64);
        enter(&mut turns, "a", 8);
        due(&mut turns);
        enter(&mut turns, "b", 8);
        due(&mut turns);
        let held = |turns: &Turns, client: &str| turns.clients[client].held;
        assert_eq!((held(&turns, "a"), held(&turns, "b")), (8, 4));
        let yielded = (0..8).filter(|_| turns.is_to_yield("a", SET())).count();
        assert_eq!(yielded, 4);
        (0..yielded).for_each(|_| turns.give_back("a", SET()));
        assert_eq!(due(&mut turns).first().map(String::as_str), Some("b"));
        assert!(!turns.is_to_yield("a", SET()));
    }
}
