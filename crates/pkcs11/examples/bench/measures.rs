//! What is measured.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use cryptoki_sys::CK_OBJECT_HANDLE;
use polyclave_client::Client;

use crate::module::{How, Module, Session};
use crate::nodes::Nodes;
use crate::report::Report;
use crate::{Outcome, Plan};

/// The label of the key that most parts use.
const KEY: &str = "bench";
/// One of the measures, by name.
type Part<'a> = &'a dyn Fn(&mut Report) -> Outcome<()>;

/// How often a program is started, and a megabyte encrypted.
const FEW: usize = 11;
const MEGABYTE: usize = 1 << 20;

pub(crate) fn all(plan: &Plan, nodes: &Nodes, report: &mut Report) -> Outcome<()> {
    let module = Module::load(&plan.module)?;
    let session = module.log_in(&plan.pin)?;
    let (threads, sockets) = (entries("task")?, entries("fd")?);
    let key = session.generate(KEY, true)?;
    let measured = in_order(plan, nodes, session, &module, key, report);
    session.destroy(key)?;
    measured?;
    module.finalize()?;
    if plan.has("memory") {
        // Before the first request there were no connections, and none was closed yet.
        report.add("memory", "threads more after C_Finalize", entries("task")? - threads, "");
        report.add("memory", "files and sockets more after C_Finalize", entries("fd")? - sockets, "");
    }
    Ok(())
}

fn in_order(
    plan: &Plan,
    nodes: &Nodes,
    session: Session<'_>,
    module: &Module,
    key: CK_OBJECT_HANDLE,
    report: &mut Report,
) -> Outcome<()> {
    let parts: [(&str, Part<'_>); 7] = [
        ("start", &|report| start(plan, report)),
        ("blocks", &|report| blocks(plan, session, key, report)),
        ("threads", &|report| threads(plan, module, key, report)),
        ("megabyte", &|report| megabyte(nodes, session, key, report)),
        ("sessions", &|report| sessions(plan, module, report)),
        ("objects", &|report| objects(plan, module, session, report)),
        ("memory", &|report| memory(plan, session, key, report)),
    ];
    for (name, part) in parts {
        if plan.has(name) {
            eprintln!("{name} ..");
            part(report)?;
        }
    }
    Ok(())
}

/// Programs that start, log in, look for a key, and encrypt a block.
fn start(plan: &Plan, report: &mut Report) -> Outcome<()> {
    let mut steps: [Vec<f64>; 6] = Default::default();
    for _ in 0..FEW {
        let made =
            Command::new(std::env::current_exe()?).arg("start").arg(&plan.module).arg(&plan.pin).output()?;
        let message = String::from_utf8(made.stdout)?;
        let mut times = message.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let [_, since_initialize @ ..] = &times[..] else {
            return Err(
                format!("a program that starts said: {}", String::from_utf8_lossy(&made.stderr)).into()
            );
        };
        let total = since_initialize.iter().sum();
        times.push(total);
        steps.iter_mut().zip(&times).for_each(|(all, time)| all.push(*time));
    }
    let medians = steps.map(|mut all| median(&mut all));
    report.add("start", "loading the library", medians[0], "ms");
    report.add("start", "C_Initialize", medians[1], "ms");
    report.add("start", "C_OpenSession, C_Login", medians[2], "ms");
    report.add("start", "C_FindObjects by label: the first connections", medians[3], "ms");
    report.add("start", "C_EncryptInit, C_Encrypt of one block", medians[4], "ms");
    let what = "from C_Initialize to the first ciphertext, all of it";
    report.add_with_goal("start", what, (medians[5], "ms"), "100 ms");
    Ok(())
}

/// One such program. Prints the times in milliseconds.
pub(crate) fn start_once(module: &Path, pin: &str) -> Outcome<()> {
    let mut last = Instant::now();
    let mut lap = || {
        let lap = ms(last);
        last = Instant::now();
        lap
    };
    // What the system reads from the disk counts as loading.
    let module = Module::load(module)?;
    let loaded = lap();
    module.finalize()?;
    lap();
    module.initialize()?;
    let initialized = lap();
    let session = module.log_in(pin)?;
    let logged_in = lap();
    let key = *session.find(Some(KEY))?.first().ok_or("the key is gone")?;
    let found = lap();
    session.encrypt(How::Ecb, key, &[7; 16])?;
    println!("{loaded} {initialized} {logged_in} {found} {}", lap());
    module.finalize()
}

/// One block, from one thread.
fn blocks(plan: &Plan, session: Session<'_>, key: CK_OBJECT_HANDLE, report: &mut Report) -> Outcome<()> {
    let (mut ecb, mut gcm) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let began = Instant::now();
        session.encrypt(How::Ecb, key, &[7; 16])?;
        ecb.push(ms(began));
        let nonce = nonce();
        let began = Instant::now();
        session.encrypt(How::Gcm(nonce), key, &[7; 16])?;
        gcm.push(ms(began));
    }
    report.add_with_goal("blocks", "one block, `CKM_AES_ECB`, one thread", (median(&mut ecb), "ms"), "6 ms");
    report.add_with_goal("blocks", "one block, `CKM_AES_GCM`, one thread", (median(&mut gcm), "ms"), "6 ms");
    Ok(())
}

