//! CREATE SCHEMA, with what it may hold from the start.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{CreateSchemaStmt, RangeVar, RoleSpecType};

use super::super::statements::about;
use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::table::cut_name;
use catalog::access::{denied, Guarded, Privileges};
use catalog::{store, Catalog, Schema};
use syntax::parser::NodeEnum;

/// 42939 for a name that is the system's own.
pub(super) fn check_schema_name(name: &str) -> Result<()> {
    if !name.starts_with("pg_") {
        return Ok(());
    }
    Err(Error::new(
        SqlState::of("42939"),
        format!("unacceptable schema name \"{name}\""),
    )
    .with_detail("The prefix \"pg_\" is reserved for system schemas."))
}

impl Session {
    pub(in crate::session) fn create_schema(
        &mut self,
        text: &str,
        create: &CreateSchemaStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let (owner, owner_name) = self.schema_owner(&catalog, create)?;
        self.may_create_schemas(&catalog)?;
        let own = self.shared.settings.current_role();
        if !catalog.is_member(own, owner) {
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("must be member of role \"{owner_name}\""),
            ));
        }
        let name = match create.schemaname.as_str() {
            "" => owner_name,
            name => name.to_owned(),
        };
        check_schema_name(&name)?;
        let schema = Schema {
            oid: self.new_oid()?,
            name: cut_name(&name),
            owner,
        };
        let exists = catalog.schema(&schema.name).is_some();
        let message = format!("schema \"{}\" already exists", schema.name);
        if exists && create.if_not_exists {
            let body = Error::new(SqlState::DUPLICATE_SCHEMA, format!("{message}, skipping"));
            self.notice(NoticeSeverity::Notice, body, sink)?;
            return Ok(tag("CREATE SCHEMA"));
        }
        let inserted = match &mut self.open {
            Some(open) if !exists => store::make_schema(open.txn.as_mut(), &catalog, &schema)?,
            _ => false,
        };
        if !inserted {
            return Err(Error::new(SqlState::DUPLICATE_SCHEMA, message));
        }
        if !create.schema_elts.is_empty() {
            self.changed_catalog();
            self.shared.filling = Some(schema.oid);
            let filled = self.fill_schema(text, create, &schema.name, sink);
            self.shared.filling = None;
            filled?;
        }
        Ok(tag("CREATE SCHEMA"))
    }

    /// 42501 for who may not make schemas in this database.
    pub(super) fn may_create_schemas(&self, catalog: &Catalog) -> Result<()> {
        let (role, database) = (self.shared.settings.current_role(), &catalog.database);
        match catalog.holds(role, Guarded::Database, database.oid, Privileges::CREATE) {
            true => Ok(()),
            false => Err(denied("database", &database.name)),
        }
    }

    /// The role that AUTHORIZATION names, or the session's own.
    fn schema_owner(&self, catalog: &Catalog, create: &CreateSchemaStmt) -> Result<(u32, String)> {
        let named = create.authrole.as_ref();
        let role = match named.map(|role| (RoleSpecType::try_from(role.roletype), role)) {
            Some((Ok(RoleSpecType::RolespecCstring), role)) => role.rolename.clone(),
            _ => {
                let own = catalog.known_role(self.shared.settings.current_role())?;
                return Ok((own.oid, own.name.clone()));
            }
        };
        let known = catalog.role(&role).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("role \"{role}\" does not exist"),
            )
        })?;
        Ok((known.oid, role))
    }

    /// Makes what stands in CREATE SCHEMA: tables, then sequences, views and indexes.
    fn fill_schema(
        &mut self,
        text: &str,
        create: &CreateSchemaStmt,
        schema: &str,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let mut elements: Vec<_> = create
            .schema_elts
            .iter()
            .filter_map(|node| node.node.clone())
            .collect();
        elements.sort_by_key(|element| match element {
            NodeEnum::CreateSeqStmt(_) => 0,
            NodeEnum::CreateStmt(_) => 1,
            NodeEnum::ViewStmt(_) => 2,
            _ => 3,
        });
        for element in &mut elements {
            if let Some(name) = about(element).outside {
                self.require_no_block(name, false)?;
            }
            match element {
                NodeEnum::CreateSeqStmt(made) => {
                    inside(&mut made.sequence, schema)?;
                    self.create_sequence(text, made, sink)?;
                }
                NodeEnum::CreateStmt(made) => {
                    inside(&mut made.relation, schema)?;
                    self.create_table(text, made, sink)?;
                }
                NodeEnum::ViewStmt(made) => {
                    inside(&mut made.view, schema)?;
                    self.create_view(text, made, sink)?;
                }
                NodeEnum::IndexStmt(made) => {
                    inside(&mut made.relation, schema)?;
                    self.create_index(text, made, sink)?;
                }
                _ => return Err(Error::unsupported("this part of CREATE SCHEMA")),
            }
            self.changed_catalog();
        }
        Ok(())
    }
}

/// Puts what CREATE SCHEMA makes into the schema.
fn inside(range: &mut Option<RangeVar>, schema: &str) -> Result<()> {
    let Some(range) = range else {
        return Ok(());
    };
    if !range.schemaname.is_empty() && range.schemaname != schema {
        return Err(Error::new(
            SqlState::of("42P15"),
            format!(
                "CREATE specifies a schema ({}) different from the one being created ({schema})",
                range.schemaname
            ),
        ));
    }
    range.schemaname = schema.to_owned();
    Ok(())
}
