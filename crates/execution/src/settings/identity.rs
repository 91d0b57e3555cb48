//! Who a session acts as: the one place where `role` and `session_authorization` are checked.
//!
//! A session knows three roles, and what it may do follows from the last:
//!
//! ```text
//! authenticated         the role that connected; never another
//! session_authorization what SET SESSION AUTHORIZATION chose; at first the authenticated role
//! role                  what SET ROLE chose; without that, the session's user
//! ```
//!
//! # Invariants
//! - An [`Identity`] is made by the functions here only, each of which asks the catalog. A setting
//!   whose value is a role holds one beside its text, and only that counts: a text alone makes
//!   nobody of anybody.
//! - An identity is an oid. A role that is renamed stays who it is; the name of one that is gone,
//!   given to another, gives its sessions nothing.
//! - Whether a role is a superuser is asked of the catalog whenever it matters: one that no longer
//!   is becomes nobody else, where PostgreSQL goes by what it was when it connected. What an
//!   identity knows of that is what `is_superuser` shows.
//!
//! # What it leaves out
//! A role that was set is not taken back when the membership that allowed it is revoked, nor in
//! PostgreSQL.
//!
//! Source: PostgreSQL 15 manual, SET ROLE and SET SESSION AUTHORIZATION.

use base::{Error, Result, SqlState};

use super::Kind;
use catalog::{Catalog, Role};

/// The value of `role` that is no role.
pub(super) const NONE: &str = "none";

/// A role that a session may act as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    oid: u32,
    /// As it was called when it was chosen.
    name: String,
    /// What `is_superuser` shows of it.
    superuser: bool,
}

impl Identity {
    /// Nobody, who has no privilege but those of everybody.
    pub(super) fn nobody() -> Identity {
        Identity {
            oid: 0,
            name: String::new(),
            superuser: false,
        }
    }

    /// The role that has logged in.
    pub(super) fn logged_in(role: &Role) -> Identity {
        Identity::of(role)
    }

    fn of(role: &Role) -> Identity {
        Identity {
            oid: role.oid,
            name: role.name.clone(),
            superuser: role.superuser,
        }
    }

    /// Its oid; 0 is nobody's.
    pub fn oid(&self) -> u32 {
        self.oid
    }

    /// As it was called when it was chosen.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What `is_superuser` shows of it.
    pub(super) fn was_superuser(&self) -> bool {
        self.superuser
    }
}

/// On what grounds a session may act as another role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grounds<'s> {
    pub catalog: &'s Catalog,
    pub authenticated: &'s Identity,
    pub session_user: &'s Identity,
}

impl Grounds<'_> {
    /// The role that a value of such a setting means; none is the session's user.
    ///
    /// # Errors
    /// 22023 for a role that is not there, 42501 for one that this session may not act as.
    pub(super) fn chosen(self, kind: Kind, value: &str) -> Result<Option<Identity>> {
        if matches!(kind, Kind::Role) && value == NONE {
            return Ok(None);
        }
        let role = self.catalog.role(value);
        self.allowed(kind, role.ok_or_else(|| missing(value))?)
            .map(Some)
    }

    /// As [`Grounds::chosen`], of the oid that another node names.
    ///
    /// # Errors
    /// As [`Grounds::chosen`].
    pub(super) fn again(self, kind: Kind, oid: u32, name: &str) -> Result<Option<Identity>> {
        match kind {
            Kind::Role if oid == 0 => return Ok(None),
            Kind::SessionUser if oid == self.authenticated.oid => {
                return Ok(Some(self.authenticated.clone()))
            }
            _ => {}
        }
        let role = self.catalog.role_by_oid(oid);
        self.allowed(kind, role.ok_or_else(|| missing(name))?)
            .map(Some)
    }

    fn allowed(self, kind: Kind, role: &Role) -> Result<Identity> {
        let (may, message) = match kind {
            Kind::SessionUser => {
                // Who connected may change who the session is, whoever it is now.
                let authenticated = self.authenticated.oid;
                let may = role.oid == authenticated || self.catalog.is_superuser(authenticated);
                let message = format!(
                    "permission denied to set session authorization \"{}\"",
                    role.name
                );
                (may, message)
            }
            _ => {
                let may = self.catalog.is_member(self.session_user.oid, role.oid);
                let message = format!("permission denied to set role \"{}\"", role.name);
                (may, message)
            }
        };
        match may {
            true => Ok(Identity::of(role)),
            false => Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)),
        }
    }
}

fn missing(name: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("role \"{name}\" does not exist"),
    )
}

#[cfg(test)]
mod tests {
    use base::codec::Reader;
    use base::engine::{CatalogVersion, Configuration};
    use base::{Debt, Lsn};

    use super::super::{Asker, Settings, Source};
    use super::*;
    use catalog::access::Membership;
    use catalog::cluster::Cluster;
    use catalog::Database;

    const ANN: u32 = 20_001;
    const STAFF: u32 = 20_002;
    const BOSS: u32 = 20_003;

