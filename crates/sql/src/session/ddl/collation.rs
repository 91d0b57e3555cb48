//! CREATE, ALTER and DROP of collations, and what a COLLATE clause of a definition names.
//!
//! ```text
//! create collation german (provider = icu, locale = 'de-u-co-phonebk')
//! a row of COLLATIONS ([`catalog::collation`]); columns and stored text name it by its oid
//! ```
//! Whoever gives something lasting a collation of a user's holds its row, and who drops it locks that row,
//! so that nothing is left under a collation that is gone.
//!
//! # What it leaves out
//! Locales of the C library (22023, as PostgreSQL says it where the system has no data for one): only its `C`,
//! `POSIX` and `C.UTF-8` are there, which order by bytes.

use std::sync::Arc;

use base::engine::RowLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterCollationStmt, AlterObjectSchemaStmt, AlterOwnerStmt, CollateClause, DefElem, DefineStmt,
    Node, RenameStmt,
};

use super::super::temporary::moved_temporary;
use super::super::utility::{option_text, tag};
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::partition::placed;
use super::texts;
use super::user_type::names_of;
use catalog::access::must_own;
use catalog::collation::{self, Provider};
use catalog::collation_store::{self, exists};
use catalog::layout::FIRST_USER_OID;
use catalog::local::is_local;
use catalog::{Catalog, Collation};
use planner::bind::collation::{named, resolve};
use syntax::parser::NodeEnum;
use types::text::parse_bool;
use types::TypeId;

/// The encoding of collations that are for that of the database alone.
const UTF8: i32 = 6;

/// What CREATE COLLATION says.
#[derive(Default)]
struct Said<'d> {
    from: Option<&'d DefElem>,
    locale: Option<&'d DefElem>,
    order: Option<&'d DefElem>,
    letters: Option<&'d DefElem>,
    provider: Option<&'d DefElem>,
    deterministic: Option<&'d DefElem>,
    version: Option<&'d DefElem>,
}

fn redundant(text: &str, option: &DefElem) -> Error {
    let error = Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
    placed(text, option.location, error)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("42P17"), message)
}

fn said<'d>(text: &str, define: &'d DefineStmt) -> Result<Said<'d>> {
    let mut said = Said::default();
    for node in &define.definition {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        let slot = match option.defname.as_str() {
            "from" => &mut said.from,
            "locale" => &mut said.locale,
            "lc_collate" => &mut said.order,
            "lc_ctype" => &mut said.letters,
            "provider" => &mut said.provider,
            "deterministic" => &mut said.deterministic,
            "version" => &mut said.version,
            other => {
                let message = format!("collation attribute \"{other}\" not recognized");
                let error = Error::new(SqlState::SYNTAX_ERROR, message);
                return Err(placed(text, option.location, error));
            }
        };
        if slot.is_some() {
            return Err(redundant(text, option));
        }
        *slot = Some(option);
    }
    if said.locale.is_some() && (said.order.is_some() || said.letters.is_some()) {
        let detail = "LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE.";
        return Err(conflicting(detail));
    }
    if said.from.is_some() && define.definition.len() != 1 {
        let detail = "FROM cannot be specified together with any other options.";
        return Err(conflicting(detail));
    }
    Ok(said)
}

fn conflicting(detail: &str) -> Error {
    let message = "conflicting or redundant options";
    Error::new(SqlState::SYNTAX_ERROR, message).with_detail(detail)
}

/// The names that an option's value is.
fn names_in(option: &DefElem) -> Vec<String> {
    match option.arg.as_ref().and_then(|arg| arg.node.as_ref()) {
        Some(NodeEnum::TypeName(name)) => texts(&name.names),
        Some(NodeEnum::List(list)) => texts(&list.items),
        Some(NodeEnum::String(name)) => vec![name.sval.clone()],
        _ => Vec::new(),
    }
}

/// 22023 for a locale of the C library that is not there.
fn check_libc(locale: &str) -> Result<()> {
    match ["C", "POSIX", "C.UTF-8", "C.utf8"].contains(&locale) {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("could not create locale \"{locale}\": No such file or directory"),
        )
        .with_detail(format!(
            "The operating system could not find any locale data for the locale name \"{locale}\"."
        ))),
    }
}

