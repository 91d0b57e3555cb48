//! CREATE and ALTER DOMAIN; what domains share with other types stands in [`super::user_type`].
//!
//! A new constraint is tested against the rows that are there: of every table with a column of the
//! domain, or of a domain over it, locked against writers ([`TableLock::Share`]). The domain's row is
//! locked before, and whoever makes a column of the domain holds that row, so none comes in between.
//!
//! As in PostgreSQL, errors do not say where in the statement they are.
//!
//! # What it leaves out
//! Columns of arrays over the domain are not looked at, as in PostgreSQL: with one, no constraint
//! can be added.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterDomainStmt, ConstrType, Constraint, CreateDomainStmt, DropBehavior, Node, RenameStmt,
};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::alter::about;
use super::table::{choose_name, cut_name};
use super::texts;
use catalog::{Catalog, Column, Domain, DomainCheck, Object, RelationKind, Table};
use catalog::{TypeBody, UserType};
use execution::exec::program::Evaluate;
use planner::bind;
use syntax::parser::NodeEnum;
use types::{Category, Datum, OwnKind, TypeId};

/// The domain that a type is.
fn domain_of(made: &mut UserType) -> Result<&mut Domain> {
    match &mut made.body {
        TypeBody::Domain(domain) => Ok(domain),
        _ => Err(Error::internal("no domain")),
    }
}

/// 42809.
pub(super) fn no_domain(id: TypeId) -> Error {
    let message = format!("{id} is not a domain");
    Error::new(SqlState::WRONG_OBJECT_TYPE, message)
}

/// What a column is that has the type of a domain's values, for who binds its default.
fn as_column(catalog: &Catalog, name: &str, domain: &Domain) -> Column {
    let (base, under) = catalog.base_type(domain.over);
    let is_of_domain = domain.over.is_of_domain();
    Column {
        name: name.to_owned(),
        type_id: base,
        typmod: if is_of_domain { under } else { domain.typmod },
        domain: if is_of_domain {
            domain.over
        } else {
            TypeId::NONE
        },
        ..Column::default()
    }
}

/// Whether a constraint of that name is in a schema.
fn is_named(catalog: &Catalog, schema: u32, name: &str) -> bool {
    let mut tables = catalog.tables.iter().filter(|table| table.schema == schema);
    let of_tables = tables.any(|table| {
        let mut indexes = table.indexes.iter().filter(|index| index.constraint != 0);
        indexes.any(|index| index.name == name)
            || table.checks.iter().any(|check| check.name == name)
            || table.foreign_keys.iter().any(|key| key.name == name)
    });
    let mut types = catalog
        .user_types
        .iter()
        .filter(|made| made.schema == schema);
    of_tables
        || types.any(|made| {
            let checks = made.domain().map_or(&[][..], |domain| &domain.checks);
            checks.iter().any(|check| check.name == name)
        })
}