    /// A catalog of three roles with these names; ann is a member of staff, if she is.
    fn catalog(names: [&str; 3], member: bool) -> Catalog {
        let roles = [ANN, STAFF, BOSS].into_iter().zip(names);
        let roles = roles.map(|(oid, name)| Role {
            oid,
            name: name.to_owned(),
            superuser: oid == BOSS,
            ..Role::default()
        });
        let membership = Membership {
            role: STAFF,
            member: ANN,
            grantor: BOSS,
            admin: false,
        };
        let cluster = Cluster {
            roles: roles.collect(),
            members: member.then_some(membership).into_iter().collect(),
            ..Cluster::default()
        };
        let version = CatalogVersion {
            generation: 0,
            lsn: Lsn(1),
        };
        let database = Database::default();
        Catalog::new(version, Debt::NONE, database, vec![], vec![], cluster)
    }

    fn usual() -> Catalog {
        catalog(["ann", "staff", "boss"], true)
    }

    fn session_of(catalog: &Catalog, oid: u32) -> Settings {
        Settings::new(catalog.role_by_oid(oid).unwrap())
    }

    fn handed_over(from: &Settings, to: &Catalog) -> Result<Settings> {
        let mut packed = Vec::new();
        from.pack(&mut packed);
        let user = from.show("session_authorization").unwrap().1;
        let role = to.role(&user).or_else(|| to.role_by_oid(ANN)).unwrap();
        let mut settings = Settings::new(role);
        let mut reader = Reader::new(&packed);
        settings.unpack(&mut reader, &Configuration::default(), to)?;
        reader.finish()?;
        Ok(settings)
    }

    #[test]
    fn no_spelling_and_no_way_makes_one_another() {
        let catalog = usual();
        let mut settings = session_of(&catalog, ANN);
        for name in [
            "role",
            "ROLE",
            "Role",
            "session_authorization",
            "SESSION_AUTHORIZATION",
        ] {
            for local in [false, true] {
                let refused = settings.set(Some(&catalog), name, Some("boss"), local);
                let state = refused.unwrap_err().state();
                assert_eq!(state, SqlState::INSUFFICIENT_PRIVILEGE, "{name}");
                let blind = settings.set(None, name, Some("ann"), local);
                let state = blind.unwrap_err().state();
                assert_eq!(state, SqlState::CANT_CHANGE_RUNTIME_PARAM, "{name}");
            }
            for asker in [
                Asker::Client(&catalog),
                Asker::Stored(&catalog, Source::Global),
                Asker::Configuration,
            ] {
                assert!(settings.begin_with(asker, name, "boss").is_err(), "{name}");
            }
        }
        assert_eq!(settings.current_role(), ANN);
        assert_eq!(settings.session_role(), ANN);
        settings
            .set(Some(&catalog), "ROLE", Some("staff"), false)
            .unwrap();
        assert_eq!(settings.current_role(), STAFF);
        settings.roll_back_to(0);
        assert_eq!(settings.current_role(), ANN);
    }

    #[test]
    fn a_role_is_who_it_was_under_another_name() {
        let before = usual();
        let mut settings = session_of(&before, ANN);
        let set = settings.set(Some(&before), "role", Some("staff"), false);
        set.unwrap();
        settings.end_transaction();
        let renamed = catalog(["ann", "boss", "staff"], true);
        let after = handed_over(&settings, &renamed).unwrap();
        assert_eq!(after.current_role(), STAFF);
        // The client's name is another role's now.
        let swapped = catalog(["boss", "staff", "ann"], true);
        let state = handed_over(&settings, &swapped).unwrap_err().state();
        assert_eq!(state, SqlState::INVALID_AUTHORIZATION);
        let revoked = catalog(["ann", "staff", "boss"], false);
        let state = handed_over(&settings, &revoked).unwrap_err().state();
        assert_eq!(state, SqlState::INSUFFICIENT_PRIVILEGE);
    }

    #[test]
    fn superusers_settings_are_that() {
        let catalog = usual();
        let mut settings = session_of(&catalog, ANN);
        let denied = |outcome: Result<()>| {
            let state = outcome.unwrap_err().state();
            assert_eq!(state, SqlState::INSUFFICIENT_PRIVILEGE);
        };
        let name = "Deadlock_Timeout";
        denied(settings.set(Some(&catalog), name, Some("2s"), true));
        denied(settings.set(Some(&catalog), name, None, true));
        denied(settings.set(None, name, Some("2s"), true));
        denied(settings.begin_with(Asker::Client(&catalog), name, "2s"));
        denied(settings.storable(&catalog, name, "2s").map(drop));
        denied(settings.storable(&catalog, "a.b", "2s").map(drop));
        let stored = Asker::Stored(&catalog, Source::Role);
        settings.begin_with(stored, name, "2s").unwrap();
        assert_eq!(settings.show(name).unwrap().1, "2s");
        let mut boss = session_of(&catalog, BOSS);
        boss.set(Some(&catalog), name, Some("2s"), false).unwrap();
        boss.set(Some(&catalog), "role", Some("ann"), false)
            .unwrap();
        denied(boss.set(Some(&catalog), name, Some("3s"), false));
        assert_eq!(boss.show("is_superuser").unwrap().1, "off");
        boss.set(None, "role", None, false).unwrap();
        assert_eq!(boss.show("is_superuser").unwrap().1, "on");
    }
}
