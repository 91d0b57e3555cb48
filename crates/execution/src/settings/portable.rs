//! The settings of a session as another node takes them over.
//!
//! What defaults and the cluster's configuration say is the same there; what is more special
//! (of a role, of the client, of SET) travels. An open transaction's changes do not: it is lost.
//!
//! # Who the session is
//! travels as oids: a name may have become another's. The node that takes over has looked the
//! client's role up by name, so that must have been the same role; and what SET ROLE and SET
//! SESSION AUTHORIZATION chose is checked again, against the catalog as it is now, which ends the
//! session of one who may no longer be who it was. What RESET goes back to is found anew, too.

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::Configuration;
use base::{Error, ErrorClass, Result, SqlState};

use super::{find, Change, Held, Identity, Kind, Settings, Source, DEFINITIONS};
use catalog::Catalog;

impl Source {
    fn from_code(code: u8) -> Result<Source> {
        let known = Source::ALL.iter().find(|source| **source as u8 == code);
        known
            .copied()
            .ok_or_else(|| Error::corrupted(format!("a setting from source {code}")))
    }
}

fn put_held(out: &mut Vec<u8>, held: &Held) {
    out.push(held.source as u8);
    put_bytes(out, held.text.as_bytes());
}

fn read_held(reader: &mut Reader<'_>) -> Result<Held> {
    let source = Source::from_code(reader.u8()?)?;
    Ok(Held::new(reader.str()?, source))
}

/// 28000 for a role that is another than the one that the client had logged in as.
fn is_another() -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::INVALID_AUTHORIZATION,
        "the role of the session is no longer the one that it began with",
    )
}

/// The settings by which a session acts as a role, the one that the other rests on first.
fn acting() -> impl Iterator<Item = (Kind, usize)> {
    ["session_authorization", "role"]
        .into_iter()
        .filter_map(find)
        .map(|setting| (DEFINITIONS[setting].kind, setting))
}

