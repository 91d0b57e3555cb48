//! CREATE and ALTER EXTENSION: what is built in ([`functions::extensions`]) becomes visible in a
//! database.
//!
//! All extensions but `bloom` are what PostgreSQL calls trusted: whoever may create in the database
//! may create them. Whoever does owns the extension; its members are the superuser's, unless it was one
//! who did.
//!
//! # What it leaves out
//! Other versions than the one that is here, and members of one's own (ALTER EXTENSION … ADD).

use base::engine::RowLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterExtensionStmt, AlterObjectSchemaStmt, CreateExtensionStmt, DefElem};

use super::super::utility::{parameter_text, tag};
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::routine::conflicting;
use catalog::access::{must_own, Guarded, Privileges};
use catalog::cluster::{self, Address};
use catalog::depend::routine_text;
use catalog::routine::{Argument, Language, Mode};
use catalog::system::{PLPGSQL_EXTENSION, QUORATE_EXTENSION};
use catalog::{
    extension_store, store, Catalog, Extension, RelationRef, Routine, TypeBody, UserType, SUPERUSER,
};
use execution::state::statements::EXTENSION;
use functions::extensions as built_in;
use functions::strings::quote_identifier;
use functions::{Function, Volatility};
use syntax::parser::{self, NodeEnum};

/// The extensions that are there from the start.
const FROM_THE_START: [(&str, u32); 2] = [
    ("plpgsql", PLPGSQL_EXTENSION),
    ("quorate", QUORATE_EXTENSION),
];

fn is_there(catalog: &Catalog, name: &str) -> bool {
    let mut fixed = FROM_THE_START.iter();
    fixed.any(|known| known.0 == name) || catalog.extension(name).is_some()
}

fn missing(name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("extension \"{name}\" does not exist"),
    )
}

fn not_available(name: &str) -> Error {
    Error::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("extension \"{name}\" is not available"),
    )
    .with_detail("Quorate has no extensions besides those that are built in.".to_owned())
    .with_hint("The extension must first be installed on the system where PostgreSQL is running.")
}

/// What CREATE EXTENSION asks for beside the name.
#[derive(Default)]
struct Asked {
    schema: Option<String>,
    version: Option<String>,
    cascade: bool,
}

fn asked(options: &[pg_query::protobuf::Node]) -> Result<Asked> {
    let mut asked = Asked::default();
    for node in options {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        let text = |known: &Option<String>, option: &DefElem| match known {
            None => Ok(Some(parameter_text(option))),
            Some(_) => Err(conflicting()),
        };
        match option.defname.as_str() {
            "schema" => asked.schema = text(&asked.schema, option)?,
            "new_version" => asked.version = text(&asked.version, option)?,
            "cascade" if asked.cascade => return Err(conflicting()),
            "cascade" => asked.cascade = true,
            other => return Err(Error::unsupported(format!("CREATE EXTENSION … {other}"))),
        }
    }
    Ok(asked)
}

