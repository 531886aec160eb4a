//! The state of a simulation, and who runs next.
//!
//! A simulated thread is a thread of this process. Only one of them runs at a time: the one that has the
//! baton. A thread passes the baton on when it calls a function that may wait. So the order in which threads
//! run follows from the seed, as far as nothing real has an influence (CONTRIBUTING.md says what may). Time
//! passes when all threads wait: it jumps to the next event. Besides, every call takes a moment, so that no
//! loop that looks at the clock lasts for ever.
//!
//! Threads that are not part of a simulation call the C library as always.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use libc::pthread_t;

use crate::machines::disk::Disk;
use crate::machines::net::{Net, Packet, SocketId};
use crate::machines::random::Random;
use crate::machines::real;

/// A thread of the simulation.
pub(crate) type TaskId = usize;

/// A machine of the simulation: a node, a client, or what drives it all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Machine(pub u16);

/// The machine of the thread that begins a simulation, starts nodes and clients, and makes them fail.
pub const DRIVER: Machine = Machine(u16::MAX);

/// How long a function that may wait takes at least, in nanoseconds.
const CALL: u64 = 200;

/// Threads that are not part of a simulation.
const NONE: TaskId = usize::MAX;

thread_local! {
    static TASK: Cell<TaskId> = const { Cell::new(NONE) };
    /// Whether the thread is in the simulator itself, whose own calls are real.
    static IN_WORLD: Cell<bool> = const { Cell::new(false) };
}

static WORLD: Mutex<Option<World>> = Mutex::new(None);
/// How often the baton was passed on. It says to a watcher whether the simulation goes on.
static PASSED: AtomicU64 = AtomicU64::new(0);

/// Something that will happen.
pub(crate) enum Event {
    /// A task has waited long enough, if it still waits for the same.
    Enough(TaskId, u64),
    /// Something arrives at a socket.
    Arrival(SocketId, Packet),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ready,
    Running,
    Waiting,
    Ended,
    /// Its machine has crashed: it never runs again.
    Dead,
}

struct Task {
    machine: Machine,
    name: String,
    state: State,
    /// 1 when it is its turn.
    baton: &'static AtomicU32,
    /// Counts its waits.
    waits: u64,
    /// Whether its last wait ended because of what it waited for.
    woken: bool,
    /// The thread, once it is known.
    thread: Option<pthread_t>,
    joiners: Vec<TaskId>,
    what: &'static str,
}

/// The state of a simulation.
pub(crate) struct World {
    /// Nanoseconds since its beginning.
    pub(crate) now: u64,
    /// How often a clock was looked at since a thread last waited.
    pub(crate) looks: u32,
    pub(crate) random: Random,
    tasks: Vec<Task>,
    ready: Vec<TaskId>,
    current: TaskId,
    events: BTreeMap<(u64, u64), Event>,
    planned: u64,
    /// By address: who waits.
    pub(crate) futexes: BTreeMap<usize, VecDeque<TaskId>>,
    pub(crate) net: Net,
    pub(crate) disk: Disk,
    /// By machine: seconds by which its clock of the day is ahead.
    pub(crate) skews: BTreeMap<Machine, i64>,
    /// For how many seconds all machines were suspended.
    pub(crate) suspended: i64,
    /// Machines that have crashed, and on which nothing was started since.
    crashed: BTreeSet<Machine>,
    crashes: u64,
    /// A digest of who ran when.
    trace: u64,
    /// Where each turn is written down, if it is.
    log: Option<std::io::BufWriter<std::fs::File>>,
    /// By what a thread is and what it waits for: how often it had to.
    waits: BTreeMap<(String, &'static str), u64>,
}

impl World {
    /// The machine of the running task.
    pub(crate) fn machine(&self) -> Machine {
        self.tasks[self.current].machine
    }

    /// The running task.
    pub(crate) fn running(&self) -> TaskId {
        self.current
    }

    /// Plans an event.
    pub(crate) fn plan(&mut self, at: u64, event: Event) {
        self.planned += 1;
        self.events.insert((at.max(self.now), self.planned), event);
    }

    /// Ends a task's wait because of what it waits for. Returns whether it waited: its time may be over.
    pub(crate) fn wake(&mut self, task: TaskId) -> bool {
        let waits = self.tasks[task].state == State::Waiting;
        if waits {
            self.tasks[task].woken = true;
            self.make_ready(task);
        }
        waits
    }

