//! Floods of a KMS's socket, of the handshake of TLS, and of the page.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::floods::{Target, held_at};
use crate::kms::Kms;
use crate::tls;

pub(crate) fn kms(target: &Target) {
    let work = || {
        let Ok(kms) = Kms::connect(&target.socket) else { return };
        while target.goes_on() {
            target.had(kms.encrypt_at_once(64, &[7; 32]));
        }
    };
    std::thread::scope(|scope| (0..32).for_each(|_| drop(scope.spawn(work))));
}

/// The beginning of a handshake, and no more.
pub(crate) fn half_open(target: &Target) {
    held_at(target, target.tls, 300, &[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
}

pub(crate) fn handshakes(target: &Target) {
    target.on_threads(4, || target.had(usize::from(tls::connect(target.tls).is_ok())));
}

pub(crate) fn files_of_the_page(target: &Target) {
    asked(target, "GET /ui/page.js HTTP/1.1\r\nhost: flood\r\n\r\n");
}

pub(crate) fn searches_of_the_page(target: &Target) {
    asked(
        target,
        &format!("GET /ui/keys?part=b HTTP/1.1\r\nhost: flood\r\nx-vault-token: {}\r\n\r\n", target.token),
    );
}

pub(crate) fn streams_of_the_page(target: &Target) {
    let head = format!("GET /ui/stream HTTP/1.1\r\nhost: flood\r\nx-vault-token: {}\r\n\r\n", target.token);
    held_at(target, target.plain, 32, head.as_bytes());
}

/// Asks for the same on 32 connections, on each as often as it is answered.
fn asked(target: &Target, head: &str) {
    let once = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(target.plain)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut answer = [0; 64 << 10];
        while target.goes_on() {
            stream.write_all(head.as_bytes())?;
            if stream.read(&mut answer)? == 0 {
                break;
            }
            target.had(1);
        }
        Ok(())
    };
    target.on_threads(32, || drop(once()));
}