impl Session {
    pub(in crate::session) fn create_extension(
        &mut self,
        create: &CreateExtensionStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let name = &create.extname;
        let done = tag("CREATE EXTENSION");
        let asked = asked(&create.options)?;
        let catalog = self.current_catalog()?;
        if is_there(&catalog, name) {
            let message = format!("extension \"{name}\" already exists");
            if !create.if_not_exists {
                return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
            }
            let body = Error::new(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
            self.notice(NoticeSeverity::Notice, body, sink)?;
            return Ok(done);
        }
        let found = built_in::named(name).ok_or_else(|| not_available(name))?;
        self.make_extension(found, &asked, sink)?;
        Ok(done)
    }

    fn make_extension(
        &mut self,
        found: &'static built_in::Extension,
        asked: &Asked,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (name, catalog) = (found.name, self.current_catalog()?);
        if let Some(version) = asked.version.as_ref().filter(|own| *own != found.version) {
            let message = format!(
                "extension \"{name}\" has no installation script nor update path for version \
                 \"{version}\""
            );
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let own = self.current_role(&catalog)?;
        let (role, database) = (own.oid, catalog.database.oid);
        let hint = match found.trusted {
            true => "Must have CREATE privilege on current database to create this extension.",
            false => "Must be superuser to create this extension.",
        };
        let may_create = catalog.holds(role, Guarded::Database, database, Privileges::CREATE);
        if !(own.superuser || found.trusted && may_create) {
            let message = format!("permission denied to create extension \"{name}\"");
            return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message).with_hint(hint));
        }
        self.make_required(found, asked, sink)?;
        let catalog = self.current_catalog()?;
        // Its script runs as the superuser, who may make things in any schema.
        let schema = self.named_schema(&catalog, asked.schema.as_deref().unwrap_or_default())?;
        let mut made = Extension {
            oid: self.new_oid()?,
            name: name.to_owned(),
            owner: role,
            schema,
            version: found.version.to_owned(),
            members: Vec::new(),
        };
        let owner = if own.superuser { role } else { SUPERUSER };
        self.make_types(&catalog, found, schema, owner)?;
        for function in found.functions() {
            let routine = Routine {
                oid: self.new_oid()?,
                schema,
                owner,
                ..routine_of(found, function)
            };
            made.members.push(routine.oid);
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            if !store::insert_routine(open.txn.as_mut(), &catalog, &routine)? {
                return Err(Error::new(
                    SqlState::DUPLICATE_FUNCTION,
                    format!(
                        "function \"{}\" already exists with same argument types",
                        routine.name
                    ),
                ));
            }
        }
        self.run_script(found, &mut made, sink)?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        if !extension_store::insert(open.txn.as_mut(), database, &made)? {
            let message = format!("extension \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        let address = Address::of(Address::EXTENSION, made.oid);
        cluster::put_comment(open.txn.as_mut(), database, address, Some(found.comment))?;
        self.changed_catalog();
        if let (EXTENSION, Some(node)) = (name, &self.shared.node_statistics) {
            let now = self.shared.env.wall_clock().0;
            node.statements.switch(true, now);
        }
        Ok(())
    }

    /// Makes what an extension brings beside its functions and types. The views become members.
    fn run_script(
        &mut self,
        found: &'static built_in::Extension,
        made: &mut Extension,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if found.script.is_empty() {
            return Ok(());
        }
        self.changed_catalog();
        let catalog = self.current_catalog()?;
        let schema = catalog.schema_by_oid(made.schema);
        let schema = schema.map_or_else(String::new, |schema| quote_identifier(&schema.name));
        for line in found.script {
            let text = line.replace("@extschema@", &schema);
            for statement in parser::parse(&text)? {
                match statement.node() {
                    NodeEnum::ViewStmt(create) => {
                        self.create_view(&text, create, sink)?;
                        self.changed_catalog();
                        let catalog = self.current_catalog()?;
                        let name = create.view.as_ref().map_or("", |view| &view.relname);
                        if let Some(RelationRef::Table(view)) = catalog.relation(made.schema, name)
                        {
                            made.members.push(catalog.tables[view].oid);
                        }
                    }
                    NodeEnum::GrantStmt(grant) => {
                        self.grant(grant, sink)?;
                        self.changed_catalog();
                    }
                    _ => return Err(Error::internal("a script that makes something else")),
                }
            }
        }
        Ok(())
    }

    /// Gives the types that an extension brings their names.
    fn make_types(
        &mut self,
        catalog: &Catalog,
        found: &'static built_in::Extension,
        schema: u32,
        owner: u32,
    ) -> Result<()> {
        for id in found.types {
            let name = id.fixed_name();
            self.check_type_name(catalog, schema, &name)?;
            let made = UserType {
                id: *id,
                schema,
                name,
                owner,
                body: TypeBody::Base,
            };
            self.insert_type(catalog, &made)?;
        }
        Ok(())
    }

    /// Makes the extensions that one needs, with CASCADE.
    fn make_required(
        &mut self,
        found: &'static built_in::Extension,
        asked: &Asked,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        for name in found.requires {
            if is_there(&*self.current_catalog()?, name) {
                continue;
            }
            if !asked.cascade {
                let message = format!("required extension \"{name}\" is not installed");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message).with_hint(
                    "Use CREATE EXTENSION ... CASCADE to install required extensions too.",
                ));
            }
            let required = built_in::named(name).ok_or_else(|| not_available(name))?;
            let message = format!("installing required extension \"{name}\"");
            let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
            self.notice(NoticeSeverity::Notice, body, sink)?;
            let below = Asked {
                schema: asked.schema.clone(),
                version: None,
                cascade: true,
            };
            self.make_extension(required, &below, sink)?;
        }
        Ok(())
    }

    /// The extension of that name, which the role owns.
    ///
    /// # Errors
    /// 42704, 42501; 0A000 for one that is there from the start.
    pub(super) fn own_extension(&mut self, catalog: &Catalog, name: &str) -> Result<Extension> {
        let own = self.current_role(catalog)?;
        if FROM_THE_START.iter().any(|known| known.0 == name) {
            return match own.superuser {
                true => Err(Error::unsupported(format!("a change of extension {name}"))),
                false => Err(must_own("extension", name)),
            };
        }
        let found = catalog.extension(name).ok_or_else(|| missing(name))?;
        match catalog.has_privileges_of(own.oid, found.owner) {
            true => Ok(found.clone()),
            false => Err(must_own("extension", name)),
        }
    }

    /// The address of an extension of which the role may say something.
    pub(super) fn commented_extension(&mut self, catalog: &Catalog, name: &str) -> Result<Address> {
        let fixed = FROM_THE_START.iter().find(|known| known.0 == name);
        let oid = match fixed {
            Some((_, oid)) => {
                self.must_be_superuser(catalog, "extension", name)?;
                *oid
            }
            None => self.own_extension(catalog, name)?.oid,
        };
        Ok(Address::of(Address::EXTENSION, oid))
    }