impl Said<'_> {
    /// The collation that is meant, without a name.
    fn made(&self) -> Result<Collation> {
        let text = |option: Option<&DefElem>| option.map(option_text);
        let provider = match text(self.provider).map(|name| name.to_ascii_lowercase()) {
            None => Provider::Libc,
            Some(name) => match name.as_str() {
                "icu" => Provider::Icu,
                "libc" => Provider::Libc,
                _ => {
                    let written = text(self.provider).unwrap_or_default();
                    return Err(invalid(format!(
                        "unrecognized collation provider: {written}"
                    )));
                }
            },
        };
        let deterministic = match self.deterministic {
            None => true,
            Some(option) => flag(option)?,
        };
        let locale = text(self.locale);
        let locale = match provider {
            Provider::Icu => {
                let locale = locale.ok_or_else(|| missing("locale"))?;
                (locale, String::new())
            }
            _ => {
                let order = text(self.order).or_else(|| locale.clone());
                let letters = text(self.letters).or(locale);
                (
                    order.ok_or_else(|| missing("lc_collate"))?,
                    letters.ok_or_else(|| missing("lc_ctype"))?,
                )
            }
        };
        if !deterministic && provider != Provider::Icu {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "nondeterministic collations not supported with this provider",
            ));
        }
        if provider != Provider::Icu {
            check_libc(&locale.0)?;
            check_libc(&locale.1)?;
        }
        Ok(Collation {
            oid: 0,
            schema: 0,
            name: String::new(),
            owner: 0,
            provider,
            locale,
            deterministic,
            encoding: match provider {
                Provider::Icu => -1,
                _ => UTF8,
            },
        })
    }
}

fn missing(parameter: &str) -> Error {
    invalid(format!("parameter \"{parameter}\" must be specified"))
}

/// A truth value that an option is given; nothing is true.
fn flag(option: &DefElem) -> Result<bool> {
    if option.arg.is_none() {
        return Ok(true);
    }
    parse_bool(&option_text(option)).ok_or_else(|| {
        let message = format!("{} requires a Boolean value", option.defname);
        Error::new(SqlState::SYNTAX_ERROR, message)
    })
}

/// 42710, as PostgreSQL says it of one that is for an encoding.
fn taken(collation: &Collation) -> Error {
    match collation.encoding {
        -1 => exists(&collation.name),
        _ => Error::new(
            SqlState::DUPLICATE_OBJECT,
            format!(
                "collation \"{}\" for encoding \"UTF8\" already exists",
                collation.name
            ),
        ),
    }
}

impl Session {
    /// CREATE COLLATION.
    pub(in crate::session) fn create_collation(
        &mut self,
        text: &str,
        define: &DefineStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let names = texts(&define.defnames);
        let schema = match names.as_slice() {
            [.., schema, _] => schema.as_str(),
            _ => "",
        };
        let name = super::table::cut_name(names.last().map_or("", String::as_str));
        let schema = self.creation_schema(&catalog, schema)?;
        if is_local(schema) {
            return Err(Error::unsupported("a temporary collation"));
        }
        let said = said(text, define)?;
        let made = match said.from {
            None => said.made()?,
            Some(option) => {
                let names = names_in(option);
                let known = self.collation_of_names(&catalog, &names)?.clone();
                if known.provider == Provider::Database {
                    return Err(invalid("collation \"default\" cannot be copied"));
                }
                known
            }
        };
        let made = Collation {
            oid: self.new_oid()?,
            schema,
            name,
            owner: self.owner_of_new(&catalog)?,
            ..made
        };
        made.collator()?;
        if let Some(known) = catalog.collation_named(schema, &made.name) {
            let error = match known.encoding == made.encoding {
                true => taken(known),
                false => exists(&made.name),
            };
            if !define.if_not_exists {
                return Err(error);
            }
            let message = format!("{}, skipping", error.message());
            let body = Error::new(SqlState::DUPLICATE_OBJECT, message);
            self.notice(NoticeSeverity::Notice, body, sink)?;
            return Ok(tag("CREATE COLLATION"));
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        collation_store::insert(open.txn.as_mut(), catalog.database.oid, &made)?;
        self.changed_catalog();
        Ok(tag("CREATE COLLATION"))
    }

    /// ALTER COLLATION … REFRESH VERSION. Nothing that is kept depends on the version of a collation, so that
    /// it is always the library's.
    pub(in crate::session) fn refresh_collation(
        &mut self,
        alter: &AlterCollationStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let names = texts(&alter.collname);
        let known = self.collation_of_names(&catalog, &names)?;
        if known.oid == collation::DEFAULT {
            let message = "cannot refresh version of default collation";
            let error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(
                error.with_hint("Use ALTER DATABASE ... REFRESH COLLATION VERSION instead.")
            );
        }
        self.must_own_collation(&catalog, known, &names.join("."))?;
        let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, "version has not changed");
        self.notice(NoticeSeverity::Notice, body, sink)?;
        Ok(tag("ALTER COLLATION"))
    }

