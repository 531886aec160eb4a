//! The page in a browser. It is skipped if Debian's packages `chromium` and `chromium-driver` are not
//! installed. With `POLYCLAVE_SCREENSHOTS` the pictures of docs/images are written into that folder.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};
use polyclave_harness::programs::skipped;

use super::{dashboard, get};
use crate::common::{Browser, PATIENCE, World};

/// Sizes of windows: of a desk, and of a small phone.
const DESK: (u32, u32) = (1280, 1000);
const PHONE: (u32, u32) = (360, 1200);

#[test]
fn a_browser_shows_the_page_live_as_text_and_in_any_size() {
    let Some(browser) = Browser::start() else {
        return skipped("the page in a browser", "chromium or chromium-driver is not installed");
    };
    let mut world = World::start();
    make_keys(&world);
    let (dashboard, _) = dashboard(&world);
    browser.show(DESK, false);
    browser.open(&dashboard.url());
    browser.wait_for("document.querySelectorAll('#nodes .good').length >= 3");
    browser.wait_for("document.getElementById('least').innerText.includes('mail')");
    // It goes on by itself.
    let shown = browser.run("return document.getElementById('live').textContent");
    browser.wait_for(&format!("document.getElementById('live').textContent !== {shown}"));
    // So many snapshots that the lines can be seen in the pictures.
    let many = "document.querySelector('#rate-line .drawn').getAttribute('d').split('L').length > 15";
    let (over, began) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) && began.elapsed() < PATIENCE {
                work(&world);
            }
        });
        browser.wait_for(many);
        browser.wait_for("Number(document.getElementById('rate').textContent) > 0");
        // A series of few seconds fills much of the width.
        let part = "const line = document.getElementById('rate-line'); \
                    return line.querySelector('.drawn').getAttribute('d').split('L').length / line.viewBox.baseVal.width > 0.4";
        assert_eq!(browser.run(part), true);
        over.store(true, Relaxed);
    });
    browser.wait_for("document.getElementById('alarms').innerText.includes('polyclave key rotate mail')");
    browser.run(
        "document.getElementById('part').value = 'hostile'; document.querySelector('#find button').click()",
    );
    browser.wait_for("document.getElementById('found-rows').innerText.includes('<img')");
    // The label of a key would be a program if it were more than text.
    assert_eq!(browser.run("return document.querySelectorAll('img').length + (window.hostile || 0)"), 0);
    browser.run("document.getElementById('part').value = ''; document.querySelector('#find button').click()");
    for (name, size, dark) in [("light", DESK, false), ("dark", DESK, true), ("phone", PHONE, false)] {
        browser.show(size, dark);
        browser.wait_for(&format!("innerWidth === {}", size.0));
        let fits = "return document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.run(fits), true, "{name}: it is wider than the window");
        let space = "const panels = [...document.querySelectorAll('#panels section')].map((one) => one.getBoundingClientRect().bottom); \
                     return document.querySelector('#panels + section').getBoundingClientRect().top - Math.max(...panels) >= 8";
        assert_eq!(browser.run(space), true, "{name}: a panel touches what follows");
        save(name, &browser.picture());
    }
    browser.show(DESK, false);
    world.stop_node(1);
    browser.wait_for("document.getElementById('alarms').innerText.includes('node-2 is not reached since')");
    browser.wait_for("document.getElementById('nodes').innerText.includes('gone since')");
    browser
        .wait_for("document.querySelector('#alarms li')?.innerText.startsWith('Requests cannot be served')");
    assert_eq!(
        browser.run("return document.querySelectorAll('.alarm').length"),
        2,
        "one of the node, and one of a key"
    );
    assert_eq!(browser.run("return document.body.innerText.includes('`')"), false, "commands are code");
    assert_eq!(browser.run("return document.querySelectorAll('.alarm code').length > 0"), true);
    save("gone", &browser.picture());
    browser.show(PHONE, false);
    browser.wait_for(&format!("innerWidth === {}", PHONE.0));
    let fits = "return document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.run(fits), true, "an alarm is wider than a phone");
    assert_eq!(browser.complaints(), [""; 0]);
    drop(dashboard);
    browser.wait_for("document.getElementById('live').textContent.startsWith('stream lost')");
}

#[test]
fn a_browser_asks_for_the_token_of_a_gateway_and_shows_why_it_is_refused() {
    let Some(browser) = Browser::start() else {
        return skipped("the token in a browser", "chromium or chromium-driver is not installed");
    };
    let world = World::shared();
    assert_eq!(get(world.address(), "gateway", "/ui").1.status, 200);
    browser.open(&format!("http://{}/ui", world.address()));
    browser.wait_for("!document.getElementById('ask').hidden");
    let enter = |token: &str| {
        let program = format!(
            "document.getElementById('token').value = {token:?}; document.querySelector('#ask button').click()"
        );
        browser.run(&program);
    };
    enter("nobody");
    browser.wait_for("document.getElementById('why').textContent.includes('not known')");
    enter(&world.root);
    browser.wait_for("document.querySelectorAll('#nodes .good').length >= 3");
    browser.wait_for("!document.getElementById('gateway-section').hidden");
    let kept = "return document.cookie.length + localStorage.length + sessionStorage.length + document.getElementById('token').value.length";
    assert_eq!(browser.run(kept), 0, "the token is in memory only");
}

fn make_keys(world: &World) {
    let client = world.client();
    let in_days = |days: u64| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        Some(now.as_secs() + days * 86_400)
    };
    for (name, modes, budget, expires) in [
        ("mail", Mode::Gcm, 49_000, None),
        ("payroll", Mode::Gcm, 1 << 32, in_days(20)),
        ("archive-2026", Mode::Gcm, 1 << 32, in_days(90)),
        ("customers", Mode::Ff1, 1 << 24, None),
    ] {
        let key = NewKey { expires, ..NewKey::for_modes(name, "aes-256", &[modes], budget) };
        client.generate(key).expect("made");
    }
    let label = "<img src=x onerror=\"window.hostile=1\">".to_owned();
    let hostile = NewKey { label, ..NewKey::for_modes("hostile", "aes-128", &[Mode::Gcm], 1 << 32) };
    client.generate(hostile).expect("made");
    client.seal("mail", &mut &[7; 45_000 * 16][..], &mut Vec::new(), &mut |_| ()).expect("sealed");
}

/// What moves the figures.
fn work(world: &World) {
    let client = world.client();
    for size in [200, 2_000, 20_000] {
        client.seal("payroll", &mut &vec![7; size][..], &mut Vec::new(), &mut |_| ()).expect("sealed");
        std::thread::sleep(Duration::from_millis(20));
    }
    client.key("payroll").and_then(|key| key.cmac(&[7; 64])).expect_err("it is not for that");
}

fn save(name: &str, picture: &[u8]) {
    assert!(picture.len() < 200_000, "{name}: {} bytes", picture.len());
    if let Some(folder) = std::env::var_os("POLYCLAVE_SCREENSHOTS").map(PathBuf::from) {
        std::fs::write(folder.join(format!("dashboard-{name}.png")), picture).expect("written");
    }
}
