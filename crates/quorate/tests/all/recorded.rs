//! Outputs of PostgreSQL's that are recorded in the tree, beside the PostgreSQL that is installed.
//!
//! A directory of recorded outputs says in its file `MADE_BY` what made them, one name and version a
//! line:
//!
//! ```text
//! psql 15.18
//! server 15.18
//! tzdata 2025b
//! ```
//!
//! Where the same versions are installed, PostgreSQL must print what is recorded. Where a minor
//! version is another, its live answer is as good as the recorded one: a difference between the two
//! is told ([`assert_recorded`]) and `make expected` takes it over; whoever is compared, Quorate, may give
//! either at each place where they differ ([`Answers::accept`]). Everywhere else it must give what
//! both give. So a change of one message or of psql's layout in a later minor version fails no test,
//! and hides no difference elsewhere in the same script.
//!
//! # What it leaves out
//! Tests that ask PostgreSQL and Quorate the same at the same time (`protocol`, `sessions`,
//! `isolation`, `scripts`) have nothing recorded, and hold Quorate to the installed version alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use lab::host::{run, Endpoint};

use crate::source;

/// The flag of `make expected`.
const REWRITE: &str = "QUORATE_REWRITE_EXPECTED";

/// The release of PostgreSQL that Quorate is compared with.
const MAJOR: &str = "15.";

/// Lines of a difference that a notice shows; the rest is counted.
const NOTICE_LINES_MAX: usize = 40;

/// Lines around a difference that are shown.
const CONTEXT_LINES: usize = 3;

/// What later minor versions of PostgreSQL 15 list (settings, functions, rows of the catalog) and
/// Quorate has no use for. A row that holds one of them is left out of what a server lists, so that
/// lists are compared for what both know. Nothing that 15.18 has may stand here.
const UNKNOWN_HERE: [&str; 1] = ["output_plugin_libraries"];

/// Whether a value of a row names something that is not compared.
pub fn is_unknown_here(value: &str) -> bool {
    UNKNOWN_HERE.contains(&value)
}

/// Whether recorded outputs are made anew.
pub fn is_rewritten() -> bool {
    std::env::var_os(REWRITE).is_some()
}

/// What outputs rest on, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions(BTreeMap<String, String>);

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        f.write_str(&parts.join(", "))
    }
}

impl Versions {
    /// What made the outputs below a directory of the workspace.
    pub fn recorded(directory: &str) -> Versions {
        let text = source::text(&format!("{directory}/MADE_BY"));
        let parts = text.lines().filter_map(|line| line.split_once(' '));
        Versions(
            parts
                .map(|(name, version)| (name.to_owned(), version.to_owned()))
                .collect(),
        )
    }

    /// The server that answers there, and the time zones of this machine, which it uses.
    pub fn of_server(endpoint: &Endpoint) -> Versions {
        let said = endpoint.query("show server_version").expect("its version");
        let mut versions = Versions(BTreeMap::new());
        versions.add_postgresql("server", &said);
        let zones = fs::read_to_string("/usr/share/zoneinfo/tzdata.zi").unwrap_or_default();
        let zones = zones
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# version "));
        versions.add("tzdata", zones.unwrap_or("unknown"));
        versions
    }

    /// As [`Versions::of_server`], with this psql.
    pub fn of_psql(psql: &Path, endpoint: &Endpoint) -> Versions {
        let mut versions = Versions::of_server(endpoint);
        let said = run(Command::new(psql).arg("--version")).expect("psql's version");
        let said = said.trim_start_matches("psql (PostgreSQL) ");
        versions.add_postgresql("psql", said);
        versions
    }

    /// `15.18 (Debian 15.18-0+deb12u1)` is version `15.18`.
    fn add_postgresql(&mut self, name: &str, said: &str) {
        let version = said.split_whitespace().next().unwrap_or_default();
        assert!(
            version.starts_with(MAJOR),
            "{name} is of version {said:?}, and Quorate is compared with PostgreSQL {MAJOR}x; where it \
             is installed elsewhere, put its programs first on the PATH: PATH={}:$PATH",
            lab::postgres::DEBIAN_BIN
        );
        self.add(name, version);
    }

    fn add(&mut self, name: &str, version: &str) {
        self.0.insert(name.to_owned(), version.to_owned());
    }