/// One block at a time, from several threads.
fn threads(plan: &Plan, module: &Module, key: CK_OBJECT_HANDLE, report: &mut Report) -> Outcome<()> {
    for (name, is_gcm) in [("`CKM_AES_ECB`", false), ("`CKM_AES_GCM`", true)] {
        for count in [1, 8, 32] {
            let (left, failed) = (AtomicUsize::new(2 * plan.rounds), AtomicUsize::new(0));
            let work = || -> Outcome<()> {
                let session = module.open()?;
                let one_less = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                    let how = if is_gcm { How::Gcm(nonce()) } else { How::Ecb };
                    session.encrypt(how, key, &[7; 16])?;
                }
                session.close()
            };
            let began = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..count {
                    scope.spawn(|| {
                        if let Err(e) = work() {
                            eprintln!("{e}");
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            let rate = 2e3 * plan.rounds as f64 / ms(began);
            if failed.into_inner() > 0 {
                return Err("a thread could not encrypt".into());
            }
            let what = format!("one block, {name}, {count} threads together");
            match count {
                8 => report.add_with_goal("threads", what, (rate, "operations/s"), "300"),
                _ => report.add("threads", what, rate, "operations/s"),
            }
        }
    }
    Ok(())
}

/// 1 MiB by the library and by the client as `polyclave encrypt` uses it, in turn.
fn megabyte(nodes: &Nodes, session: Session<'_>, key: CK_OBJECT_HANDLE, report: &mut Report) -> Outcome<()> {
    let (client, data) = (nodes.client()?, vec![0x5a; MEGABYTE]);
    let name = format!("bench.{KEY}");
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..FEW {
        let mut timed = |at: usize, work: &dyn Fn() -> Outcome<()>| -> Outcome<()> {
            let began = Instant::now();
            work()?;
            times[at].push(ms(began));
            Ok(())
        };
        timed(0, &|| seal(&client, &name, &data))?;
        timed(1, &|| raw(&client, &name, &data))?;
        timed(2, &|| session.encrypt(How::Ctr(counter()), key, &data).map(drop))?;
        timed(3, &|| session.encrypt(How::Gcm(nonce()), key, &data).map(drop))?;
    }
    let [sealed, raw, ctr, gcm] = times.map(|mut all| median(&mut all));
    report.add("megabyte", "1 MiB as `polyclave encrypt` seals it", sealed, "ms");
    report.add("megabyte", "1 MiB as `polyclave encrypt --raw`, GCM", raw, "ms");
    report.add("megabyte", "1 MiB, `CKM_AES_CTR`", ctr, "ms");
    report.add("megabyte", "1 MiB, `CKM_AES_GCM`", gcm, "ms");
    let what = "`CKM_AES_CTR` to `polyclave encrypt`";
    report.add_with_goal("megabyte", what, (ctr / sealed, "times"), "1.3 times");
    let what = "`CKM_AES_GCM` to `polyclave encrypt`";
    report.add_with_goal("megabyte", what, (gcm / sealed, "times"), "1.3 times");
    report.add("megabyte", "`CKM_AES_GCM` to `polyclave encrypt --raw`", gcm / raw, "times");
    Ok(())
}

fn seal(client: &Client, key: &str, data: &[u8]) -> Outcome<()> {
    let mut out = Vec::new();
    client.seal(key, &mut &data[..], &mut out, &mut |_| ())?;
    Ok(())
}

fn raw(client: &Client, key: &str, data: &[u8]) -> Outcome<()> {
    client.key(key)?.gcm().nonce(&nonce()[..]).encrypt(data)?;
    Ok(())
}

/// Sessions without end.
fn sessions(plan: &Plan, module: &Module, report: &mut Report) -> Outcome<()> {
    let (before, began) = (memory_kib()?, Instant::now());
    let open = (0..plan.sessions).map(|_| module.open()).collect::<Outcome<Vec<_>>>()?;
    report.add("sessions", format!("{} sessions opened", plan.sessions), ms(began), "ms");
    report.add(
        "sessions",
        "memory of one",
        1024.0 * (memory_kib()? - before) / plan.sessions as f64,
        "bytes",
    );
    let began = Instant::now();
    open.into_iter().try_for_each(Session::close)?;
    report.add("sessions", format!("{} sessions closed", plan.sessions), ms(began), "ms");
    Ok(())
}

/// Many keys, made by eight threads, found and asked.
fn objects(plan: &Plan, module: &Module, session: Session<'_>, report: &mut Report) -> Outcome<()> {
    let next = AtomicUsize::new(0);
    let work = || -> Outcome<()> {
        let session = module.open()?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.objects {
                return session.close();
            }
            session.generate(&format!("{KEY}-{number}"), true)?;
        }
    };
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| work().map_err(|e| e.to_string()))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Err("a thread failed".into())))
    })?;
    report.add("objects", format!("{} keys generated, by eight threads", plan.objects), ms(began), "ms");
    let (before, began) = (memory_kib()?, Instant::now());
    let found = session.find(None)?;
    report.add("objects", format!("{} keys found the first time", found.len()), ms(began), "ms");
    report.add("objects", "memory of one", 1024.0 * (memory_kib()? - before) / found.len() as f64, "bytes");
    let began = Instant::now();
    session.find(None)?;
    report.add("objects", "and again", ms(began), "ms");
    let began = Instant::now();
    session.find(Some(KEY))?;
    report.add("objects", "one of them found by its label", ms(began), "ms");
    let began = Instant::now();
    found.iter().try_for_each(|key| session.attributes(*key))?;
    report.add("objects", "two attributes of each", ms(began), "ms");
    Ok(())
}