impl Session {
    /// CREATE DOMAIN.
    pub(in crate::session) fn create_domain(
        &mut self,
        create: &CreateDomainStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let (schema, name) = self.new_type_name(&catalog, &create.domainname)?;
        let type_name = create.type_name.as_ref();
        let type_name = type_name.ok_or_else(|| Error::internal("a domain over nothing"))?;
        let search_path = self.search_path(&catalog);
        let cx = self.bind_context("", &catalog, &search_path);
        let (over, typmod) = bind::type_names::resolve(&cx, type_name)?;
        if over.category() == Category::Pseudo || over == TypeId::UNKNOWN {
            let shown = texts(&type_name.names).join(".");
            let message = format!("\"{shown}\" is not a valid base type for a domain");
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let collation = match &create.coll_clause {
            Some(clause) => {
                let (base, _) = catalog.base_type(over);
                self.given_collation("", &catalog, clause, base)?
            }
            None => 0,
        };
        self.may_use_type(&catalog, over)?;
        let id = TypeId::own(OwnKind::Domain, self.new_oid()?);
        let id = id.ok_or_else(|| Error::unsupported("a type after so many objects"))?;
        let under = catalog.domain(over).cloned().unwrap_or_default();
        let domain = Domain {
            over,
            typmod,
            collation,
            default: under.default,
            default_shown: under.default_shown,
            default_uses: under.default_uses,
            ..Domain::default()
        };
        let mut made = UserType {
            id,
            schema,
            name,
            owner: self.owner_of_new(&catalog)?,
            body: TypeBody::Domain(domain),
        };
        let mut said = (false, None);
        for node in &create.constraints {
            let Some(NodeEnum::Constraint(constraint)) = &node.node else {
                continue;
            };
            self.domain_constraint(&catalog, constraint, &mut made, &mut said)?;
        }
        self.insert_type(&catalog, &made)?;
        self.changed_catalog();
        Ok(tag("CREATE DOMAIN"))
    }

    /// One constraint of CREATE DOMAIN; `said` is whether there was a default, and what was said of
    /// NULL.
    fn domain_constraint(
        &mut self,
        catalog: &Arc<Catalog>,
        constraint: &Constraint,
        made: &mut UserType,
        said: &mut (bool, Option<bool>),
    ) -> Result<()> {
        let refused = |message: &str| Err(Error::new(SqlState::SYNTAX_ERROR, message));
        match ConstrType::try_from(constraint.contype) {
            Ok(ConstrType::ConstrDefault) => {
                if std::mem::replace(&mut said.0, true) {
                    return refused("multiple default expressions");
                }
                let default = constraint.raw_expr.as_deref();
                self.set_domain_default(catalog, made, default)
            }
            Ok(kind @ (ConstrType::ConstrNotnull | ConstrType::ConstrNull)) => {
                let wanted = kind == ConstrType::ConstrNotnull;
                if said.1.is_some_and(|said| said != wanted) {
                    return refused("conflicting NULL/NOT NULL constraints");
                }
                said.1 = Some(wanted);
                domain_of(made)?.not_null = wanted;
                Ok(())
            }
            Ok(ConstrType::ConstrCheck) => self.add_domain_check(catalog, constraint, made),
            Ok(ConstrType::ConstrUnique) => refused("unique constraints not possible for domains"),
            Ok(ConstrType::ConstrPrimary) => {
                refused("primary key constraints not possible for domains")
            }
            Ok(ConstrType::ConstrExclusion) => {
                refused("exclusion constraints not possible for domains")
            }
            Ok(ConstrType::ConstrForeign) => {
                refused("foreign key constraints not possible for domains")
            }
            Ok(
                ConstrType::ConstrAttrDeferrable
                | ConstrType::ConstrAttrNotDeferrable
                | ConstrType::ConstrAttrDeferred
                | ConstrType::ConstrAttrImmediate,
            ) => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "specifying constraint deferrability not supported for domains",
            )),
            _ => Err(Error::unsupported("this constraint of a domain")),
        }
    }

    fn set_domain_default(
        &mut self,
        catalog: &Arc<Catalog>,
        made: &mut UserType,
        default: Option<&Node>,
    ) -> Result<()> {
        let name = made.name.clone();
        let domain = domain_of(made)?;
        let Some(node) = default else {
            (domain.default, domain.default_uses) = (None, Vec::new());
            return Ok(());
        };
        self.try_binding("", catalog, |binder| {
            binder.check_domain_default(&name, domain, node)
        })?;
        // Of NULL there is nothing to keep.
        if let Some(NodeEnum::AConst(constant)) = &node.node {
            if constant.isnull {
                (domain.default, domain.default_uses) = (None, Vec::new());
                return Ok(());
            }
        }
        let column = as_column(catalog, &name, domain);
        let fixed = self.try_binding("", catalog, |binder| binder.fixed(node, &column))?;
        self.may_use_types_of(catalog, fixed.1.iter().copied())?;
        (domain.default, domain.default_uses) = (Some(fixed.0.clone()), fixed.1);
        let search_path = self.search_path(catalog);
        let cx = self.bind_context("", catalog, &search_path);
        domain.default_shown = bind::stored::domain_default(cx, domain, &fixed.0)?;
        Ok(())
    }

    fn add_domain_check(
        &mut self,
        catalog: &Arc<Catalog>,
        constraint: &Constraint,
        made: &mut UserType,
    ) -> Result<()> {
        if constraint.is_no_inherit {
            let message = "check constraints for domains cannot be marked NO INHERIT";
            return Err(Error::new(SqlState::of("42P17"), message));
        }
        let condition = constraint.raw_expr.as_ref();
        let condition = condition.ok_or_else(|| Error::internal("an empty CHECK"))?;
        let (domain_name, schema, shown) = (made.name.clone(), made.schema, made.name.clone());
        let oid = self.new_oid()?;
        let domain = domain_of(made)?;
        let so_far = domain.clone();
        let own = |name: &str| so_far.checks.iter().any(|check| check.name == name);
        let name = match constraint.conname.as_str() {
            "" => choose_name(&domain_name, "", "check", |name| {
                own(name) || is_named(catalog, schema, name)
            }),
            given => {
                let name = cut_name(given);
                if own(&name) {
                    let message =
                        format!("constraint \"{name}\" for domain \"{shown}\" already exists");
                    return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
                }
                name
            }
        };
        self.try_binding("", catalog, |binder| {
            binder.check_domain_check(&so_far, condition)
        })?;
        let (condition, named) = self.try_binding("", catalog, |binder| {
            binder.fixed_part(condition, |binder, node| {
                binder.check_domain_check(&so_far, node)
            })
        })?;
        self.may_use_types_of(catalog, named.uses().iter().map(|uses| uses.relation))?;
        domain.checks.push(DomainCheck {
            oid,
            name,
            condition,
            validated: !constraint.skip_validation,
        });
        Ok(())
    }

    /// ALTER DOMAIN, but for what every type takes.
    pub(in crate::session) fn alter_domain(
        &mut self,
        alter: &AlterDomainStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let names = texts(&alter.type_name);
        let (catalog, old) = self.altered_domain(&names)?;
        let mut new = old.clone();
        let definition = alter.def.as_deref();
        match alter.subtype.as_str() {
            "T" => self.set_domain_default(&catalog, &mut new, definition)?,
            "N" => domain_of(&mut new)?.not_null = false,
            "O" => {
                if !std::mem::replace(&mut domain_of(&mut new)?.not_null, true) {
                    self.check_domain_rows(&new, None)?;
                }
            }
            "C" => {
                let Some(NodeEnum::Constraint(constraint)) =
                    definition.and_then(|node| node.node.as_ref())
                else {
                    return Err(Error::internal("a constraint without a definition"));
                };
                self.alter_add_check(&catalog, constraint, &mut new)?;
            }
            "X" => return self.drop_domain_check(&old, alter, sink),
            "V" => {
                let missing = missing_check(&alter.name, &old.name);
                let checks = &mut domain_of(&mut new)?.checks;
                let check = checks.iter_mut().find(|check| check.name == alter.name);
                let check = check.ok_or(missing)?;
                if !std::mem::replace(&mut check.validated, true) {
                    self.check_domain_rows(&new, Some(&alter.name))?;
                }
            }
            other => return Err(Error::internal(format!("ALTER DOMAIN {other}"))),
        }
        if new != old {
            self.put_type(&catalog, &old, &new)?;
            self.changed_catalog();
        }
        Ok(tag("ALTER DOMAIN"))
    }

    fn alter_add_check(
        &mut self,
        catalog: &Arc<Catalog>,
        constraint: &Constraint,
        new: &mut UserType,
    ) -> Result<()> {
        match ConstrType::try_from(constraint.contype) {
            Ok(ConstrType::ConstrCheck) => {}
            Ok(ConstrType::ConstrNotnull) => {
                return Err(Error::unsupported("ALTER DOMAIN ADD NOT NULL"))
            }
            _ => {
                let mut said = (false, None);
                return self.domain_constraint(catalog, constraint, new, &mut said);
            }
        }
        self.add_domain_check(catalog, constraint, new)?;
        let added = domain_of(new)?.checks.last();
        match added.filter(|check| check.validated) {
            Some(check) => {
                let name = check.name.clone();
                self.check_domain_rows(new, Some(&name))
            }
            None => Ok(()),
        }
    }

    fn drop_domain_check(
        &mut self,
        old: &UserType,
        alter: &AlterDomainStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let checks = old.domain().map_or(&[][..], |domain| &domain.checks);
        let Some(check) = checks.iter().find(|check| check.name == alter.name) else {
            let missing = missing_check(&alter.name, &old.name);
            if !alter.missing_ok {
                return Err(missing);
            }
            let message = format!("{}, skipping", missing.message());
            let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
            self.notice(NoticeSeverity::Notice, body, sink)?;
            return Ok(tag("ALTER DOMAIN"));
        };
        let root = Object::Constraint(check.oid);
        let cascade = alter.behavior == DropBehavior::DropCascade as i32;
        self.drop_objects(|_| Ok(vec![root]), cascade, sink)?;
        Ok(tag("ALTER DOMAIN"))
    }

    /// A domain that is to be changed: locked, and as it is now.
    fn altered_domain(&mut self, names: &[String]) -> Result<(Arc<Catalog>, UserType)> {
        let catalog = self.current_catalog()?;
        match self.type_of_names(&catalog, names)? {
            Some(id) if id.own_kind() != Some(OwnKind::Domain) => Err(no_domain(id)),
            _ => self.altered_type(names),
        }
    }

    /// ALTER DOMAIN … RENAME CONSTRAINT.
    pub(super) fn rename_domain_check(
        &mut self,
        names: &[String],
        rename: &RenameStmt,
    ) -> Result<CommandTag> {
        let (catalog, old) = self.altered_domain(names)?;
        let mut new = old.clone();
        let checks = &mut domain_of(&mut new)?.checks;
        let refused = |state: SqlState, name: &str, what: &str| {
            let message = format!("constraint \"{name}\" for domain {} {what}", old.id);
            Err(Error::new(state, message))
        };
        let to = cut_name(&rename.newname);
        let Some(at) = checks.iter().position(|check| check.name == rename.subname) else {
            let state = SqlState::UNDEFINED_OBJECT;
            return refused(state, &rename.subname, "does not exist");
        };
        if checks.iter().any(|check| check.name == to) {
            return refused(SqlState::DUPLICATE_OBJECT, &to, "already exists");
        }
        checks[at].name = to;
        self.put_type(&catalog, &old, &new)?;
        self.changed_catalog();
        Ok(tag("ALTER DOMAIN"))
    }

    /// The check of a domain that COMMENT ON CONSTRAINT … ON DOMAIN names.
    pub(super) fn commented_domain_check(&mut self, names: &[String], check: &str) -> Result<u32> {
        let catalog = self.current_catalog()?;
        let id = self.type_of_names(&catalog, names)?;
        let missing = || {
            let message = format!("type \"{}\" does not exist", names.join("."));
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        };
        let id = id.ok_or_else(missing)?;
        let domain = catalog.domain(id).ok_or_else(|| no_domain(id))?;
        self.must_own_type(&catalog, id)?;
        let found = domain.checks.iter().find(|known| known.name == check);
        found.map(|check| check.oid).ok_or_else(|| {
            let message = format!("constraint \"{check}\" for domain {id} does not exist");
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }

    // ---- Rows that are there ----

    /// Tests the rows of all tables for a check of that name, or for NULL.
    ///
    /// # Errors
    /// 23514, 23502.
    fn check_domain_rows(&mut self, new: &UserType, check: Option<&str>) -> Result<()> {
        let domain = new.domain().ok_or_else(|| Error::internal("no domain"))?;
        let columns = self.lock_domain_columns(new.id)?;
        let catalog = self.current_catalog()?;
        let program = match check {
            None => None,
            Some(name) => {
                let found = domain.checks.iter().find(|check| check.name == name);
                let found = found.ok_or_else(|| Error::internal("a check that is not there"))?;
                Some(self.try_binding("", &catalog, |binder| {
                    binder.domain_check(domain, &found.condition)
                })?)
            }
        };
        for (table, places) in columns {
            let violated = |place: usize, state: SqlState, what: &str| {
                let column = &table.columns[place].name;
                let message = format!("column \"{column}\" of table \"{}\" {what}", table.name);
                let mut error = Error::new(state, message);
                error.fields_mut().column = Some(column.clone());
                Err(about(error, &catalog, &table))
            };
            self.for_each_row(&table, |cx, _, row| {
                for place in &places {
                    let value = std::slice::from_ref(&row[*place]);
                    match &program {
                        None if row[*place].is_null() => {
                            let state = SqlState::NOT_NULL_VIOLATION;
                            return violated(*place, state, "contains null values");
                        }
                        Some(program) if program.eval(cx, value)? == Datum::Bool(false) => {
                            let what = "contains values that violate the new constraint";
                            return violated(*place, SqlState::CHECK_VIOLATION, what);
                        }
                        None | Some(_) => {}
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The tables with columns of a domain, and the places of those, locked against writers.
    ///
    /// # Errors
    /// 0A000 for a column whose values have it in them.
    fn lock_domain_columns(&mut self, id: TypeId) -> Result<Vec<(Arc<Table>, Vec<usize>)>> {
        let mut locked = Vec::new();
        loop {
            let catalog = self.current_catalog()?;
            let found = columns_of_domain(&catalog, id)?;
            if found.iter().all(|(table, _)| locked.contains(&table.tree)) {
                return Ok(found);
            }
            for (table, _) in found {
                self.lock_mode(&table, TableLock::Share)?;
                locked.push(table.tree);
            }
            self.forget_own_catalog();
        }
    }
}

fn missing_check(check: &str, domain: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("constraint \"{check}\" of domain \"{domain}\" does not exist"),
    )
}

fn columns_of_domain(catalog: &Catalog, id: TypeId) -> Result<Vec<(Arc<Table>, Vec<usize>)>> {
    let mut found = Vec::new();
    for table in &catalog.tables {
        if !table.kind.has_rows() && table.kind != RelationKind::Partitioned {
            continue;
        }
        let mut places = Vec::new();
        for (place, column) in table.columns.iter().enumerate() {
            let (declared, _) = column.declared();
            let within = catalog.domain_within(declared, id);
            let Some(within) = within.filter(|_| !column.dropped) else {
                continue;
            };
            if within != declared {
                let message = format!(
                    "cannot alter type \"{within}\" because column \"{}.{}\" uses it",
                    table.name, column.name
                );
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            places.push(place);
        }
        if !places.is_empty() && table.kind != RelationKind::Partitioned {
            found.push((table.clone(), places));
        }
    }
    found.sort_by_key(|(table, _)| table.oid);
    Ok(found)
}