impl Settings {
    /// Appends the settings as they would be if the open transaction were rolled back.
    pub fn pack(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.authenticated.oid()));
        for (_, setting) in acting() {
            let held = self.after_rollback(setting);
            let role = held.acts_as.as_ref();
            out.push(held.source as u8);
            put_bytes(out, held.text.as_bytes());
            put_varint(out, u64::from(role.map_or(0, Identity::oid)));
        }
        let mut packed: Vec<(usize, &Held, &Held)> = Vec::new();
        for (setting, value) in self.values.iter().enumerate() {
            let definition = &DEFINITIONS[setting];
            let session = self.after_rollback(setting);
            let is_plain =
                |held: &Held| held.source <= Source::Configuration && *held == value.boot;
            let is_fixed = matches!(definition.kind, Kind::Fixed);
            let is_of_transaction = definition.name.starts_with("transaction_");
            let is_default = is_plain(&value.start) && is_plain(session);
            let is_who = matches!(definition.kind, Kind::Role | Kind::SessionUser);
            if !(is_fixed || is_of_transaction || is_default || is_who) {
                packed.push((setting, &value.start, session));
            }
        }
        put_varint(out, packed.len() as u64);
        for (setting, start, session) in packed {
            put_bytes(out, DEFINITIONS[setting].name.as_bytes());
            put_held(out, start);
            put_held(out, session);
        }
        put_varint(out, self.custom.len() as u64);
        for custom in &self.custom {
            let is_it = |change: &&Change| matches!(change, Change::Custom(before) if before.name == custom.name);
            let value = match self.journal.iter().find(is_it) {
                Some(Change::Custom(before)) => &before.session,
                _ => &custom.session,
            };
            put_bytes(out, custom.name.as_bytes());
            put_bytes(out, value.as_bytes());
        }
    }

    /// The value for the session if the open transaction were rolled back.
    fn after_rollback(&self, setting: usize) -> &Held {
        match self.journal.iter().find(|change| change.is_of(setting)) {
            Some(Change::Listed { session, .. }) => session,
            _ => &self.values[setting].session,
        }
    }

    /// Takes over who the session has become.
    fn unpack_roles(&mut self, reader: &mut Reader<'_>, catalog: &Catalog) -> Result<()> {
        let authenticated: u32 = reader.varint_as()?;
        if authenticated != self.authenticated.oid() {
            return Err(is_another());
        }
        for (kind, setting) in acting() {
            let source = Source::from_code(reader.u8()?)?;
            let name = reader.str()?;
            let oid: u32 = reader.varint_as()?;
            let chosen = self.grounds(catalog).again(kind, oid, name)?;
            let held = Held::acting_as(chosen, source);
            let value = &mut self.values[setting];
            value.current = held.clone();
            value.session = held;
            self.parse();
        }
        Ok(())
    }

    /// Takes over what [`Settings::pack`] appended.
    ///
    /// # Errors
    /// XX001 when it is something else; 28000, 22023 and 42501 when the session may no longer be who
    /// it was.
    pub fn unpack(
        &mut self,
        reader: &mut Reader<'_>,
        configuration: &Configuration,
        catalog: &Catalog,
    ) -> Result<()> {
        self.unpack_roles(reader, catalog)?;
        for (definition, value) in DEFINITIONS.iter().zip(&mut self.values) {
            let is_who = matches!(definition.kind, Kind::Role | Kind::SessionUser);
            if is_who {
                continue;
            }
            if value.start.source > Source::Configuration && value.start.source != Source::Override
            {
                value.start = value.boot.clone();
                value.session = value.boot.clone();
                value.current = value.boot.clone();
            }
        }
        let count: usize = reader.varint_as()?;
        for _ in 0..count {
            let setting = find(reader.str()?);
            let (start, session) = (read_held(reader)?, read_held(reader)?);
            // One that this version does not know keeps nobody out.
            let Some(setting) = setting else { continue };
            // Whoever sends them; who a session is stands above.
            let kind = DEFINITIONS[setting].kind;
            if matches!(kind, Kind::Role | Kind::SessionUser | Kind::Fixed) {
                continue;
            }
            let value = &mut self.values[setting];
            value.start = start;
            value.current = session.clone();
            value.session = session;
        }
        let count: usize = reader.varint_as()?;
        for custom in &mut self.custom {
            custom.session.clear();
            custom.current.clear();
        }
        for _ in 0..count {
            let name = reader.str()?.to_owned();
            let value = reader.str()?;
            let custom = self.custom_named(&name);
            custom.session = value.to_owned();
            custom.current = value.to_owned();
        }
        self.journal.clear();
        self.load(configuration);
        self.generation += 1;
        self.parse();
        self.parse_log();
        self.show_superuser();
        self.changed.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Asker;
    use super::*;

    #[test]
    fn settings_travel_without_the_open_transaction() {
        let mut settings = Settings::of_nobody();
        settings
            .begin_with(Asker::Client(&Catalog::none()), "application_name", "app")
            .unwrap();
        settings
            .set(None, "lock_timeout", Some("5s"), false)
            .unwrap();
        settings.set(None, "a.b", Some("c"), false).unwrap();
        settings.end_transaction();
        settings
            .set(None, "lock_timeout", Some("7s"), false)
            .unwrap();
        settings
            .set(None, "TimeZone", Some("Asia/Tokyo"), true)
            .unwrap();
        let mut packed = Vec::new();
        settings.pack(&mut packed);

        let mut other = Settings::of_nobody();
        let stored = Catalog::none();
        let stored = Asker::Stored(&stored, Source::Role);
        other.begin_with(stored, "work_mem", "8MB").unwrap();
        let mut reader = Reader::new(&packed);
        other
            .unpack(&mut reader, &Configuration::default(), &Catalog::none())
            .unwrap();
        reader.finish().unwrap();
        let shown = |name: &str| other.show(name).unwrap().1;
        assert_eq!(shown("lock_timeout"), "5s");
        assert_eq!(shown("a.b"), "c");
        assert_eq!(shown("TimeZone"), "UTC");
        assert_eq!(shown("application_name"), "app");
        assert_eq!(shown("work_mem"), "4MB");
        other.set(None, "application_name", None, false).unwrap();
        assert_eq!(other.show("application_name").unwrap().1, "app");
        other.set(None, "lock_timeout", None, false).unwrap();
        assert_eq!(other.show("lock_timeout").unwrap().1, "0");
    }
}
