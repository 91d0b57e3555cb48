//! What ALTER ROLE … SET and ALTER DATABASE … SET may leave for sessions that begin later.
//!
//! Who stores a setting must have the right to set it now; the session that begins with it need
//! not. Who a session may be is different: that is asked when it begins, and what is stored before
//! is only remarked upon.
//!
//! Source: PostgreSQL 15 manual, ALTER ROLE.

use base::{Error, Result, SqlState};

use super::checks::{check_context, check_custom_name, checked, denied, When};
use super::{find, without_effect, Kind, Settings, DEFINITIONS};
use catalog::access::Privileges;
use catalog::Catalog;
use types::DateStyle;

/// A setting that may be stored.
#[derive(Debug)]
pub struct Storable {
    /// Its name as it is written.
    pub name: String,
    /// What the client should know of it.
    pub notice: Option<Error>,
}

impl Settings {
    /// A setting that is to be stored with a value.
    ///
    /// # Errors
    /// 42704, 22023, 55P02, 42501.
    pub fn storable(&self, catalog: &Catalog, name: &str, value: &str) -> Result<Storable> {
        let Some(setting) = self.check_storable(catalog, name)? else {
            if let Some(unused) = without_effect::find(name) {
                unused.checked(value)?;
            }
            let (name, notice) = (name.to_owned(), None);
            return Ok(Storable { name, notice });
        };
        let definition = &DEFINITIONS[setting];
        let mut notice = None;
        match definition.kind {
            Kind::Role | Kind::SessionUser => {
                let chosen = self.grounds(catalog).chosen(definition.kind, value);
                notice = chosen.err().map(|refusal| remark(&refusal));
            }
            _ => {
                checked(definition, value, DateStyle::default())?;
            }
        }
        let name = definition.name.to_owned();
        Ok(Storable { name, notice })
    }

    /// Whether the session may store, or no longer store, a setting of that name; where it stands,
    /// if it is known.
    ///
    /// # Errors
    /// 42704, 55P02, 42501.
    pub fn check_storable(&self, catalog: &Catalog, name: &str) -> Result<Option<usize>> {
        let may = catalog.holds_parameter(self.current_role(), name, Privileges::SET);
        let Some(setting) = find(name) else {
            if let Some(unused) = without_effect::find(name) {
                unused.checked(unused.default())?;
                return match may || !unused.is_guarded() {
                    true => Ok(None),
                    false => Err(denied(name)),
                };
            }
            check_custom_name(name)?;
            // Nobody knows what it means to whoever will look at it.
            return match may {
                true => Ok(None),
                false => Err(denied(name)),
            };
        };
        check_context(&DEFINITIONS[setting], name, When::Beginning, || may)?;
        Ok(Some(setting))
    }
}

/// What will be refused, as it is said before.
fn remark(refusal: &Error) -> Error {
    let state = match refusal.state() {
        SqlState::INVALID_PARAMETER_VALUE => SqlState::UNDEFINED_OBJECT,
        state => state,
    };
    let message = refusal
        .message()
        .replace("permission denied", "permission will be denied");
    Error::new(state, message)
}