    /// ALTER COLLATION … RENAME TO.
    pub(super) fn rename_collation(&mut self, rename: &RenameStmt) -> Result<CommandTag> {
        let name = super::table::cut_name(&rename.newname);
        let names = names_of(rename.object.as_deref());
        self.change_collation(&names, |_, catalog, old| {
            if let Some(known) = catalog.collation_named(old.schema, &name) {
                let schema = catalog.schema_by_oid(old.schema);
                return Err(Error::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!(
                        "{} in schema \"{}\"",
                        taken(known).message(),
                        schema.map_or("", |schema| &schema.name)
                    ),
                ));
            }
            Ok(Collation {
                name,
                ..old.clone()
            })
        })
    }

    /// ALTER COLLATION … SET SCHEMA.
    pub(super) fn move_collation(&mut self, alter: &AlterObjectSchemaStmt) -> Result<CommandTag> {
        let names = names_of(alter.object.as_deref());
        self.change_collation(&names, |session, catalog, old| {
            let schema = session.creation_schema(catalog, &alter.newschema)?;
            if is_local(schema) {
                return Err(moved_temporary());
            }
            let known = catalog.collation_named(schema, &old.name);
            if let Some(known) = known.filter(|known| known.oid != old.oid) {
                return Err(Error::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!(
                        "{} in schema \"{}\"",
                        taken(known).message(),
                        alter.newschema
                    ),
                ));
            }
            Ok(Collation {
                schema,
                ..old.clone()
            })
        })
    }

    /// ALTER COLLATION … OWNER TO.
    pub(super) fn give_collation(
        &mut self,
        alter: &AlterOwnerStmt,
        owner: u32,
    ) -> Result<CommandTag> {
        let names = names_of(alter.object.as_deref());
        self.change_collation(&names, |session, catalog, old| {
            if old.owner != owner {
                session.may_give_to(catalog, owner, old.schema)?;
            }
            Ok(Collation {
                owner,
                ..old.clone()
            })
        })
    }

    /// Makes another of a collation of a user's, which belongs to this role.
    fn change_collation(
        &mut self,
        names: &[String],
        change: impl FnOnce(&mut Session, &Arc<Catalog>, &Collation) -> Result<Collation>,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let oid = self.collation_of_names(&catalog, names)?.oid;
        self.lock_collation(&catalog, oid, RowLock::Update)?;
        let catalog = self.current_catalog()?;
        let known = catalog.collation(oid);
        let known = known.ok_or_else(|| Error::internal("tuple concurrently deleted"))?;
        self.must_own_collation(&catalog, known, &known.name)?;
        let new = change(self, &catalog, known)?;
        if oid < FIRST_USER_OID {
            return Err(Error::unsupported("another form of a built-in collation"));
        }
        self.put_collation(&catalog, known, &new)?;
        Ok(tag("ALTER COLLATION"))
    }

    /// Puts a collation in the place of what it was.
    pub(super) fn put_collation(
        &mut self,
        catalog: &Catalog,
        old: &Collation,
        new: &Collation,
    ) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        collation_store::update(open.txn.as_mut(), catalog.database.oid, old, new)?;
        self.changed_catalog();
        Ok(())
    }

    /// Locks a collation of a user's until the end of the transaction ([`collation_store::hold`]).
    pub(super) fn lock_collation(
        &mut self,
        catalog: &Catalog,
        oid: u32,
        strength: RowLock,
    ) -> Result<()> {
        let Some(open) = self.open.as_mut().filter(|_| oid >= FIRST_USER_OID) else {
            return Ok(());
        };
        collation_store::hold(open.txn.as_mut(), catalog.database.oid, oid, strength)
    }

    /// 42501 for a collation of another role, by the name that is given.
    pub(super) fn must_own_collation(
        &self,
        catalog: &Catalog,
        known: &Collation,
        name: &str,
    ) -> Result<()> {
        let role = self.shared.settings.current_role();
        match catalog.has_privileges_of(role, known.owner) {
            true => Ok(()),
            false => Err(must_own("collation", name)),
        }
    }

    /// 42501 for a collation of another role, unless its schema is this role's.
    pub(super) fn may_drop_collation(
        &self,
        catalog: &Catalog,
        known: &Collation,
        name: &str,
    ) -> Result<()> {
        let role = self.shared.settings.current_role();
        match catalog.schema_by_oid(known.schema) {
            Some(schema) if catalog.has_privileges_of(role, schema.owner) => Ok(()),
            _ => self.must_own_collation(catalog, known, name),
        }
    }

    /// The collation that names mean.
    pub(super) fn collation_of_names<'c>(
        &mut self,
        catalog: &'c Arc<Catalog>,
        names: &[String],
    ) -> Result<&'c Collation> {
        let search_path = self.search_path(catalog);
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let role = self.shared.settings.current_role();
        named((catalog, &search_path, role), &names)
    }

    /// The collation that a definition gives values of a type, which is held; 0 is the type's own.
    ///
    /// # Errors
    /// As [`resolve`], at the clause in `text`.
    pub(super) fn given_collation(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        clause: &CollateClause,
        ty: TypeId,
    ) -> Result<u32> {
        let search_path = self.search_path(catalog);
        let role = self.shared.settings.current_role();
        let oid = resolve(text, (catalog, &search_path, role), clause, ty)?;
        self.lock_collation(catalog, oid, RowLock::KeyShare)?;
        Ok(oid)
    }

    /// The same of names alone.
    pub(super) fn given_collation_named(
        &mut self,
        catalog: &Arc<Catalog>,
        names: Vec<Node>,
        ty: TypeId,
    ) -> Result<u32> {
        let clause = CollateClause {
            collname: names,
            location: -1,
            ..CollateClause::default()
        };
        self.given_collation("", catalog, &clause, ty)
    }
}
