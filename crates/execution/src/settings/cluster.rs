//! The settings of the cluster: what ALTER SYSTEM may write, and how a session follows when other
//! settings come in force.

use base::engine::Configuration;
use base::{Error, Result, SqlState};

use super::about::{about, Context};
use super::{checked, find, unknown, Change, Held, Kind, Settings, Source, DEFINITIONS};
use types::DateStyle;

/// Settings that no file and no ALTER SYSTEM may give.
const NOT_CONFIGURED: [&str; 6] = [
    "role",
    "session_authorization",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
    "is_superuser",
];

/// A setting as ALTER SYSTEM keeps it: its name, and its value if it gets one.
///
/// # Errors
/// 42704, 55P02, 22023; 0A000 for what each node is told when it starts.
pub fn configured(name: &str, value: Option<&str>) -> Result<(&'static str, Option<String>)> {
    let setting = find(name).ok_or_else(|| unknown(name))?;
    let definition = &DEFINITIONS[setting];
    let name = definition.name;
    let context = about(name).context;
    if context == Context::Internal || NOT_CONFIGURED.contains(&name) {
        let message = format!("parameter \"{name}\" cannot be changed");
        return Err(Error::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
    }
    if context == Context::Postmaster || matches!(definition.kind, Kind::Fixed) {
        let what = format!("ALTER SYSTEM of parameter \"{name}\"");
        let hint = "It is a setting of each node, given when the node is made.";
        return Err(Error::unsupported(what).with_hint(hint));
    }
    let value = value.map(|value| checked(definition, value, DateStyle::default()));
    Ok((name, value.transpose()?))
}

impl Settings {
    /// Other settings of the cluster are in force: what nobody more special has set follows them.
    pub fn load(&mut self, configuration: &Configuration) {
        for (setting, definition) in DEFINITIONS.iter().enumerate() {
            let loaded = configuration
                .values
                .get(&definition.name.to_ascii_lowercase())
                .and_then(|value| checked(definition, value, DateStyle::default()).ok());
            let value = &self.values[setting];
            let new = match loaded {
                Some(text) => Held::new(&text, Source::Configuration),
                None => value.boot.clone(),
            };
            let follows = |held: &Held| held.source <= Source::Configuration;
            if !follows(&value.start) {
                continue;
            }
            let value = &mut self.values[setting];
            let changes = follows(&value.current) && value.current.text != new.text;
            let held = [&mut value.start, &mut value.session, &mut value.current];
            let journal = self.journal.iter_mut();
            let journal = journal.filter_map(|change| match change {
                Change::Listed {
                    setting: changed,
                    session,
                    current,
                } if *changed == setting => Some([session, current]),
                _ => None,
            });
            let journal = journal.flatten();
            let held = held.into_iter().chain(journal);
            held.filter(|held| follows(held))
                .for_each(|held| held.clone_from(&new));
            if changes {
                self.touched(setting);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Asker;
    use super::*;
    use catalog::Catalog;

    fn configuration(values: &[(&str, &str)]) -> Configuration {
        let values = values.iter();
        let values = values.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Configuration {
            values: values.collect(),
            ..Configuration::default()
        }
    }

    fn shown(settings: &Settings, name: &str) -> String {
        settings.show(name).unwrap().1
    }

    #[test]
    fn what_is_more_special_than_the_cluster_stays() {
        let mut settings = Settings::of_nobody();
        settings
            .begin_with(
                Asker::Stored(&Catalog::none(), Source::Role),
                "lock_timeout",
                "7s",
            )
            .unwrap();
        settings.set(None, "work_mem", Some("5MB"), false).unwrap();
        settings.end_transaction();
        settings
            .set(None, "statement_timeout", Some("1s"), true)
            .unwrap();
        settings.load(&configuration(&[
            ("lock_timeout", "1000ms"),
            ("work_mem", "9MB"),
            ("statement_timeout", "2000ms"),
            ("timezone", "Europe/Berlin"),
        ]));
        assert_eq!(shown(&settings, "lock_timeout"), "7s");
        assert_eq!(shown(&settings, "TimeZone"), "Europe/Berlin");
        assert_eq!(shown(&settings, "work_mem"), "5MB");
        settings.set(None, "work_mem", None, false).unwrap();
        assert_eq!(shown(&settings, "work_mem"), "9MB", "RESET goes back to it");
        assert_eq!(shown(&settings, "statement_timeout"), "1s");
        settings.end_transaction();
        assert_eq!(
            shown(&settings, "statement_timeout"),
            "2s",
            "SET LOCAL ends"
        );
        settings.load(&configuration(&[]));
        assert_eq!(shown(&settings, "statement_timeout"), "0");
        assert_eq!(shown(&settings, "TimeZone"), "UTC");
    }

    #[test]
    fn what_a_node_says_is_what_the_cluster_says_instead_of() {
        let mut settings = Settings::of_nobody();
        let node = Asker::Configuration;
        settings.begin_with(node, "work_mem", "6MB").unwrap();
        settings.load(&configuration(&[("work_mem", "7MB")]));
        assert_eq!(shown(&settings, "work_mem"), "7MB");
        settings.load(&configuration(&[]));
        assert_eq!(shown(&settings, "work_mem"), "6MB");
    }

    #[test]
    fn some_settings_are_not_the_clusters() {
        for (name, state) in [
            ("nonsense", SqlState::UNDEFINED_OBJECT),
            ("a.b", SqlState::UNDEFINED_OBJECT),
            ("role", SqlState::CANT_CHANGE_RUNTIME_PARAM),
            ("server_version", SqlState::CANT_CHANGE_RUNTIME_PARAM),
            ("max_connections", SqlState::FEATURE_NOT_SUPPORTED),
        ] {
            assert_eq!(
                configured(name, Some("1")).unwrap_err().state(),
                state,
                "{name}"
            );
        }
        let (name, value) = configured("Work_Mem", Some("5MB")).unwrap();
        assert_eq!((name, value.as_deref()), ("work_mem", Some("5120kB")));
    }
}