    /// ALTER EXTENSION … UPDATE.
    pub(in crate::session) fn alter_extension(
        &mut self,
        alter: &AlterExtensionStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let found = match alter.extname.as_str() {
            "plpgsql" => {
                self.must_be_superuser(&catalog, "extension", "plpgsql")?;
                Extension {
                    name: "plpgsql".to_owned(),
                    version: "1.0".to_owned(),
                    ..Extension::default()
                }
            }
            name => self.own_extension(&catalog, name)?,
        };
        let (name, version) = (&found.name, &found.version);
        let wanted = asked(&alter.options)?.version;
        if let Some(wanted) = wanted.filter(|wanted| wanted != version) {
            let message = format!(
                "extension \"{name}\" has no update path from version \"{version}\" to version \
                 \"{wanted}\""
            );
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let message = format!("version \"{version}\" of extension \"{name}\" is already installed");
        let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        self.notice(NoticeSeverity::Notice, body, sink)?;
        Ok(tag("ALTER EXTENSION"))
    }

    /// ALTER EXTENSION … SET SCHEMA: all of its members move along.
    pub(super) fn move_extension(&mut self, alter: &AlterObjectSchemaStmt) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let node = alter.object.as_ref().and_then(|node| node.node.as_ref());
        let Some(NodeEnum::String(name)) = node else {
            return Err(Error::internal("ALTER EXTENSION of nothing"));
        };
        if !is_there(&catalog, &name.sval) {
            return Err(missing(&name.sval));
        }
        let schema = self.creation_schema(&catalog, &alter.newschema)?;
        let found = self.own_extension(&catalog, &name.sval)?;
        self.move_types(&catalog, &found, schema)?;
        let moved: Vec<_> = found
            .members
            .iter()
            .filter_map(|oid| catalog.routine(*oid))
            .filter(|routine| routine.schema != schema)
            .collect();
        let database = catalog.database.oid;
        for old in moved {
            let new = Routine {
                schema,
                ..(**old).clone()
            };
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            if !store::update_routine(open.txn.as_mut(), database, old, &new)? {
                let known = catalog.schema_by_oid(schema);
                return Err(Error::new(
                    SqlState::DUPLICATE_FUNCTION,
                    format!(
                        "function {} already exists in schema \"{}\"",
                        routine_text(&catalog, &[old.schema], old),
                        known.map_or("", |known| &known.name)
                    ),
                ));
            }
        }
        self.move_views(&catalog, &found, schema)?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let moved = Extension { schema, ..found };
        extension_store::update(open.txn.as_mut(), database, &moved)?;
        self.changed_catalog();
        Ok(tag("ALTER EXTENSION"))
    }
}

impl Session {
    fn move_views(&mut self, catalog: &Catalog, found: &Extension, schema: u32) -> Result<()> {
        let views = found.members.iter();
        let views = views.filter_map(|oid| catalog.table_by_oid(*oid));
        for view in views.filter(|view| view.schema != schema) {
            self.lock_exclusively(view)?;
            self.move_relation(catalog, view, schema)?;
        }
        Ok(())
    }

    fn move_types(&mut self, catalog: &Catalog, found: &Extension, schema: u32) -> Result<()> {
        let own = found.types().iter().filter_map(|id| catalog.user_type(*id));
        for old in own.filter(|old| old.schema != schema) {
            self.check_type_name(catalog, schema, &old.name)?;
            self.lock_type(catalog, old.id, RowLock::Update)?;
            let new = UserType {
                schema,
                ..(**old).clone()
            };
            self.put_type(catalog, old, &new)?;
        }
        Ok(())
    }
}

/// The routine by which a function of an extension is found.
fn routine_of(of: &built_in::Extension, function: &Function) -> Routine {
    let mut inputs = of.inputs(function).iter();
    let argument = |type_id: &types::TypeId| {
        let (name, default) = inputs.next().copied().unwrap_or_default();
        Argument {
            name: name.to_owned(),
            type_id: *type_id,
            default: default.map(str::to_owned),
            ..Argument::default()
        }
    };
    let columns = function.columns().unwrap_or_default().iter();
    let columns = columns.map(|(name, type_id)| Argument {
        name: (*name).to_owned(),
        mode: Mode::Out,
        type_id: *type_id,
        ..Argument::default()
    });
    Routine {
        name: function.name.to_owned(),
        language: Language::C,
        arguments: function
            .arguments
            .iter()
            .map(argument)
            .chain(columns)
            .collect(),
        set: function.is_set_returning(),
        result: function.result,
        volatility: match function.volatility {
            Volatility::Immutable => b'i',
            Volatility::Stable => b's',
            Volatility::Volatile => b'v',
        },
        strict: function.strict,
        parallel: b's',
        body: of.symbol(function),
        ..Routine::default()
    }
}
