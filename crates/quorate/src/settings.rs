//! `quorate settings`: the page `docs/SETTINGS.md`, made from the tables that the code itself reads.
//!
//! Three tables: Quorate's own settings, PostgreSQL's, and those of PostgreSQL's that are taken for
//! the sake of clients that set them and change nothing. A test holds the page in the repository
//! against this command; `make expected` writes it anew.

use node::config::documented::{DefaultValue, SETTINGS as OF_NODES};
use sql::session::documented as of_sessions;

use crate::{end_with_the_reader, Failure};

const INTRODUCTION: &str = "\
# Settings

Every setting there is. `quorate settings` prints this page, from the tables that the code itself reads.

Where a setting is given, the most special place last, which wins:

| place | for whom | lasts |
|---|---|---|
| `quorate up -c NAME=VALUE` for all nodes, or `settings` in one's `DIR/nX/node.json` before `quorate start` | a node, or as the default of every session there | `up` writes `node.json` anew each time: what its next command line does not give is at its default again |
| `alter system set NAME = VALUE; select pg_reload_conf();` | the whole cluster | until `alter system reset NAME` and another reload; nodes that are added or restarted have it too |
| `alter role all set …`, `alter database … set …`, `alter role … set …`, `alter role … in database … set …` | sessions that begin later | until `reset` |
| the connection: `PGOPTIONS='-c NAME=VALUE'`, `options` in a connection string | a session | the session |
| `set NAME = VALUE` | a session | the session |
| `set local NAME = VALUE` | a transaction | the transaction |

`show NAME` prints what is in force, `pg_settings` also where it comes from. A name that is unknown is 42704, a value that is not taken 22023, a change at the wrong time or of what nobody can change 55P02. A node refuses to start with any of these.

**When it takes effect**, as `pg_settings.context` says it:

| context | when |
|---|---|
| `internal` | never: it tells how the server is |
| `postmaster` | at the start of a node, for that node; ALTER SYSTEM answers 0A000 |
| `sighup` | at `pg_reload_conf()` after ALTER SYSTEM, for the whole cluster at once; until then as the nodes were started with |
| `superuser-backend`, `backend` | at the beginning of a session; the former for superusers only |
| `superuser` | at once, if a superuser sets it |
| `user` | at once |

*Unit* is what a number without a unit counts. Times take `us`, `ms`, `s`, `min`, `h` and `d`, sizes `B`, `kB`, `MB`, `GB` and `TB`. Settings with the context `postmaster` take a number without a unit only where a unit is listed here.
";

/// Defaults that `quorate start` works out from the machine's memory, in words.
const CHOSEN: [(&str, &str); 2] = [
    (
        "shared_buffers",
        "a quarter of the machine's memory, divided by the nodes of the cluster on it",
    ),
    (
        "quorate.query_mem",
        "an eighth of the machine's memory, divided by the nodes of the cluster on it, at most `2GB`",
    ),
];

/// One line of the page.
struct Line {
    name: &'static str,
    context: &'static str,
    default: String,
    unit: Option<&'static str>,
    values: String,
    meaning: String,
}

/// Prints the page.
pub fn run() -> Result<(), Failure> {
    end_with_the_reader();
    let mut ours = Vec::new();
    let mut taken = Vec::new();
    let mut ignored = Vec::new();
    for one in of_sessions() {
        // The node's table says more of what no session can set.
        if one.is_fixed && OF_NODES.iter().any(|other| other.name == one.name) {
            continue;
        }
        let has_effect = one.has_effect;
        let line = Line {
            name: one.name,
            context: one.context,
            default: default_text(one.name, &one.default),
            unit: one.unit,
            values: one.values,
            meaning: one.meaning,
        };
        match (is_ours(line.name), has_effect) {
            (true, _) => ours.push(line),
            (false, true) => taken.push(line),
            (false, false) => ignored.push(line),
        }
    }
    for line in of_nodes() {
        match is_ours(line.name) {
            true => ours.push(line),
            false => taken.push(line),
        }
    }
    print!("{INTRODUCTION}");
    print_table("Quorate's own", &mut ours);
    print_table("PostgreSQL's", &mut taken);
    print_table("PostgreSQL's, taken and without effect", &mut ignored);
    Ok(())
}

/// Settings of nodes, but for those that ALTER SYSTEM can change: they stand among the sessions'.
fn of_nodes() -> Vec<Line> {
    let of_sessions = of_sessions();
    let is_of_cluster = |name: &str| {
        let found = of_sessions.iter().find(|one| one.name == name);
        found.is_some_and(|one| one.context == "sighup" && !one.is_fixed)
    };
    let lines = OF_NODES.iter().filter(|one| !is_of_cluster(one.name));
    lines
        .map(|one| Line {
            name: one.name,
            context: "postmaster",
            default: match one.default {
                DefaultValue::Value(text) => default_text(one.name, text),
                DefaultValue::Chosen(words) => words.to_owned(),
            },
            unit: one.unit,
            values: one.values.to_owned(),
            meaning: one.meaning.to_owned(),
        })
        .collect()
}

fn is_ours(name: &str) -> bool {
    name.starts_with("quorate.")
}

/// A default as the page shows it.
fn default_text(name: &str, value: &str) -> String {
    let chosen = CHOSEN.iter().find(|one| one.0 == name);
    match (chosen, value) {
        (Some((_, words)), _) => (*words).to_owned(),
        (None, "") => "empty".to_owned(),
        (None, value) => format!("`{value}`"),
    }
}

fn print_table(title: &str, lines: &mut [Line]) {
    lines.sort_by_key(|line| (line.name.to_ascii_lowercase(), line.context));
    println!("\n## {title}\n");
    println!("| setting | context | default | unit | values | meaning |");
    println!("|---|---|---|---|---|---|");
    for line in lines {
        let unit = line.unit.unwrap_or("");
        let (name, context) = (line.name, line.context);
        let (default, values) = (&line.default, &line.values);
        println!(
            "| `{name}` | {context} | {default} | {unit} | {values} | {} |",
            line.meaning.replace('|', "\\|")
        );
    }
}
