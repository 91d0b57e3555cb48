//! The settings of a session as another node takes them over.
//!
//! What defaults and the cluster's configuration say is the same there; what is more special
//! (of a role, of the client, of SET) travels. An open transaction's changes do not: it is lost.

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::Configuration;
use base::{Error, Result};

use super::{find, Held, Kind, Settings, Source, DEFINITIONS};

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

impl Settings {
    /// Appends the settings as they would be if the open transaction were rolled back.
    pub fn pack(&self, out: &mut Vec<u8>) {
        let mut packed: Vec<(usize, &Held, &Held)> = Vec::new();
        for (setting, value) in self.values.iter().enumerate() {
            let definition = &DEFINITIONS[setting];
            let before = self.journal.iter().find(|change| change.setting == setting);
            let session = before.map_or(&value.session, |change| &change.session);
            let is_plain =
                |held: &Held| held.source <= Source::Configuration && *held == value.boot;
            let is_fixed = matches!(definition.kind, Kind::Fixed);
            let is_of_transaction = definition.name.starts_with("transaction_");
            let is_default = is_plain(&value.start) && is_plain(session);
            if !(is_fixed || is_of_transaction || is_default) {
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
        for (name, value) in &self.custom {
            put_bytes(out, name.as_bytes());
            put_bytes(out, value.as_bytes());
        }
    }

    /// Takes over what [`Settings::pack`] appended.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn unpack(&mut self, reader: &mut Reader<'_>, configuration: &Configuration) -> Result<()> {
        for value in &mut self.values {
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
            let value = &mut self.values[setting];
            value.start = start;
            value.current = session.clone();
            value.session = session;
        }
        let count: usize = reader.varint_as()?;
        self.custom.clear();
        for _ in 0..count {
            let name = reader.str()?.to_owned();
            self.custom.push((name, reader.str()?.to_owned()));
        }
        self.journal.clear();
        self.load(configuration);
        self.generation += 1;
        self.parse();
        self.changed.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_travel_without_the_open_transaction() {
        let mut settings = Settings::new("u");
        settings
            .set_start("application_name", "app", Source::Client)
            .unwrap();
        settings.set("lock_timeout", Some("5s"), false).unwrap();
        settings.set("a.b", Some("c"), false).unwrap();
        settings.end_transaction();
        settings.set("lock_timeout", Some("7s"), false).unwrap();
        settings.set("TimeZone", Some("Asia/Tokyo"), true).unwrap();
        let mut packed = Vec::new();
        settings.pack(&mut packed);

        let mut other = Settings::new("u");
        other.set_start("work_mem", "8MB", Source::Role).unwrap();
        let mut reader = Reader::new(&packed);
        other
            .unpack(&mut reader, &Configuration::default())
            .unwrap();
        reader.finish().unwrap();
        let shown = |name: &str| other.show(name).unwrap().1;
        assert_eq!(shown("lock_timeout"), "5s");
        assert_eq!(shown("a.b"), "c");
        assert_eq!(shown("TimeZone"), "UTC");
        assert_eq!(shown("application_name"), "app");
        assert_eq!(shown("work_mem"), "4MB");
        other.set("application_name", None, false).unwrap();
        assert_eq!(other.show("application_name").unwrap().1, "app");
        other.set("lock_timeout", None, false).unwrap();
        assert_eq!(other.show("lock_timeout").unwrap().1, "0");
    }
}