/// Whether memory grows with operations.
fn memory(plan: &Plan, session: Session<'_>, key: CK_OBJECT_HANDLE, report: &mut Report) -> Outcome<()> {
    let some = plan.operations / 10;
    let run = |count: usize| -> Outcome<f64> {
        for number in 0..count {
            let how = if number % 2 == 0 { How::Ecb } else { How::Gcm(nonce()) };
            session.encrypt(how, key, &[7; 16])?;
        }
        memory_kib()
    };
    let early = run(some)?;
    report.add("memory", format!("memory of the program after {some} operations"), early, "KiB");
    let late = run(plan.operations - some)?;
    report.add_with_goal("memory", format!("after {}", plan.operations), (late, "KiB"), "the same");
    Ok(())
}

/// A number that was not used before, in this process or another.
fn fresh() -> u64 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    (began << 24) + NEXT.fetch_add(1, Ordering::Relaxed) as u64
}

fn nonce() -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&fresh().to_be_bytes());
    nonce
}

fn counter() -> [u8; 16] {
    let mut counter = [0; 16];
    counter[..8].copy_from_slice(&fresh().to_be_bytes());
    counter
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The memory of this process that is in use.
fn memory_kib() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the system tells no memory")?;
    Ok(line.trim_end_matches("kB").trim().parse()?)
}

fn entries(of: &str) -> Outcome<f64> {
    Ok(std::fs::read_dir(format!("/proc/self/{of}"))?.count() as f64)
}
