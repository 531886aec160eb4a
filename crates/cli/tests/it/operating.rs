//! The book as an operator uses it: every command of its executed pages runs, in the order of
//! `docs/SUMMARY.md`, on machines that are directories and
//! ports of the loopback interface. All pages of the part Operate are executed. CONTRIBUTING.md says how they
//! are written.

mod installed;
mod machines;
mod page;

use std::process::Command;
use std::time::Duration;

use polyclave_harness::{book, programs};

pub use installed::Installed;
pub use machines::Machines;
pub use page::{Block, Page};

use crate::common::Place;

/// The blocks of commands that are not run: their pages, and the reasons that these give. A new one has to be
/// written here.
const NOT_RUN: [(&str, &str); 18] = [
    ("start/sealed-file.md", "builds the program"),
    ("start/sealed-file.md", "builds the program"),
    ("operate/install.md", "builds the program and installs a package"),
    ("operate/secret.md", "asks for a passphrase at a terminal"),
    ("operate/secret.md", "needs systemd and a TPM"),
    ("operate/dashboard.md", "builds the tests and needs a browser"),
    ("operate/postgresql.md", "needs a server"),
    ("operate/workers.md", "needs a server"),
    ("operate/workers.md", "needs a server"),
    ("operate/workers.md", "needs Kubernetes"),
    ("operate/containers.md", "needs containers"),
    ("operate/containers.md", "needs containers"),
    ("operate/containers.md", "needs containers"),
    ("operate/kubernetes-nodes.md", "needs Kubernetes"),
    ("operate/kubernetes-nodes.md", "needs Kubernetes"),
    ("operate/kubernetes-nodes.md", "needs Kubernetes"),
    ("operate/releases.md", "needs the files of a release"),
    ("operate/releases.md", "needs the sources"),
];

/// On a busy machine too, nodes have found each other, and made what they make together, in this time.
const PATIENCE: Duration = Duration::from_secs(120);

/// The executed pages, with their paths.
fn pages() -> Vec<(String, Page)> {
    let texts = book::pages().into_iter().map(|page| (book::read(&page.path), page.path));
    let executed = texts.filter(|(text, _)| text.starts_with(book::EXECUTED));
    executed
        .map(|(text, path)| (path.clone(), Page::parse(&text).unwrap_or_else(|e| panic!("{path}: {e}"))))
        .collect()
}

fn has_python() -> bool {
    let asks = "import sys; sys.exit(sys.version_info < (3, 11))";
    programs::succeeds(Command::new("python3").args(["-c", asks]), PATIENCE)
}

/// The blocks of these pages, each with the path of its page.
fn blocks(pages: &[(String, Page)]) -> impl Iterator<Item = (&str, &page::Fenced)> {
    pages.iter().flat_map(|(path, page)| page.blocks.iter().map(move |block| (path.as_str(), block)))
}

#[test]
fn an_operator_who_copies_every_command_of_the_book_in_order_gets_what_it_says() {
    let mut pages = pages();
    if !has_python() {
        eprintln!("SKIPPED: pages with python3, which is not installed, or older than 3.11");
        pages.retain(|(path, _)| !book::read(path).contains("python3 "));
    }
    let mut machines = Machines::new(PATIENCE);
    for (path, block) in blocks(&pages) {
        if let Block::Commands(groups) = &block.what {
            eprintln!("docs/{path}, line {}", block.line);
            machines.run(groups).unwrap_or_else(|e| panic!("docs/{path}: {e}\n{}", machines.logs()));
        }
    }
}

#[test]
fn every_page_for_operators_is_executed() {
    let for_operators = book::pages().into_iter().filter(|page| page.part == "Operate");
    let (executed, others): (Vec<_>, Vec<_>) =
        for_operators.partition(|page| book::read(&page.path).starts_with(book::EXECUTED));
    assert!(executed.len() > 15, "{executed:?}");
    let others: Vec<_> = others.into_iter().filter(|page| book::read(&page.path).contains("```")).collect();
    assert_eq!(others, []);
}

