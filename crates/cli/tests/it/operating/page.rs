//! The blocks of a page, and the commands in them.

/// The machine of commands in a block that names none before them.
const USUAL: &str = "alice";

/// A page.
pub struct Page {
    pub blocks: Vec<Fenced>,
    /// What is set as code in its sentences and tables.
    pub code: Vec<String>,
}

/// A fenced block.
pub struct Fenced {
    /// The number of its first line, from 1.
    pub line: usize,
    pub what: Block,
}

/// What a block is.
pub enum Block {
    Commands(Vec<Group>),
    NotRun(String),
    Settings(String),
    Other,
}

/// Commands that run one after the other, on one machine after the other.
pub struct Group {
    pub machines: Vec<String>,
    pub commands: Vec<Command>,
}

pub struct Command {
    pub line: usize,
    pub text: String,
    /// What it prints.
    pub prints: Vec<String>,
    /// What it prints when it fails, as it must; empty if it must not fail.
    pub refuses: Vec<String>,
}

impl Page {
    /// Reads a page. Says what is wrong, and in which line.
    pub fn parse(text: &str) -> Result<Page, String> {
        let mut blocks = Vec::new();
        let mut sentences = String::new();
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            if line.starts_with("    ") {
                return Err(format!("line {number} is indented: write commands in fenced blocks"));
            }
            let Some(info) = line.strip_prefix("```") else {
                sentences.push_str(line);
                sentences.push(' ');
                continue;
            };
            let mut inside = Vec::new();
            loop {
                let (line, number) =
                    lines.next().ok_or(format!("the block in line {number} does not end"))?;
                if line == "```" {
                    break;
                }
                inside.push((line, number));
            }
            let what = block(info, &inside).map_err(|e| format!("line {number}: {e}"))?;
            blocks.push(Fenced { line: number, what });
        }
        let code = sentences.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Ok(Page { blocks, code })
    }
}

fn block(info: &str, lines: &[(&str, usize)]) -> Result<Block, String> {
    let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
    match (language, rest) {
        ("sh", "") => groups(lines).map(Block::Commands),
        ("sh", rest) => match rest.strip_prefix("no-run: ") {
            Some(reason) => Ok(Block::NotRun(reason.into())),
            None => Err(format!("```sh {rest}: write `no-run: ` and the reason")),
        },
        ("toml", "node.toml") => {
            Ok(Block::Settings(lines.iter().flat_map(|(line, _)| [line, "\n"]).collect()))
        }
        ("text" | "json" | "toml", _) => Ok(Block::Other),
        ("", _) => Err("the block has no language; write sh, toml, json or text".into()),
        (other, _) => Err(format!("a block of {other}; write sh, toml, json or text")),
    }
}

fn groups(lines: &[(&str, usize)]) -> Result<Vec<Group>, String> {
    let mut groups = vec![Group { machines: vec![USUAL.into()], commands: Vec::new() }];
    let mut lines = lines.iter();
    while let Some((line, number)) = lines.next() {
        if let Some(names) = line.strip_prefix("# on ") {
            let machines = names.split(',').map(|name| name.trim().to_owned()).collect();
            groups.push(Group { machines, commands: Vec::new() });
            continue;
        }
        let Some(group) = groups.last_mut() else { continue };
        let expectation = [("#> ", false), ("#! ", true)]
            .into_iter()
            .find_map(|(mark, refused)| Some((line.strip_prefix(mark)?, refused)));
        if let Some((message, refused)) = expectation {
            let Some(command) = group.commands.last_mut() else {
                return Err(format!("line {number} is output of no command"));
            };
            if refused { &mut command.refuses } else { &mut command.prints }.push(message.into());
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut text = (*line).to_owned();
        let mut more = |text: &mut String, what: &str| {
            let (line, _) = lines.next().ok_or(format!("line {number}: {what} does not end"))?;
            text.push('\n');
            text.push_str(line);
            Ok::<_, String>(*line)
        };
        while text.ends_with('\\') {
            more(&mut text, "a command")?;
        }
        if let Some((_, after)) = text.split_once("<<") {
            let end = after.trim_matches(['\'', '"', ' ']).to_owned();
            while more(&mut text, "a here-document")? != end {}
        }
        let (prints, refuses) = Default::default();
        group.commands.push(Command { line: *number, text, prints, refuses });
    }
    Ok(groups)
}
