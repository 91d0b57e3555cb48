//! Time zones.

/// A time zone: a fixed offset, or rules by IANA name.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    rules: jiff::tz::TimeZone,
}

impl Zone {
    /// UTC.
    pub fn utc() -> Zone {
        Zone {
            name: "UTC".to_owned(),
            rules: jiff::tz::TimeZone::UTC,
        }
    }

    /// What `SHOW timezone` says.
    pub fn name(&self) -> &str {
        &self.name
    }
}