    fn make_ready(&mut self, task: TaskId) {
        self.tasks[task].state = State::Ready;
        self.ready.push(task);
    }

    /// Lets time pass until a task can run, and chooses one.
    fn choose(&mut self) -> TaskId {
        self.now += CALL;
        self.looks = 0;
        loop {
            while let Some(next) = self.events.first_entry()
                && (next.key().0 <= self.now || self.ready.is_empty())
            {
                self.now = self.now.max(next.key().0);
                match next.remove() {
                    Event::Enough(task, wait) => {
                        let it = &self.tasks[task];
                        if it.state == State::Waiting && it.waits == wait {
                            self.make_ready(task);
                        }
                    }
                    Event::Arrival(socket, packet) => Net::arrive(self, socket, packet),
                }
            }
            if self.ready.is_empty() {
                panic!("all threads wait for each other:\n{}", self.waiting());
            }
            let next = self.random.below(self.ready.len() as u64) as usize;
            let task = self.ready.swap_remove(next);
            if self.tasks[task].state == State::Ready {
                self.tasks[task].state = State::Running;
                self.current = task;
                let mix = (task as u64) ^ self.now.rotate_left(17);
                self.trace = (self.trace ^ mix).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
                if let Some(file) = &mut self.log {
                    let it = &self.tasks[task];
                    // What cannot be written is missed by people alone.
                    let _ = writeln!(file, "{} {task} {:?} {} {}", self.now, it.machine, it.name, it.what);
                }
                return task;
            }
        }
    }

    /// Who waits for what, for people.
    fn waiting(&self) -> String {
        let waiting = self.tasks.iter().enumerate().filter(|(_, task)| task.state == State::Waiting);
        let line = |(id, task): (usize, &Task)| {
            format!("  {id} of {:?}, {}: {}", task.machine, task.name, task.what)
        };
        waiting.map(line).collect::<Vec<_>>().join("\n")
    }

