//! Settings as `docs/SETTINGS.md` lists them: what each is for, whatever its value is now.

use super::view::range_text;
use super::{about, shown, without_effect, Context, Kind, DEFINITIONS};

/// What is said of a setting of sessions.
#[derive(Clone, Debug)]
pub struct DocumentedSetting {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in sentences.
    pub meaning: String,
    /// What a number without a unit counts; none where it is a mere number or none at all.
    pub unit: Option<&'static str>,
    /// The built-in value, as SHOW prints it.
    pub default: String,
    /// The values that it takes.
    pub values: String,
    /// Who may change it, and when: `pg_settings.context`.
    pub context: &'static str,
    /// Whether no session can set it, nor its role or database.
    pub is_fixed: bool,
    /// Whether anything here depends on it. What does not is taken for clients that set it.
    pub has_effect: bool,
}

/// PostgreSQL's settings that clients set, and that nothing here depends on, with the reason. Those
/// of its planner say so themselves.
const WITHOUT_EFFECT: [(&str, &str); 16] = [
    (
        "deadlock_timeout",
        "Deadlocks are looked for as soon as somebody waits.",
    ),
    (
        "default_table_access_method",
        "There is one, heap; another is refused (22023).",
    ),
    (
        "default_tablespace",
        "There is one for objects, pg_default; another is refused.",
    ),
    (
        "default_with_oids",
        "No table has oids, in PostgreSQL neither; `on` is refused (0A000).",
    ),
    ("jit", "Nothing is compiled."),
    (
        "lc_messages",
        "Messages are English; locales other than C, POSIX and C.UTF-8 are refused (22023).",
    ),
    (
        "lc_monetary",
        "Nothing is formatted by locales; others than C, POSIX and C.UTF-8 are refused (22023).",
    ),
    (
        "lc_numeric",
        "Nothing is formatted by locales; others than C, POSIX and C.UTF-8 are refused (22023).",
    ),
    (
        "lc_time",
        "Nothing is formatted by locales; others than C, POSIX and C.UTF-8 are refused (22023).",
    ),
    (
        "maintenance_work_mem",
        "Indexes are built from the pages of their tables, in `shared_buffers`.",
    ),
    (
        "pg_stat_statements.save",
        "A node counts statements from its start, and keeps nothing of that.",
    ),
    (
        "random_page_cost",
        "Plans follow from keys and numbers of rows, not from this.",
    ),
    (
        "synchronize_seqscans",
        "Every scan begins at the first row.",
    ),
    ("wal_compression", ""),
    ("wal_level", ""),
    ("xmloption", "There is no type xml."),
];

/// What the planner's settings say of themselves; see `planner.rs`.
const SAYS_SO: &str = "Accepted and without effect";

/// Every setting of sessions, also those that SHOW ALL passes over, by name.
pub fn documented() -> Vec<DocumentedSetting> {
    let mut all: Vec<_> = DEFINITIONS
        .iter()
        .map(|definition| {
            let about = about(definition.name);
            let (unit, values) = range_text(definition);
            // Who a session is, only the session's own commands change.
            let context = match definition.name {
                "is_superuser" => Context::Internal,
                _ => about.context,
            };
            let is_fixed = matches!(definition.kind, Kind::Fixed);
            let fixed = match is_fixed && context != Context::Internal {
                true => "It cannot be changed.",
                false => "",
            };
            let mut without = WITHOUT_EFFECT.iter();
            let without = without.find(|known| known.0 == definition.name);
            let reason = without.map_or("", |known| known.1);
            let words = [definition.description, about.extra, fixed, reason];
            let words: Vec<_> = words
                .into_iter()
                .filter(|words| !words.is_empty())
                .collect();
            let says_so = definition.description.starts_with(SAYS_SO);
            DocumentedSetting {
                name: definition.name,
                meaning: words.join(" "),
                unit,
                default: shown(definition, definition.default),
                values,
                context: context.name(),
                is_fixed,
                has_effect: !says_so && without.is_none(),
            }
        })
        .collect();
    all.extend(without_effect::all().map(|unused| DocumentedSetting {
        name: unused.name,
        meaning: unused.meaning(),
        unit: unused.unit(),
        default: unused.shown(unused.default()),
        values: unused.range_text(),
        context: unused.context().name(),
        is_fixed: !unused.is_settable(),
        has_effect: false,
    }));
    all.sort_by_key(|one| one.name.to_ascii_lowercase());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_effect_is_a_setting_of_postgresql() {
        let all = documented();
        for (name, _) in WITHOUT_EFFECT {
            let found = all.iter().find(|one| one.name == name);
            assert!(found.is_some_and(|one| !one.has_effect), "{name}");
        }
        let ours = all.iter().filter(|one| one.name.starts_with("quorate."));
        assert!(ours.clone().count() > 3);
        for one in ours {
            assert!(one.has_effect, "{}", one.name);
        }
    }

    #[test]
    fn values_are_told_with_their_units() {
        let all = documented();
        let of = |name: &str| all.iter().find(|one| one.name == name).unwrap();
        let timeout = of("lock_timeout");
        assert_eq!(timeout.unit, Some("ms"));
        assert_eq!(timeout.values, "0 to 2147483647");
        assert_eq!(of("quorate.query_mem").default, "2GB");
        let level = of("synchronous_commit");
        assert_eq!(level.values, "local, remote_write, remote_apply, on, off");
    }
}
