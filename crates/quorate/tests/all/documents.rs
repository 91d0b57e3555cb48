//! Documents that code or order decides: the page of settings is what the binary prints, the
//! operators' page names every line of alarm, the glossary stands in alphabetical order, links lead
//! somewhere.

use std::process::Command;

use lab::host::run;

use crate::kill::program;
use crate::source;

/// Set, it writes what is expected anew (`make expected`).
const REWRITE: &str = "QUORATE_REWRITE_EXPECTED";

const SETTINGS: &str = "docs/SETTINGS.md";

#[test]
fn expected_outputs_of_settings_are_the_codes() {
    let printed = run(Command::new(program()).arg("settings")).expect("a page");
    let printed = format!("{}\n", printed.trim_end());
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(source::root().join(SETTINGS), &printed).expect("it is written");
    }
    let kept = source::text(SETTINGS);
    let differs = printed.lines().zip(kept.lines()).find(|two| two.0 != two.1);
    assert!(
        printed == kept,
        "{SETTINGS} is not what `quorate settings` prints; make expected writes it anew: {differs:?}"
    );
}

#[test]
fn the_glossary_is_in_alphabetical_order() {
    let text = source::text("docs/GLOSSARY.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    let words = rows.filter_map(|row| row.split(" | ").next());
    let words: Vec<_> = words.skip(1).map(str::to_lowercase).collect();
    assert!(words.len() > 50, "{words:?}");
    for two in words.windows(2) {
        assert!(two[0] < two[1], "{} stands before {}", two[0], two[1]);
    }
}

/// What a heading is called in links.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c => (c.is_alphanumeric() || c == '-' || c == '_').then_some(c),
    });
    kept.collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut pages = source::files("docs", ".md");
    pages.extend(["README.md".to_owned(), "CONTRIBUTING.md".to_owned()]);
    let mut dead = Vec::new();
    for page in pages {
        let text = source::text(&page);
        let targets = text.split("](").skip(1);
        for target in targets.filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let dir = page.rsplit_once('/').map_or("", |(dir, _)| dir);
            let file = match file {
                "" => source::root().join(&page),
                file => source::root().join(dir).join(file),
            };
            let there = std::fs::read_to_string(file).unwrap_or_default();
            let headings = there.lines().filter(|line| line.starts_with('#'));
            let is_dead = match heading {
                "" => there.is_empty(),
                heading => !headings.map(anchor).any(|one| one == heading),
            };
            if is_dead {
                dead.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

// ---- Lines of alarm ----

const OPERATIONS: &str = "docs/OPERATIONS.md";

/// Where nodes log.
const LOGGING: [&str; 5] = ["node", "kv", "raft", "storage", "quorate"];

/// Arguments that are whole errors; the page tells of the errors there are.
const ERRORS: [&str; 3] = [
    "error.message()",
    "&panic.to_string()",
    "&backtrace.to_string()",
];

/// Where what strangers do is logged: its callers say what.
const STRANGERS: &str = "crates/node/src/unproved.rs";

/// What a call of `log` says at a severity that alarms: the text of its message, with `{…}` where
/// it varies; none where it is a whole error.
///
/// # Panics
/// When it is written in a way that is not known here.
fn message_at<'a>(text: &'a str, at: usize, path: &str) -> Option<&'a str> {
    let argument = text[at..].split_once(',').expect("an argument").1;
    let argument = argument.trim_start();
    let literal = |from: &'a str| -> &'a str {
        let begin = from.find('"').expect("a text") + 1;
        let end = from[begin..].find('"').expect("its end") + begin;
        &from[begin..end]
    };
    if argument.starts_with('"') || argument.starts_with("&format!(") {
        return Some(literal(argument));
    }
    if ERRORS.iter().any(|error| argument.starts_with(error)) {
        return None;
    }
    let name = argument.trim_start_matches('&');
    let name = &name[..name.find(')').expect("the end of the call")];
    let before = &text[..at];
    let defined = before.rfind(&format!("let {name} ="));
    let defined = defined.unwrap_or_else(|| panic!("{path}: what is logged as {name}?"));
    Some(literal(&before[defined..]))
}

/// The parts of a message that are always the same.
fn fixed_parts(message: &str) -> Vec<String> {
    // Lines of the source that are one line of text.
    let mut pieces = message.split("\\\n");
    let mut joined = pieces.next().unwrap_or_default().to_owned();
    pieces.for_each(|piece| joined.push_str(piece.trim_start()));
    let mut parts = Vec::new();
    for piece in joined.split('{') {
        let fixed = piece.split_once('}').map_or(piece, |(_, fixed)| fixed);
        let fixed = fixed.trim_matches([' ', ':', ',']);
        if !fixed.is_empty() {
            parts.push(fixed.to_owned());
        }
    }
    parts
}

fn has_in_order(line: &str, parts: &[String]) -> bool {
    let mut rest = line;
    parts.iter().all(|part| match rest.split_once(&**part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn every_line_of_alarm_is_explained() {
    let page = source::text(OPERATIONS);
    let mut messages = Vec::new();
    for name in LOGGING {
        for path in source::files(&format!("crates/{name}/src"), ".rs") {
            let is_test = ["tests", "testing.rs", "stress.rs", "model.rs"];
            if is_test.iter().any(|part| path.contains(part)) {
                continue;
            }
            let text = source::text(&path);
            let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let of_strangers = match path == STRANGERS {
                true => "self.log(format!(",
                false => "unproved.log(format!(",
            };
            let said = product.split(of_strangers).skip(1);
            messages.extend(
                said.filter_map(|rest| rest.split('"').nth(1))
                    .map(fixed_parts),
            );
            if path == STRANGERS {
                continue;
            }
            for severity in ["Severity::Warning,", "Severity::Error,"] {
                for (at, _) in product.match_indices(severity) {
                    // What clients are told has a severity of its own.
                    if !product[..at].ends_with("backend::") {
                        messages.extend(message_at(product, at, &path).map(fixed_parts));
                    }
                }
            }
        }
    }
    assert!(messages.len() > 15, "{messages:?}");
    let is_there = |parts: &&Vec<String>| page.lines().any(|line| has_in_order(line, parts));
    let missing: Vec<_> = messages.iter().filter(|parts| !is_there(parts)).collect();
    assert!(
        missing.is_empty(),
        "{OPERATIONS} does not explain: {missing:#?}"
    );
}

#[test]
fn parts_of_messages_are_found() {
    let text = "let message = format!(\"lost {} at \\\n    {why}: {error}\");\n\
                env.log(Severity::Warning, &message);";
    let at = text.find("Severity::Warning").expect("it is there");
    let message = message_at(text, at, "here").expect("a message");
    assert_eq!(fixed_parts(message), ["lost", "at"]);
    assert!(has_in_order("| `lost N at X: …` |", &fixed_parts(message)));
    assert!(!has_in_order("at N lost", &fixed_parts(message)));
}