    /// Records that these made the outputs below a directory of the workspace.
    pub fn write(&self, directory: &str) {
        let text = self.to_string().replace(", ", "\n");
        let file = source::root().join(directory).join("MADE_BY");
        fs::write(file, format!("{text}\n")).expect("what made them");
    }
}

/// What may be printed: what is recorded, and what the installed PostgreSQL prints where that is of
/// another version.
#[derive(Clone, Debug)]
pub struct Answers {
    /// What is recorded.
    pub recorded: String,
    /// What PostgreSQL prints here, where it need not be the same.
    pub live: Option<String>,
}

impl Answers {
    /// The recorded answer alone.
    pub fn recorded(text: String) -> Answers {
        Answers {
            recorded: text,
            live: None,
        }
    }

    /// Whether a text is the one or the other, place by place: where both have the same lines, it
    /// has them too; where they differ, it has those of the one or of the other; of lines that only
    /// one has, it has any.
    pub fn accept(&self, found: &str) -> bool {
        if found == self.recorded {
            return true;
        }
        let Some(live) = &self.live else {
            return false;
        };
        let found: Vec<&str> = found.lines().collect();
        let recorded: Vec<&str> = self.recorded.lines().collect();
        let live: Vec<&str> = live.lines().collect();
        // Where in `found` the places so far may end.
        let mut ends = BTreeSet::from([0]);
        for place in places(&recorded, &live) {
            let next = |start: usize| {
                let lengths = place.lengths(&found[start..]).into_iter();
                lengths.map(move |length| start + length)
            };
            ends = ends.into_iter().flat_map(next).collect();
        }
        ends.contains(&found.len())
    }

    /// The same answers with something done to both.
    pub fn map(&self, change: impl Fn(&str) -> String) -> Answers {
        Answers {
            recorded: change(&self.recorded),
            live: self.live.as_deref().map(change),
        }
    }

    /// How a text differs from what is recorded.
    pub fn difference(&self, found: &str) -> String {
        let mut text = difference(&self.recorded, found);
        if self
            .live
            .as_ref()
            .is_some_and(|live| *live != self.recorded)
        {
            text.push_str("(nor is it what the installed PostgreSQL prints)\n");
        }
        text
    }
}

/// A run of lines in which two texts agree, or do not.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    Same(Vec<&'a str>),
    Either(Vec<&'a str>, Vec<&'a str>),
}

impl Place<'_> {
    /// How many of the first lines of `found` may be those of this place.
    fn lengths(&self, found: &[&str]) -> BTreeSet<usize> {
        let (one, other) = match self {
            Place::Same(lines) => {
                let is_same = found.starts_with(lines);
                return is_same.then_some(lines.len()).into_iter().collect();
            }
            Place::Either(one, other) => (one, other),
        };
        let mut lengths = BTreeSet::new();
        for lines in [one, other] {
            if found.starts_with(lines) {
                lengths.insert(lines.len());
            }
        }
        if one.is_empty() || other.is_empty() {
            let mut known = one.iter().chain(other);
            let part = found.iter().take_while(|line| known.any(|k| k == *line));
            lengths.extend(0..=part.count());
        }
        let mut pairs = found.iter().zip(one.iter().zip(other));
        if one.len() == other.len()
            && found.len() >= one.len()
            && pairs.all(|(line, (one, other))| is_either(line, one, other))
        {
            lengths.insert(one.len());
        }
        lengths
    }
}

/// Whether a line is the one or the other, word by word where these have as many words.
fn is_either(line: &str, one: &str, other: &str) -> bool {
    let words = |line: &'_ str| line.split(' ').count();
    let mut pairs = line.split(' ').zip(one.split(' ').zip(other.split(' ')));
    line == one
        || line == other
        || words(line) == words(one)
            && words(line) == words(other)
            && pairs.all(|(word, (one, other))| word == one || word == other)
}