    /// Ends a machine at once: its threads never run again, its connections break, and its disk keeps what
    /// was synced, and some of the rest.
    pub(crate) fn crash(&mut self, machine: Machine) {
        for task in self.tasks.iter_mut().filter(|task| task.machine == machine) {
            if task.state != State::Ended {
                task.state = State::Dead;
            }
        }
        for queue in self.futexes.values_mut() {
            queue.retain(|task| self.tasks[*task].machine != machine);
        }
        self.crashed.insert(machine);
        self.crashes += 1;
        Net::crash(self, machine);
        Disk::crash(self, machine);
    }
}

/// Whether the calling thread is simulated, and not in the simulator itself.
pub(crate) fn is_inside() -> bool {
    TASK.get() != NONE && !IN_WORLD.get()
}

/// Works on the state.
pub(crate) fn with<T>(work: impl FnOnce(&mut World) -> T) -> T {
    really(|| {
        let mut world = WORLD.lock().expect("no panic in the simulator");
        work(world.as_mut().expect("a simulation runs"))
    })
}

/// What threads have waited for most, for people.
pub fn most_waits() -> String {
    let mut waits: Vec<_> =
        with(|world| world.waits.iter().map(|((name, what), count)| (*count, name.clone(), *what)).collect());
    waits.sort_by(|a, b| b.cmp(a));
    let lines = waits.iter().take(30).map(|(count, name, what)| format!("{count:>10} {what:8} {name}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Does something with the real system.
pub(crate) fn really<T>(work: impl FnOnce() -> T) -> T {
    IN_WORLD.set(true);
    let done = work();
    IN_WORLD.set(false);
    done
}

/// Runs something as the first thread of a simulation. Returns a digest of all that happened with its result.
///
/// # Panics
///
/// If a simulation runs already in this process.
pub fn simulate<T: Send>(seed: u64, work: impl FnOnce() -> T + Send) -> (T, u64) {
    // A new thread, of which nothing was drawn from the system yet.
    let run = || std::thread::scope(|scope| scope.spawn(|| run(seed, work)).join());
    run().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn run<T>(seed: u64, work: impl FnOnce() -> T) -> (T, u64) {
    {
        let mut world = WORLD.lock().expect("no panic in the simulator");
        assert!(world.is_none(), "one simulation for each process");
        *world = Some(World {
            now: 0,
            looks: 0,
            random: Random::new(seed),
            tasks: vec![Task::new(DRIVER, "driver".into(), State::Running)],
            ready: Vec::new(),
            current: 0,
            events: BTreeMap::new(),
            planned: 0,
            futexes: BTreeMap::new(),
            net: Net::default(),
            disk: Disk::default(),
            skews: BTreeMap::new(),
            suspended: 0,
            crashed: BTreeSet::new(),
            crashes: 0,
            trace: seed,
            log: std::env::var_os("SIMULATION_TURNS")
                .map(|path| std::io::BufWriter::new(std::fs::File::create(path).expect("a file for turns"))),
            waits: BTreeMap::new(),
        });
    }
    for helper in [watch, bury] {
        let begun = Arc::new(Barrier::new(2));
        let begins = begun.clone();
        std::thread::spawn(move || {
            begins.wait();
            helper();
        });
        begun.wait();
    }
    // Until they have come to rest.
    std::thread::sleep(Duration::from_millis(20));
    TASK.set(0);
    let done = work();
    let trace = with(|world| world.trace);
    TASK.set(NONE);
    (done, trace)
}

impl Task {
    fn new(machine: Machine, name: String, state: State) -> Task {
        let baton = Box::leak(Box::new(AtomicU32::new(0)));
        Task {
            machine,
            name,
            state,
            baton,
            waits: 0,
            woken: false,
            thread: None,
            joiners: Vec::new(),
            what: "",
        }
    }
}

/// Ends the process with a word if a simulated thread runs for a minute without a call that is simulated.
fn watch() {
    let mut before = u64::MAX;
    loop {
        std::thread::sleep(Duration::from_secs(60));
        let passed = PASSED.load(Ordering::Relaxed);
        if passed == before {
            let what = WORLD.try_lock().map(|world| {
                let world = world.as_ref().expect("a simulation runs");
                let task = &world.tasks[world.current];
                format!("{} of {:?}, last in {}", task.name, task.machine, task.what)
            });
            eprintln!("a thread has run for a minute without a call that is simulated: {what:?}");
            std::process::abort();
        }
        before = passed;
    }
}

/// Makes the calling task wait until somebody wakes it, or until a moment. `note` tells where it can be
/// found. Returns whether it was woken.
pub(crate) fn wait(what: &'static str, until: Option<u64>, note: impl FnOnce(&mut World, TaskId)) -> bool {
    let (me, next) = with(|world| {
        let me = world.current;
        let task = &mut world.tasks[me];
        (task.state, task.woken, task.what) = (State::Waiting, false, what);
        task.waits += 1;
        let wait = task.waits;
        if let Some(until) = until {
            world.plan(until, Event::Enough(me, wait));
        }
        note(world, me);
        let name = world.tasks[me].name.clone();
        *world.waits.entry((name, what)).or_default() += 1;
        let next = world.choose();
        (world.tasks[me].baton, world.tasks[next].baton)
    });
    pass(me, next);
    with(|world| world.tasks[world.current].woken)
}

/// Crashes a machine, which may be that of the caller: then this does not return.
pub fn crash(machine: Machine) {
    let (is_own, me, next) = with(|world| {
        let me = world.current;
        world.crash(machine);
        let is_own = world.tasks[me].machine == machine;
        let next = if is_own { world.choose() } else { me };
        (is_own, world.tasks[me].baton, world.tasks[next].baton)
    });
    if is_own {
        pass(me, next);
        unreachable!("a task of a crashed machine runs");
    }
}

/// Passes the baton on, and waits for it.
fn pass(me: &'static AtomicU32, next: &'static AtomicU32) {
    if std::ptr::eq(me, next) {
        return;
    }
    give(next);
    take(me);
}

fn give(next: &'static AtomicU32) {
    PASSED.fetch_add(1, Ordering::Relaxed);
    next.store(1, Ordering::Release);
    let address = std::ptr::from_ref(next) as usize;
    real::syscall(
        libc::SYS_futex,
        address,
        (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize,
        1,
        0,
        0,
        0,
    );
}

fn take(me: &'static AtomicU32) {
    let address = std::ptr::from_ref(me) as usize;
    while me.swap(0, Ordering::Acquire) == 0 {
        let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
        real::syscall(libc::SYS_futex, address, operation, 0, 0, 0, 0);
    }
}

/// Adds a task, which is ready, on the machine of the calling one.
pub(crate) fn add_task() -> (TaskId, &'static AtomicU32) {
    with(|world| {
        let machine = world.machine();
        let id = world.tasks.len();
        world.tasks.push(Task::new(machine, "thread".into(), State::Waiting));
        world.make_ready(id);
        (id, world.tasks[id].baton)
    })
}

/// Notes the thread of a task.
pub(crate) fn note_thread(task: TaskId, thread: pthread_t) {
    with(|world| world.tasks[task].thread = Some(thread));
}

/// Makes the calling thread a task, and waits for its turn.
pub(crate) fn begin_task(task: TaskId, baton: &'static AtomicU32) {
    TASK.set(task);
    take(baton);
}

/// Ends the calling task. Its thread may still do what is not simulated.
pub(crate) fn end_task() {
    let next = with(|world| {
        let me = world.current;
        world.tasks[me].state = State::Ended;
        for joiner in std::mem::take(&mut world.tasks[me].joiners) {
            world.wake(joiner);
        }
        let next = world.choose();
        world.tasks[next].baton
    });
    TASK.set(NONE);
    // SAFETY: it has no conditions.
    ENDING.0.store(unsafe { libc::gettid() }, Ordering::Release);
    ENDING.1.store(std::ptr::from_ref(next).cast_mut(), Ordering::Release);
    give(&ENDED);
}

/// The thread that ends, and who is next when it has.
static ENDING: (AtomicI32, AtomicPtr<AtomicU32>) = (AtomicI32::new(0), AtomicPtr::new(null_mut()));
/// 1 when there is one.
static ENDED: AtomicU32 = AtomicU32::new(0);

/// Passes the baton on from threads that end, when the system has forgotten them: until then they give memory
/// back, and where memory is found has to be the same in each run. (Locks wait in an order that depends on
/// it.) So nothing is allocated here, either.
fn bury() {
    loop {
        take(&ENDED);
        let thread = ENDING.0.load(Ordering::Acquire) as usize;
        // SAFETY: it was set to a baton, which is never freed, before ENDED was.
        let next = unsafe { &*ENDING.1.load(Ordering::Acquire) };
        let process = std::process::id() as usize;
        while real::syscall(libc::SYS_tgkill, process, thread, 0, 0, 0, 0) == 0 {
            std::thread::yield_now();
        }
        give(next);
    }
}

/// Waits for the end of the task of a thread, if it is one.
pub(crate) fn join_task(thread: pthread_t) {
    let find = |world: &World| {
        let mut tasks = world.tasks.iter().enumerate().rev();
        tasks.find(|(_, task)| task.thread == Some(thread)).map(|(id, task)| (id, task.state))
    };
    while let Some((task, state)) = with(|world| find(world))
        && state != State::Ended
    {
        wait("join", None, |world, me| world.tasks[task].joiners.push(me));
    }
    // Another thread may get the same number.
    with(|world| {
        if let Some((task, _)) = find(world) {
            world.tasks[task].thread = None;
        }
    });
}

/// The name of the calling task's thread, for people.
pub(crate) fn name_task(name: &str) {
    with(|world| {
        let me = world.current;
        world.tasks[me].name = name.into();
    });
}

/// Starts a thread on a machine, to which all threads belong that it starts.
pub fn spawn_on(machine: Machine, work: impl FnOnce() + Send + 'static) {
    let own = with(|world| {
        world.crashed.remove(&machine);
        let me = world.current;
        std::mem::replace(&mut world.tasks[me].machine, machine)
    });
    // A new thread is where its creator is.
    std::thread::spawn(work);
    with(|world| {
        let me = world.current;
        world.tasks[me].machine = own;
    });
}

/// How often machines have crashed.
pub fn crashes() -> u64 {
    with(|world| world.crashes)
}

/// Whether a machine has crashed, and nothing was started on it since.
pub fn is_crashed(machine: Machine) -> bool {
    with(|world| world.crashed.contains(&machine))
}