#[test]
fn the_book_has_no_commands_that_nobody_runs_but_those_that_are_known() {
    let pages = pages();
    let not_run: Vec<(&str, &str)> = blocks(&pages)
        .filter_map(|(path, block)| match &block.what {
            Block::NotRun(reason) => Some((path, reason.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(not_run, NOT_RUN, "write commands so that they run, or put their block into the list");
}

#[test]
fn the_settings_that_the_book_shows_are_settings_of_a_node() {
    let place = Place::new();
    place.run("node init alpha --name alpha --address 127.0.0.1:7000");
    let usual = String::from_utf8(place.read("alpha/node.toml")).expect("text");
    let mut shown = 0;
    for (path, block) in blocks(&pages()) {
        let Block::Settings(part) = &block.what else { continue };
        let setting = |line: &str| line.split_once(" = ").map(|(name, _)| name.to_owned());
        let given: Vec<String> = part.lines().filter_map(setting).collect();
        // In the place of its own heading, and of the same settings.
        let lines = usual.lines().filter(|line| setting(line).is_none_or(|name| !given.contains(&name)));
        let all: Vec<&str> =
            lines.map(|line| if part.lines().next() == Some(line) { part } else { line }).collect();
        place.write("alpha/node.toml", all.join("\n").as_bytes());
        let message = place.output("node status alpha");
        let message =
            String::from_utf8_lossy(&message.stdout).into_owned() + &String::from_utf8_lossy(&message.stderr);
        assert!(message.contains("alpha is not running"), "docs/{path}, line {}: {message}", block.line);
        shown += 1;
    }
    assert!(shown > 1, "{shown} settings");
}

/// A command in a sentence or table, such as `node rotate DIR --finish`.
#[test]
fn the_book_names_no_command_and_no_option_that_does_not_exist() {
    let place = Place::new();
    let mut checked = 0;
    let code = pages()
        .into_iter()
        .flat_map(|(path, page)| page.code.into_iter().map(move |code| (path.clone(), code)));
    for (path, code) in code {
        let code = code.trim_start_matches("polyclave ");
        let is_word =
            |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
        let command: Vec<&str> = code.split(' ').take_while(is_word).collect();
        let groups = ["node", "cluster", "client", "key", "encrypt", "decrypt", "mac", "demo"];
        if !command.first().is_some_and(|first| groups.contains(first)) {
            continue;
        }
        let help = place.run(&format!("{} --help", command.join(" ")));
        let options = code.split(' ').filter(|word| word.starts_with("--"));
        for option in options.map(|option| option.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())) {
            let is_there = help.split([' ', ',', '\n', '=']).any(|word| word == option);
            assert!(is_there, "docs/{path}: `{code}`: {} has no option {option}", command.join(" "));
        }
        checked += 1;
    }
    assert!(checked > 40, "{checked} commands");
}

/// What the test of the page rests on.
mod what_is_found {
    use super::*;

    fn run(text: &str) -> Result<(), String> {
        let page = Page::parse(text)?;
        let mut machines = Machines::new(Duration::from_secs(5));
        page.blocks.iter().try_for_each(|block| match &block.what {
            Block::Commands(groups) => machines.run(groups),
            _ => Ok(()),
        })
    }

    #[test]
    fn commands_run_on_their_machines_and_what_they_print_is_compared() {
        let text = "\
            ```sh\n# on alpha, beta\necho here > note\n# on alpha\nscp beta.example:note other\ncat \
            other\n#> he..e\n\
            test ! -e nothing\n# A remark.\ncat nothing\n#! No such file\ncat <<END\n# two\nEND\n#> \
            two\n```\n\
            ```sh\necho alice > name\n# on beta\nscp alice.example:name name\ncat name\n#> alice\n\
            sleep 0 &\n```\n";
        assert_eq!(run(text), Ok(()));
    }

    #[test]
    fn a_command_that_fails_or_prints_something_else_or_does_not_exist_is_found() {
        for (command, message) in [
            ("false", "failed"),
            ("echo one\n#> two", "does not print"),
            ("true\n#! error", "should fail"),
            ("cat nothing\n#! permission", "does not print"),
            ("polyclave node init x --no-such-option", "unexpected argument '--no-such-option'"),
            ("polyclave node status /var/lib/polyclave", "is not the directory of a node"),
            ("systemctl start polyclave-node\nsystemctl start polyclave-node", "runs already"),
            ("scp beta.example:note note", "note"),
            ("false &", "has failed"),
            ("sleep 60 &", "does not end"),
        ] {
            let error = run(&format!("```sh\n# on alpha\n{command}\n```\n")).expect_err(command);
            assert!(error.contains(message), "{command}: {error}");
        }
    }

    #[test]
    fn blocks_that_the_test_could_not_run_are_refused() {
        for (text, message) in [
            ("```sh no-run\ntrue\n```\n", "reason"),
            ("```bash\ntrue\n```\n", "bash"),
            ("```\ntrue\n```\n", "has no language"),
            ("```sh\n# on alpha\ntrue\n", "does not end"),
            ("Text.\n\n    polyclave node init\n", "indented"),
            ("```sh\n# on alpha\n#> output\n```\n", "no command"),
        ] {
            let error = Page::parse(text).map(drop).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
