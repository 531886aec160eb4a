//! Manual pages and shell completions, generated from the same descriptions as the help texts. For packages;
//! `scripts/package-deb` calls it.

use std::fs;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

/// Where to write the pages.
#[derive(Args)]
pub struct ManualArguments {
    /// A directory, which gets one page for each command.
    dir: PathBuf,
}

/// The shell to complete for.
#[derive(Args)]
pub struct CompletionArguments {
    /// The shell.
    shell: Shell,
}

/// Writes the manual pages.
pub fn pages(arguments: &ManualArguments, program: Command) -> Result<ExitCode> {
    let dir = &arguments.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let name = program.get_name().to_owned();
    let version = program.get_version().unwrap_or_default().to_owned();
    page_of(program.disable_help_subcommand(true), &name, &version, dir)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a command, and those of the commands below it: polyclave-key-generate(1).
fn page_of(mut command: Command, name: &str, version: &str, dir: &Path) -> Result<()> {
    command = command.name(name.to_owned()).bin_name(name.replace('-', " ")).version(version.to_owned());
    let below: Vec<Command> =
        command.get_subcommands().filter(|below| !below.is_hide_set()).cloned().collect();
    for below in below {
        let name = format!("{name}-{}", below.get_name());
        page_of(below, &name, version, dir)?;
    }
    let path = dir.join(format!("{name}.1"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Prints the completions for a shell.
pub fn completions(arguments: &CompletionArguments, mut program: Command) -> Result<ExitCode> {
    let name = program.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut program, name, &mut stdout());
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use polyclave_harness::book;

    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page_and_is_completed() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = crate::Arguments::command();
        pages(&ManualArguments { dir: dir.path().into() }, program.clone()).expect("written");
        let page = |name: &str| fs::read_to_string(dir.path().join(format!("{name}.1"))).expect("a page");
        for command in program.get_subcommands() {
            let name = format!("polyclave-{}", command.get_name());
            assert_eq!(dir.path().join(format!("{name}.1")).exists(), !command.is_hide_set(), "{name}");
        }
        assert!(page("polyclave-key-generate").contains("\\-\\-cipher"));
        let mut script = Vec::new();
        clap_complete::generate(Shell::Bash, &mut program.clone(), "polyclave", &mut script);
        assert!(String::from_utf8(script).expect("text").contains("--cipher"));
    }

    /// A command that shows no values of this process's environment.
    fn anywhere(command: Command) -> Command {
        command.mut_args(|argument| argument.hide_env_values(true)).mut_subcommands(anywhere)
    }

    /// What `--help` says of the command at the end of a path, and of all below it, each with a heading.
    fn reference(program: &Command, path: &[String], command: &Command, page: &mut String) {
        let asked = path.iter().map(String::as_str).chain(["--help"]);
        let help = program.clone().try_get_matches_from(asked).expect_err("it shows the help").to_string();
        let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        let depth = "#".repeat(path.len().min(3));
        *page += &format!("\n{depth} {}\n\n```text\n{}\n```\n", path.join(" "), help.join("\n"));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path: Vec<String> = path.iter().cloned().chain([below.get_name().to_owned()]).collect();
            reference(program, &path, below, page);
        }
    }

    #[test]
    fn the_page_of_commands_has_the_help_of_every_command() {
        let mut page = String::from(
            "<!-- A test writes this page: see CONTRIBUTING.md. -->\n\n# Commands\n\n\
             What `--help` says of each command. The Debian package has the same as manual pages.\n",
        );
        let program = anywhere(crate::Arguments::command().term_width(100));
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            let path = ["polyclave", command.get_name()].map(str::to_owned);
            reference(&program, &path, command, &mut page);
        }
        book::compare("reference/commands.md", &page, "-p polyclave-cli --lib manual");
    }

    /// Of a command and of all below it: names of options that two arguments have. clap looks for them only
    /// in builds with debug assertions.
    fn names_given_twice(command: &Command, found: &mut Vec<String>) {
        let mut seen = BTreeSet::new();
        for argument in command.get_arguments() {
            let long = argument.get_long_and_visible_aliases().unwrap_or_default();
            let short = argument.get_short_and_visible_aliases().unwrap_or_default();
            let names = long.iter().map(|name| format!("--{name}"));
            for name in names.chain(short.iter().map(|letter| format!("-{letter}"))) {
                if !seen.insert(name.clone()) {
                    found.push(format!("{} {name}", command.get_name()));
                }
            }
        }
        command.get_subcommands().for_each(|below| names_given_twice(below, found));
    }

    #[test]
    fn no_option_has_the_name_of_another_or_of_those_that_every_command_has() {
        // Every page names the version of the program, so clap gives each command the option `--version` as
        // well.
        let mut program = crate::Arguments::command().propagate_version(true);
        program.clone().debug_assert();
        program.build();
        let mut found = Vec::new();
        names_given_twice(&program, &mut found);
        assert_eq!(found, [""; 0]);
    }
}
