//! The Debian package, from its installation to a request that nodes serve, by the page of the book that is
//! in it. `.ci/run` makes the package before the tests.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use polyclave_harness::programs::skipped;

use crate::operating::{Block, Installed, Machines, Page};

/// Names the package.
pub const PACKAGE: &str = "POLYCLAVE_DEB";
/// Where this test runs itself with mounts of its own: the folder for them.
const FOLDER: &str = "POLYCLAVE_TEST_MOUNTS";
const NAME: &str = "package::who_installs_the_package_comes_by_its_own_page_to_a_request_that_nodes_serve";
/// The page that leads there.
const PAGE: &str = "usr/share/doc/polyclave/docs/start/three-machines.md";
/// The program is not optimised.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn who_installs_the_package_comes_by_its_own_page_to_a_request_that_nodes_serve() {
    let Some(package) = std::env::var_os(PACKAGE) else {
        return skipped(
            "the Debian package",
            "POLYCLAVE_DEB does not name one; scripts/package-deb makes it",
        );
    };
    match std::env::var_os(FOLDER) {
        Some(folder) => follow(package.as_ref(), folder.as_ref()),
        None => with_mounts_of_its_own(),
    }
}

/// Runs this test again where it may mount. What it mounts, and its processes, go when it ends.
fn with_mounts_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let apart = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]);
        command
    };
    let try_it = "cd \"$1\" && mount -t tmpfs t . && cd \"$1\" && mkdir a b c && \
                  mount -t overlay o -o lowerdir=/,upperdir=a,workdir=b c";
    let mut tried = apart();
    tried.args(["sh", "-c", try_it, "sh"]).arg(folder.path());
    if !tried.output().is_ok_and(|output| output.status.success()) {
        return skipped("the Debian package", "layers over the files of this machine cannot be mounted here");
    }
    let mut inside = apart();
    inside.arg("--mount-proc").arg(std::env::current_exe().expect("it has a path"));
    inside.args([NAME, "--exact", "--nocapture"]).env(FOLDER, folder.path());
    assert!(inside.status().expect("it starts").success(), "see above");
}

fn follow(package: &Path, folder: &Path) {
    let installed = Installed::install(package, folder).expect("it is installed");
    let page = Page::parse(&installed.read(PAGE)).expect("the page");
    let mut machines = Machines::installed(installed, PATIENCE);
    let mut decrypted = false;
    for block in &page.blocks {
        let Block::Commands(groups) = &block.what else { continue };
        machines.run(groups).unwrap_or_else(|e| panic!("{e}\n{}", machines.logs()));
        let mut commands = groups.iter().flat_map(|group| &group.commands);
        decrypted |= commands.any(|command| command.text.contains("polyclave decrypt"));
    }
    assert!(decrypted, "the page has a request");
}
