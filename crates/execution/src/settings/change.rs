//! Changes of settings: the one way in which a setting gets another value, whoever asks.
//!
//! SET, SET LOCAL, RESET, `set_config`, the startup message, ALTER ROLE and ALTER DATABASE and the
//! node's configuration all come here, and each must say who asks ([`Asker`]). What follows from
//! that is decided here and nowhere else:
//!
//! | who asks | what it may change |
//! |---|---|
//! | the node's configuration | everything but who a session is |
//! | ALTER ROLE and ALTER DATABASE, when a session begins | what could be stored |
//! | a client's startup message | by its role: superusers more than others |
//! | a statement | by the current role, and nothing that is fixed when a session begins |
//!
//! The values of `role` and `session_authorization` are checked in [`super::identity`].
//!
//! Settings of other software's namespaces (`a.b`) are texts that nobody looks at.

use base::{Error, Result, SqlState};

use super::about::about;
use super::checks::{
    check_context, check_custom_name, checked, denied, too_late, unchangeable, When,
};
use super::identity::{Grounds, NONE};
use super::without_effect::{self, Unused};
use super::{find, Change, Held, Kind, Settings, Source, DEFINITIONS};
use catalog::access::Privileges;
use catalog::Catalog;

/// Who asks for a change of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Asker<'c> {
    /// The node's configuration.
    Configuration,
    /// What ALTER ROLE and ALTER DATABASE have left for sessions that begin. Who stored it had the
    /// right to, but who a session may be is a matter of now.
    Stored(&'c Catalog, Source),
    /// The client, in its startup message.
    Client(&'c Catalog),
    /// A statement of the session. Without a catalog nobody is known to be a superuser, nor to be
    /// any other role: enough for the settings that everybody may change, and for RESET ROLE.
    Statement(Option<&'c Catalog>),
}

impl<'c> Asker<'c> {
    fn source(self) -> Source {
        match self {
            Asker::Configuration => Source::Configuration,
            Asker::Stored(_, source) => source,
            Asker::Client(_) => Source::Client,
            Asker::Statement(_) => Source::Session,
        }
    }

    fn when(self) -> When {
        match self {
            Asker::Configuration => When::Configured,
            Asker::Stored(..) | Asker::Client(_) => When::Beginning,
            Asker::Statement(_) => When::Running,
        }
    }

    fn catalog(self) -> Option<&'c Catalog> {
        match self {
            Asker::Configuration | Asker::Statement(None) => None,
            Asker::Stored(catalog, _) | Asker::Client(catalog) => Some(catalog),
            Asker::Statement(Some(catalog)) => Some(catalog),
        }
    }
}

/// Whether a statement that changes a setting of that name must show its catalog.
pub fn is_guarded(name: &str) -> bool {
    find(name).is_some_and(|setting| {
        let definition = &DEFINITIONS[setting];
        matches!(definition.kind, Kind::Role | Kind::SessionUser)
            || about(definition.name).context.rule().superuser
    }) || without_effect::find(name).is_some_and(Unused::is_guarded)
}

impl Settings {
    /// Changes a setting as a statement asks; no value resets it.
    ///
    /// # Errors
    /// 42704, 22023, 55P02; 42501, also for who the session is while it acts as the owner of something.
    pub fn set(
        &mut self,
        catalog: Option<&Catalog>,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<()> {
        let Some(setting) = find(name) else {
            if let Some(unused) = without_effect::find(name) {
                let value = self.accepted_unused(Asker::Statement(catalog), unused, value)?;
                self.change_custom(unused.name, value.as_deref(), local);
                return Ok(());
            }
            return self.set_custom(name, value, local);
        };
        let asker = Asker::Statement(catalog);
        let kind = DEFINITIONS[setting].kind;
        if self.is_acting() && matches!(kind, Kind::Role | Kind::SessionUser) {
            self.check_unrestricted(&format!("set parameter \"{name}\""))?;
            let message =
                format!("cannot set parameter \"{name}\" within security-definer function");
            return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        let held = self.accepted(asker, setting, name, value)?;
        if matches!(kind, Kind::FollowerReads) {
            let is_off = |text: &str| text == "off";
            if is_off(&held.text) != is_off(&self.values[setting].current.text) {
                return Err(too_late(name));
            }
        }
        self.assign(setting, held, local);
        // Whoever the session is now has chosen no role yet.
        if let (Kind::SessionUser, Some(role)) = (kind, find("role")) {
            let held = match value {
                Some(_) => Held::new(NONE, asker.source()),
                None => self.values[role].start.clone(),
            };
            self.assign(role, held, local);
        }
        Ok(())
    }

    /// Makes a value the one that the session begins with, unless it has one from a source that
    /// counts for more.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn begin_with(&mut self, asker: Asker<'_>, name: &str, value: &str) -> Result<()> {
        let Some(setting) = find(name) else {
            let unused = without_effect::find(name);
            let (name, value) = match unused {
                Some(unused) => (
                    unused.name,
                    self.accepted_unused(asker, unused, Some(value))?,
                ),
                None => (name, Some(value.to_owned())),
            };
            let value = value.unwrap_or_default();
            if unused.is_none() {
                check_custom_name(name)?;
            }
            let custom = self.custom_named(name);
            custom.start.clone_from(&value);
            custom.session.clone_from(&value);
            custom.current = value;
            self.generation += 1;
            return Ok(());
        };
        let held = self.accepted(asker, setting, name, Some(value))?;
        if self.values[setting].start.source > held.source {
            return Ok(());
        }
        self.assign(setting, held, false);
        let value = &mut self.values[setting];
        value.start = value.current.clone();
        if value.start.source <= Source::Configuration {
            value.boot = value.current.clone();
        }
        self.journal.clear();
        Ok(())
    }

    /// What a setting is to hold, if whoever asks may change it and the value is one of its values.
    fn accepted(
        &self,
        asker: Asker<'_>,
        setting: usize,
        name: &str,
        value: Option<&str>,
    ) -> Result<Held> {
        let definition = &DEFINITIONS[setting];
        check_context(definition, name, asker.when(), || self.may_set(asker, name))?;
        let Some(value) = value else {
            return Ok(self.values[setting].start.clone());
        };
        let source = asker.source();
        if !matches!(definition.kind, Kind::Role | Kind::SessionUser) {
            let text = checked(definition, value, self.parsed.date_style)?;
            return Ok(Held::new(&text, source));
        }
        let catalog = asker.catalog().ok_or_else(|| unchangeable(name))?;
        let chosen = self.grounds(catalog).chosen(definition.kind, value)?;
        Ok(Held::acting_as(chosen, source))
    }

    /// On what grounds this session may act as others.
    pub(super) fn grounds<'s>(&'s self, catalog: &'s Catalog) -> Grounds<'s> {
        Grounds {
            catalog,
            authenticated: &self.authenticated,
            session_user: &self.parsed.session_user,
        }
    }

    /// Whether what only superusers set is asked for by one, or by whoever was given that.
    fn may_set(&self, asker: Asker<'_>, name: &str) -> bool {
        match asker {
            Asker::Configuration | Asker::Stored(..) => true,
            Asker::Client(catalog) | Asker::Statement(Some(catalog)) => {
                catalog.holds_parameter(self.current_role(), name, Privileges::SET)
            }
            Asker::Statement(None) => false,
        }
    }

    /// Resets everything that a session may set, but for who it is.
    pub fn reset_all(&mut self) {
        for (setting, definition) in DEFINITIONS.iter().enumerate() {
            let value = &self.values[setting];
            let kept = definition.name.starts_with("transaction_")
                || matches!(definition.kind, Kind::Role | Kind::SessionUser);
            // What a superuser has set, anybody takes back, as in PostgreSQL.
            let may = about(definition.name).context.rule().running;
            if value.current != value.start && !kept && may {
                let start = value.start.clone();
                self.assign(setting, start, false);
            }
        }
        for custom in &mut self.custom {
            let before = custom.clone();
            custom.current.clone_from(&custom.start);
            custom.session.clone_from(&custom.start);
            self.journal.push(Change::Custom(before));
        }
        self.generation += 1;
    }

    /// The value of a setting without effect, if whoever asks may set it so; none resets it.
    fn accepted_unused(
        &self,
        asker: Asker<'_>,
        unused: &'static Unused,
        value: Option<&str>,
    ) -> Result<Option<String>> {
        let may = || self.may_set(asker, unused.name);
        if unused.is_settable() && unused.is_guarded() && !may() {
            return Err(denied(unused.name));
        }
        value.map_or_else(
            || unused.checked(unused.default()).map(|_| None),
            |value| unused.checked(value).map(Some),
        )
    }

    fn set_custom(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        check_custom_name(name)?;
        self.change_custom(name, value, local);
        Ok(())
    }

    fn change_custom(&mut self, name: &str, value: Option<&str>, local: bool) {
        let custom = self.custom_named(name);
        let before = custom.clone();
        custom.current = value.map_or_else(|| custom.start.clone(), str::to_owned);
        if !local {
            custom.session.clone_from(&custom.current);
        }
        self.journal.push(Change::Custom(before));
        self.generation += 1;
    }
}
