//! Machines on which the Debian package is installed: each is a layer over the files of this machine
//! (overlayfs), which its commands see as `/`. Whoever makes them is root in a mount namespace of its own, so
//! they go when its processes have ended.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The machines of nodes. Their commands run as the user that the package makes.
const NODES: [&str; 3] = ["alpha", "beta", "gamma"];
/// That user, and who has no node.
const OPERATOR: &str = "polyclave:polyclave";
const PERSON: &str = "nobody:nogroup";

/// The layer with the package, and those of the machines.
pub struct Installed {
    folder: PathBuf,
}

impl Installed {
    /// Installs a package, in an empty folder.
    pub fn install(package: &Path, folder: &Path) -> Result<Installed, String> {
        // Layers cannot be on the file system that they cover.
        run(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(folder))?;
        let installed = Installed { folder: folder.into() };
        installed.layer("package", Path::new("/"))?;
        let root = installed.root("package");
        std::fs::copy(package, root.join("polyclave.deb")).map_err(|e| e.to_string())?;
        run(Command::new("chroot").arg(root).args(["dpkg", "--install", "/polyclave.deb"]))?;
        Ok(installed)
    }

    /// A file of the package.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root("package").join(path)).expect("the package has it")
    }

    /// What a machine sees as `/`.
    pub fn root(&self, machine: &str) -> PathBuf {
        self.folder.join(machine).join("root")
    }

    /// Makes a machine, unless it is there, with a home for its user.
    pub fn machine(&self, machine: &str) -> Result<(), String> {
        if self.root(machine).exists() {
            return Ok(());
        }
        self.layer(machine, &self.folder.join("package/changed"))?;
        let (user, group) = user(machine).split_once(':').expect("both");
        let owned = ["-o", user, "-g", group, "-m", "700", "-d"];
        run(Command::new("chroot").arg(self.root(machine)).arg("install").args(owned).arg(home(machine)))
    }

    /// Commands for a machine's shell.
    pub fn shell(&self, machine: &str, text: &str) -> Command {
        self.as_user(user(machine), machine, text)
    }

    /// What systemd runs for the unit of the package.
    pub fn unit(&self, machine: &str) -> Command {
        let unit = self.read("usr/lib/systemd/system/polyclave-node.service");
        let of =
            |name: &str| unit.lines().find_map(|line| line.strip_prefix(name)).expect("the unit says it");
        let user = format!("{}:{}", of("User="), of("Group="));
        self.as_user(&user, machine, &format!("umask {}; exec {}", of("UMask="), of("ExecStart=")))
    }

    fn as_user(&self, user: &str, machine: &str, text: &str) -> Command {
        let home = home(machine);
        let mut command = Command::new("chroot");
        command
            .arg(format!("--userspec={user}"))
            .arg(self.root(machine))
            .args(["bash", "-euo", "pipefail", "-c", &format!("cd {home}; {text}")])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("POLYCLAVE_CLIENT", format!("{home}/.polyclave"))
            .env("HOME", home);
        command
    }

    /// A file system that is another one and the changes to it.
    fn layer(&self, name: &str, below: &Path) -> Result<(), String> {
        let [root, changed, work] = ["root", "changed", "work"].map(|part| self.folder.join(name).join(part));
        for folder in [&root, &changed, &work] {
            std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
        }
        let below = match below == Path::new("/") {
            true => "/".into(),
            false => format!("{}:/", below.display()),
        };
        let layers = format!("lowerdir={below},upperdir={},workdir={}", changed.display(), work.display());
        run(Command::new("mount").args(["-t", "overlay", "overlay", "-o", &layers]).arg(&root))?;
        // What is mounted below is not in the layer.
        ["/dev", "/proc"].into_iter().try_for_each(|of_this_machine| {
            run(Command::new("mount")
                .args(["--rbind", of_this_machine])
                .arg(root.join(&of_this_machine[1..])))
        })
    }
}

/// Where the commands of a machine run.
pub fn home(machine: &str) -> String {
    format!("/home/{machine}")
}

fn user(machine: &str) -> &'static str {
    if NODES.contains(&machine) { OPERATOR } else { PERSON }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
