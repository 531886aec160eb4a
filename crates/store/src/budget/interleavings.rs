//! All orders of a few steps, compared with a model of a budget: two numbers. A key and a copy with a
//! smaller budget pay from one account.
//!
//! After every step: what was paid counts as spent; nothing was paid beyond the limit of the key that paid;
//! and a payment is refused only if the limit does not allow it, with what crashes and failed writes may have
//! lost. The last step of every order is also interrupted at each of its syncs.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::testing::*;
use super::*;

const ACCOUNT: [u8; 16] = [5; 16];
const COPY: [u8; 16] = [6; 16];
/// Leases of four blocks.
const LIMIT: u64 = 256;
const LIMIT_OF_COPY: u64 = 3;
const DEPTH: u32 = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Blocks of the key.
    Pay(u64),
    /// Blocks of its copy.
    PayByCopy(u64),
    /// The same as the first with a full disk.
    PayOnFullDisk,
    Settle,
    SettleOnFullDisk,
    Restart,
    Crash,
    DeleteCopy,
}

const STEPS: [Step; 9] = [
    Step::Pay(1),
    Step::Pay(253),
    Step::PayByCopy(2),
    Step::PayOnFullDisk,
    Step::Settle,
    Step::SettleOnFullDisk,
    Step::Restart,
    Step::Crash,
    Step::DeleteCopy,
];

/// What has to hold of an account.
#[derive(Clone, Copy, Debug, Default)]
struct Model {
    paid: u64,
    /// The most that may count as spent without having been paid.
    lost: u64,
    deleted: bool,
    /// A store that was opened since finds no key to pay for, so nobody asks.
    unknown: bool,
}

struct Run {
    store: Option<Store>,
    disk: Disk,
    model: Model,
}

impl Run {
    fn begin(bytes: &[u8]) -> Run {
        let disk = Disk::from_bytes(bytes.to_vec());
        Run { store: Some(reopen(&disk)), disk, model: Model::default() }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    fn pay(&mut self, id: [u8; 16], blocks: u64, limit: u64) {
        let fits = self.model.paid + blocks <= limit;
        let deleted = self.model.deleted && id == COPY;
        match self.store().spend((id, ACCOUNT), blocks, limit) {
            Ok(()) => {
                assert!(fits && !deleted, "{blocks} blocks were paid of {limit}");
                self.model.paid += blocks;
            }
            Err(StoreError::Deleted { .. }) => assert!(deleted),
            Err(StoreError::Spent { left }) => {
                assert!(!deleted && left < blocks);
                assert!(!fits || self.model.paid + self.model.lost + blocks > limit, "without a reason");
                assert!(left <= limit.saturating_sub(self.model.paid), "{left} blocks are not left");
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Pay(blocks) => self.pay(ACCOUNT, blocks, LIMIT),
            Step::PayByCopy(_) if self.model.unknown => {}
            Step::PayByCopy(blocks) => self.pay(COPY, blocks, LIMIT_OF_COPY),
            Step::PayOnFullDisk => {
                self.disk.fill_up();
                match self.store().spend((ACCOUNT, ACCOUNT), 1, LIMIT) {
                    // From what was reserved before.
                    Ok(()) => self.model.paid += 1,
                    Err(_) => self.model.lost += LIMIT / 64,
                }
                self.disk.make_room();
            }
            Step::Settle => self.store().settle().expect("settled"),
            Step::SettleOnFullDisk => {
                self.disk.fill_up();
                if self.store().settle().is_err() {
                    self.model.lost += LIMIT / 64;
                }
                self.disk.make_room();
            }
            Step::Restart => {
                drop(self.store.take());
                self.store = Some(reopen(&self.disk));
                self.model.unknown = self.model.deleted;
            }
            Step::Crash => {
                let disk = self.disk.copy();
                // What an orderly end still writes goes to the other disk.
                (self.store, self.disk) = (Some(reopen(&disk)), disk);
                self.model.lost += LIMIT / 64;
                self.model.unknown = self.model.deleted;
            }
            Step::DeleteCopy => {
                self.store().delete("copy", COPY).expect("deleted");
                self.model.deleted = true;
            }
        }
        assert!(self.model.paid <= LIMIT);
        let spent = self.store().spent(ACCOUNT).expect("read");
        let Model { paid, lost, .. } = self.model;
        assert!((paid..=paid + lost).contains(&spent), "{spent} blocks count as spent: {:?}", self.model);
    }
}

/// The bytes of a disk with a key and its copy.
fn with_keys() -> Vec<u8> {
    let (store, disk) = in_memory();
    let key_itself = key("key", ACCOUNT[0]);
    let mut copy = key("copy", COPY[0]);
    copy.info.account = ACCOUNT;
    for key in [key_itself, copy] {
        store.put_pending(&key).expect("put");
        store.announce(&key.info.properties.name, key.info.id).expect("announced");
    }
    drop(store);
    disk.bytes()
}

/// A node that dies at any sync of a step: what was paid before is spent, and no more than the rest is paid.
fn check_crashes(disk: &Disk, before: Model) {
    for bytes in disk.history() {
        let crashed = reopen(&Disk::from_bytes(bytes));
        let spent = crashed.spent(ACCOUNT).expect("read");
        assert!((before.paid..=LIMIT).contains(&spent), "{spent} blocks count as spent: {before:?}");
        let pay = |blocks| crashed.spend((ACCOUNT, ACCOUNT), blocks, LIMIT);
        assert!(matches!(pay(LIMIT - spent + 1), Err(StoreError::Spent { left }) if left == LIMIT - spent));
        pay(LIMIT - spent).expect("all that is left");
    }
}

#[test]
fn in_every_order_of_steps_what_was_paid_is_spent_and_no_more_than_the_budget_is_paid() {
    let bytes = with_keys();
    let count = STEPS.len().pow(DEPTH);
    let check = |order: usize| {
        let steps: Vec<Step> =
            (0..DEPTH).map(|place| STEPS[order / STEPS.len().pow(place) % STEPS.len()]).collect();
        let (last, first) = steps.split_last().expect("there are some");
        let checked = std::panic::catch_unwind(|| {
            let mut run = Run::begin(&bytes);
            first.iter().for_each(|step| run.take(*step));
            let before = run.model;
            run.disk.record();
            run.take(*last);
            check_crashes(&run.disk, before);
        });
        assert!(checked.is_ok(), "{steps:?}");
    };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let orders = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                orders.take_while(|order| *order < count).for_each(check);
            });
        }
    });
    assert!(next.into_inner() >= count);
}