/// The places of two texts, by a longest common subsequence of their lines.
fn places<'a>(one: &[&'a str], other: &[&'a str]) -> Vec<Place<'a>> {
    let pairs = one.iter().zip(other);
    let head = pairs.take_while(|(a, b)| a == b).count();
    let pairs = one[head..].iter().rev().zip(other[head..].iter().rev());
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let (a, b) = (
        &one[head..one.len() - tail],
        &other[head..other.len() - tail],
    );
    // How long the longest is of what begins at these lines.
    let mut longest = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for (i, line) in a.iter().enumerate().rev() {
        for (j, with) in b.iter().enumerate().rev() {
            longest[i][j] = match line == with {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let mut places = Vec::new();
    push_same(&mut places, &one[..head]);
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            push_same(&mut places, &a[i..=i]);
            (i, j) = (i + 1, j + 1);
            continue;
        }
        if !matches!(places.last(), Some(Place::Either(..))) {
            places.push(Place::Either(Vec::new(), Vec::new()));
        }
        if let Some(Place::Either(from_a, from_b)) = places.last_mut() {
            if j == b.len() || i < a.len() && longest[i + 1][j] >= longest[i][j + 1] {
                from_a.push(a[i]);
                i += 1;
            } else {
                from_b.push(b[j]);
                j += 1;
            }
        }
    }
    push_same(&mut places, &one[one.len() - tail..]);
    places
}

fn push_same<'a>(places: &mut Vec<Place<'a>>, lines: &[&'a str]) {
    match places.last_mut() {
        Some(Place::Same(same)) => same.extend(lines),
        _ if lines.is_empty() => {}
        _ => places.push(Place::Same(lines.to_vec())),
    }
}

/// How two texts differ: lines of the first alone after `-`, of the second alone after `+`.
pub fn difference(expected: &str, found: &str) -> String {
    let expected: Vec<&str> = expected.lines().collect();
    let found: Vec<&str> = found.lines().collect();
    let places = places(&expected, &found);
    let mut text = String::new();
    let mut add = |sign: char, lines: &[&str]| {
        for line in lines {
            text.push_str(&format!("{sign}{line}\n"));
        }
    };
    for (index, place) in places.iter().enumerate() {
        match place {
            Place::Either(minus, plus) => {
                add('-', minus);
                add('+', plus);
            }
            Place::Same(lines) => {
                let before = if index > 0 { CONTEXT_LINES } else { 0 };
                let after = if index + 1 < places.len() {
                    CONTEXT_LINES
                } else {
                    0
                };
                if lines.len() <= before + after {
                    add(' ', lines);
                } else {
                    add(' ', &lines[..before]);
                    add('@', &[""]);
                    add(' ', &lines[lines.len() - after..]);
                }
            }
        }
    }
    text
}

/// In what the installed PostgreSQL differs from what is recorded, for a person.
pub fn notice(what: &str, recorded: &Versions, installed: &Versions, difference: &str) -> String {
    let mut text = format!(
        "NOTICE: {what} is recorded from {recorded}, and differs with {installed}, which is as good; \
         `make expected` takes it over:\n"
    );
    let lines: Vec<&str> = difference.lines().collect();
    for line in lines.iter().take(NOTICE_LINES_MAX) {
        text.push_str(&format!("  {line}\n"));
    }
    if lines.len() > NOTICE_LINES_MAX {
        let rest = lines.len() - NOTICE_LINES_MAX;
        text.push_str(&format!("  and {rest} lines more\n"));
    }
    text
}

/// A recorded output: its file, what that has, and what PostgreSQL gives here.
pub struct Recorded {
    pub path: String,
    pub expected: String,
    pub found: String,
}

/// What is wrong with outputs that these versions are said to have made, and what is to be told,
/// given the installed versions: the same must give the same, others may differ.
fn judge(
    recorded: &Versions,
    installed: &Versions,
    outputs: &[Recorded],
) -> (Vec<String>, Vec<String>) {
    let (mut wrong, mut told) = (Vec::new(), Vec::new());
    for output in outputs {
        if output.expected == output.found {
            continue;
        }
        let shown = difference(&output.expected, &output.found);
        match recorded == installed {
            true => wrong.push(format!("== {}\n{shown}", output.path)),
            false => told.push(notice(&output.path, recorded, installed, &shown)),
        }
    }
    (wrong, told)
}

/// Holds what PostgreSQL gives here against the recorded outputs of a directory. Where other versions
/// are installed than made those, says on the terminal what differs, also where the test passes.
pub fn assert_recorded(directory: &str, installed: &Versions, outputs: &[Recorded]) {
    let recorded = Versions::recorded(directory);
    let (wrong, told) = judge(&recorded, installed, outputs);
    // What is written with macros is shown of failing tests only.
    std::io::stderr()
        .write_all(told.concat().as_bytes())
        .expect("standard error");
    assert!(
        wrong.is_empty(),
        "{} of {} recorded outputs are not what PostgreSQL gives, though {recorded} made them; `make \
         expected` writes them anew:\n{}",
        wrong.len(),
        outputs.len(),
        wrong.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str =
        "select 1;\n 1\nlist;\n a\n c\n(2 rows)\nwrong;\nERROR: one\nHINT: two\n";

    fn answers(live: &str) -> Answers {
        Answers {
            recorded: RECORDED.to_owned(),
            live: Some(live.to_owned()),
        }
    }

    #[test]
    fn what_one_version_lists_may_be_there_or_not() {
        let live = RECORDED.replace(" c\n(2 rows)", " b\n b2\n c\n(4 rows)");
        let answers = answers(&live);
        assert!(answers.accept(RECORDED));
        assert!(answers.accept(&live));
        assert!(answers.accept(&RECORDED.replace(" c\n(2 rows)", " b2\n c\n(2 rows)")));
        // What both know must be there, and nothing that neither knows.
        assert!(!answers.accept(&live.replace(" c\n", "")));
        assert!(!answers.accept(&live.replace(" b\n", " d\n")));
        assert!(!answers.accept(&RECORDED.replace("(2 rows)", "(3 rows)")));
    }

    #[test]
    fn a_text_that_differs_may_be_the_one_or_the_other() {
        let live = RECORDED.replace("ERROR: one\nHINT: two", "ERROR: eins\nHINT: zwei");
        let answers = answers(&live);
        assert!(answers.accept(&live));
        assert!(answers.accept(&RECORDED.replace("two", "zwei")));
        assert!(!answers.accept(&RECORDED.replace("two", "three")));
        assert!(!answers.accept(&RECORDED.replace("HINT: two\n", "")));
        assert!(!answers.accept(&live.replace(" 1\n", " 2\n")));
        assert!(!answers.accept(&format!("{live} more\n")));
        assert!(!Answers::recorded(RECORDED.to_owned()).accept(&live));
    }

    #[test]
    fn a_text_that_grows_or_shrinks_is_taken_as_a_whole() {
        let live = RECORDED.replace("ERROR: one\nHINT: two", "ERROR: one and two");
        let answers = answers(&live);
        assert!(answers.accept(&live));
        assert!(answers.accept(RECORDED));
        assert!(!answers.accept(&RECORDED.replace("ERROR: one\n", "")));
    }

    #[test]
    fn a_difference_shows_its_surroundings() {
        let found = RECORDED.replace("one", "three");
        assert_eq!(
            difference(RECORDED, &found),
            "@\n  c\n (2 rows)\n wrong;\n-ERROR: one\n+ERROR: three\n HINT: two\n"
        );
    }

    #[test]
    fn words_of_a_line_are_looked_at_one_by_one() {
        let live = RECORDED.replace("(2 rows)", "(3 lines)");
        let answers = answers(&live);
        assert!(answers.accept(&RECORDED.replace("(2 rows)", "(2 lines)")));
        assert!(!answers.accept(&RECORDED.replace("(2 rows)", "(4 lines)")));
    }

    #[test]
    fn the_same_versions_must_give_the_same() {
        let outputs = [Recorded {
            path: "name".to_owned(),
            expected: "one\n".to_owned(),
            found: "two\n".to_owned(),
        }];
        let recorded = Versions::recorded("tests/sql");
        let (wrong, told) = judge(&recorded, &recorded, &outputs);
        assert_eq!((wrong.len(), told.len()), (1, 0));
        let mut other = recorded.clone();
        other.add("server", "15.999");
        let (wrong, told) = judge(&recorded, &other, &outputs);
        assert_eq!((wrong.len(), told.len()), (0, 1));
        assert!(told[0].contains("server 15.999") && told[0].contains("\n  -one\n  +two\n"));
    }

    #[test]
    fn a_psql_that_loses_step_with_the_suite_is_noticed() {
        let script = source::root().join("scripts/conformance.py");
        let examples = run(Command::new("python3").args(["-m", "doctest"]).arg(script));
        assert_eq!(examples.expect("the script's examples hold"), "");
    }
}
