//! Databases: CREATE, ALTER, DROP. Each has schemas and tables of its own in the one catalog.

use std::time::Duration;

use base::{coro, env, Error, Result, SqlState};
use pg_query::protobuf::{
    AlterDatabaseSetStmt, AlterDatabaseStmt, CreatedbStmt, DefElem, DropdbStmt, Node,
};

use super::super::utility::{option_text, tag};
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::role::no_role;
use super::table::cut_name;
use catalog::layout::FIRST_USER_OID;
use catalog::{
    cluster, large_object, store, Catalog, Database, Locale, RelationKind, Role, Schema, QUORATE,
};
use syntax::parser::NodeEnum;

/// 3D000.
pub(super) fn named<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Database> {
    let found = catalog.databases.iter().find(|known| known.name == name);
    found.ok_or_else(|| {
        Error::new(
            SqlState::INVALID_CATALOG_NAME,
            format!("database \"{name}\" does not exist"),
        )
    })
}

fn options(nodes: &[Node]) -> Result<Vec<&DefElem>> {
    let mut found: Vec<&DefElem> = Vec::new();
    for node in nodes {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        if found.iter().any(|known| known.defname == option.defname) {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "conflicting or redundant options",
            ));
        }
        found.push(option);
    }
    Ok(found)
}

pub(super) fn must_own(catalog: &Catalog, own: &Role, database: &Database) -> Result<()> {
    match catalog.has_privileges_of(own.oid, database.owner) {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("must be owner of database {}", database.name),
        )),
    }
}

fn may_create(own: &Role) -> Result<()> {
    match own.superuser || own.create_database {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            "permission denied to create database",
        )),
    }
}

/// Takes the locales of a database that is made; false for another option.
fn locale(locales: &mut (Option<Locale>, Option<Locale>), option: &DefElem) -> Result<bool> {
    let name = option_text(option);
    let (collate, ctype) = match option.defname.as_str() {
        "locale" => (true, true),
        "lc_collate" => (true, false),
        "lc_ctype" => (false, true),
        _ => return Ok(false),
    };
    if option.arg.is_none() {
        return Ok(true);
    }
    let locale = Locale::named(&name);
    let locale = locale.ok_or_else(|| Error::unsupported("a locale other than C and C.UTF-8"))?;
    if collate {
        locales.0 = Some(locale);
    }
    if ctype {
        locales.1 = Some(locale);
    }
    Ok(true)
}

/// The locale of a database that is copied from another: that one's, unless the other is empty for
/// certain.
fn inherited(said: Option<Locale>, template: (Locale, &Database), what: &str) -> Result<Locale> {
    let (own, database) = template;
    match said {
        Some(said) if said != own && database.name != "template0" => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "new {what} ({}) is incompatible with the {what} of the template database ({})",
                said.name(),
                own.name()
            ),
        )
        .with_hint(format!(
            "Use the same {what} as in the template database, or use template0 as template."
        ))),
        said => Ok(said.unwrap_or(own)),
    }
}

/// What databases here cannot be but one thing.
fn check_fixed(option: &DefElem) -> Result<()> {
    let value = option_text(option);
    let (allowed, what): (&[&str], &str) = match option.defname.as_str() {
        "encoding" => {
            let known = ["utf8", "utf-8", "unicode", "6", ""];
            if known.contains(&value.to_ascii_lowercase().as_str()) {
                return Ok(());
            }
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("encoding \"{value}\" does not match locale \"C.UTF-8\""),
            )
            .with_detail("The chosen LC_CTYPE setting requires encoding \"UTF8\"."));
        }
        "locale_provider" => (&["libc"], "a locale provider other than libc"),
        "tablespace" => (&["pg_default"], "a tablespace of a database"),
        "strategy" => (&["wal_log", "file_copy"], "this strategy"),
        "oid" => (&[], "the oid of a database"),
        other => {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                format!("option \"{other}\" not recognized"),
            ))
        }
    };
    let value = value.to_ascii_lowercase();
    match value.is_empty() || allowed.contains(&value.as_str()) {
        true => Ok(()),
        false => Err(Error::unsupported(what)),
    }
}

/// Takes the options that both CREATE and ALTER have; false for another one.
fn common(database: &mut Database, option: &DefElem) -> Result<bool> {
    let on = || !matches!(option_text(option).as_str(), "false" | "0" | "off");
    match option.defname.as_str() {
        "allow_connections" => database.open = on(),
        "is_template" => database.template = on(),
        "connection_limit" => {
            let limit = option_text(option).parse().unwrap_or(-2);
            if limit < -1 {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid connection limit: {}", option_text(option)),
                ));
            }
            database.connection_limit = limit;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// How often, and after what time each, it is looked again whether others have left a database:
/// five seconds in all, as in PostgreSQL.
const DATABASE_IDLE_TRIES: usize = 50;
const DATABASE_IDLE_STEP: Duration = Duration::from_millis(100);

impl Session {
    pub(in crate::session) fn create_database(
        &mut self,
        create: &CreatedbStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let mut database = Database {
            oid: self.new_oid()?,
            name: cut_name(&create.dbname),
            owner: own.oid,
            ..Database::default()
        };
        let mut template = "template1".to_owned();
        let mut locales = (None, None);
        for option in options(&create.options)? {
            if common(&mut database, option)? || locale(&mut locales, option)? {
                continue;
            }
            match option.defname.as_str() {
                "owner" => {
                    let name = option_text(option);
                    let owner = catalog.role(&name).ok_or_else(|| no_role(&name))?;
                    may_create(&own)?;
                    if !catalog.is_member(own.oid, owner.oid) {
                        return Err(Error::new(
                            SqlState::INSUFFICIENT_PRIVILEGE,
                            format!("must be member of role \"{name}\""),
                        ));
                    }
                    database.owner = owner.oid;
                }
                "template" if option.arg.is_some() => template = option_text(option),
                "template" => {}
                _ => check_fixed(option)?,
            }
        }
        may_create(&own)?;
        if named(&catalog, &database.name).is_ok() {
            return Err(duplicate(&database.name));
        }
        let source = named(&catalog, &template).map_err(|_| {
            Error::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("template database \"{template}\" does not exist"),
            )
        })?;
        if !source.template && !catalog.has_privileges_of(own.oid, source.owner) {
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("permission denied to copy database \"{template}\""),
            ));
        }
        database.collate = inherited(locales.0, (source.collate, source), "collation")?;
        database.ctype = inherited(locales.1, (source.ctype, source), "LC_CTYPE")?;
        let content = self.database_content(&template)?;
        let (template, has_content) = (source.oid, content.is_some_and(|known| !is_empty(&known)));
        let has_large_objects = match &mut self.open {
            Some(open) => large_object::has_any(open.txn.as_mut(), template)?,
            None => false,
        };
        if has_content || has_large_objects {
            return Err(Error::unsupported("a template database with objects in it"));
        }
        let inserted = match &mut self.open {
            Some(open) => store::insert_database(open.txn.as_mut(), &database)?,
            None => false,
        };
        match inserted {
            true => Ok(tag("CREATE DATABASE")),
            false => Err(duplicate(&database.name)),
        }
    }

    /// The catalog of another database, as this transaction sees it.
    fn database_content(&mut self, name: &str) -> Result<Option<Catalog>> {
        let version = self.shared.engine.transactions.catalog_version();
        match &mut self.open {
            Some(open) => store::load(open.txn.as_mut(), version, name),
            None => Err(Error::internal("nothing is open")),
        }
    }

    pub(in crate::session) fn drop_database(
        &mut self,
        drop: &DropdbStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let database = match named(&catalog, &drop.dbname) {
            Ok(database) => database.clone(),
            Err(missing) if drop.missing_ok => {
                let message = format!("{}, skipping", missing.message());
                let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                self.notice(NoticeSeverity::Notice, body, sink)?;
                return Ok(tag("DROP DATABASE"));
            }
            Err(missing) => return Err(missing),
        };
        must_own(&catalog, &own, &database)?;
        if database.template {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                "cannot drop a template database",
            ));
        }
        if database.oid == catalog.database.oid {
            return Err(Error::new(
                SqlState::OBJECT_IN_USE,
                "cannot drop the currently open database",
            ));
        }
        self.check_database_idle(&database)?;
        let Some(content) = self.database_content(&database.name)? else {
            return Err(Error::internal("a database without a catalog"));
        };
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        for known in content.all_extended() {
            let txn = open.txn.as_mut();
            catalog::statistics_store::free_extended(txn, database.oid, known)?;
        }
        for table in &content.tables {
            if table.kind != RelationKind::System {
                store::drop_table(open.txn.as_mut(), database.oid, table)?;
            }
        }
        // Every catalog has the schema of Quorate's own, which is written nowhere.
        let written = |schema: &&Schema| schema.oid != QUORATE;
        for schema in content.schemas.iter().filter(written) {
            store::drop_schema(open.txn.as_mut(), database.oid, schema)?;
        }
        for known in &content.extensions {
            catalog::extension_store::remove(open.txn.as_mut(), database.oid, known)?;
        }
        for cast in content.casts.iter() {
            catalog::cast_store::remove(open.txn.as_mut(), database.oid, cast)?;
        }
        for known in content.collations.iter() {
            catalog::collation_store::remove(open.txn.as_mut(), database.oid, known)?;
        }
        for known in content.operators.iter() {
            let known =
                catalog::operator_store::newest(open.txn.as_mut(), database.oid, known.oid)?;
            if let Some(known) = known {
                catalog::operator_store::remove(open.txn.as_mut(), database.oid, &known)?;
            }
        }
        for routine in content.routines.iter() {
            store::drop_routine(open.txn.as_mut(), database.oid, routine)?;
        }
        for made in content.user_types.iter() {
            catalog::type_store::remove(open.txn.as_mut(), database.oid, made)?;
        }
        large_object::remove_all(open.txn.as_mut(), database.oid)?;
        // What has gone with the objects must not be found again.
        open.txn.next_command();
        cluster::drop_database(open.txn.as_mut(), &database)?;
        Ok(tag("DROP DATABASE"))
    }

    /// How many transactions are prepared in a database.
    fn prepared_in(&self, database: u32) -> Result<usize> {
        let Some(engine) = &self.shared.engine.prepared else {
            return Ok(0);
        };
        let (prepared, _) = engine.prepared()?;
        let here = prepared
            .iter()
            .filter(|one| one.preparation.database == database);
        Ok(here.count())
    }

    /// 55006 when other sessions stay in a database, or something is prepared in it. A session that is ending gets its time: a
    /// client that has just left may not know that the server is still at it.
    fn check_database_idle(&self, database: &Database) -> Result<()> {
        let name = &database.name[..];
        self.shared.end_automatic_in(name);
        let mut count = self.shared.sessions_in(name);
        for _ in 0..DATABASE_IDLE_TRIES {
            if count == 0 {
                break;
            }
            coro::wait(env::sleep(self.shared.env.as_ref(), DATABASE_IDLE_STEP))?;
            count = self.shared.sessions_in(name);
        }
        let prepared = self.prepared_in(database.oid)?;
        let detail = match (count, prepared) {
            (0, 0) => return Ok(()),
            (1, 0) => "There is 1 other session using the database.".to_owned(),
            (count, 0) => format!("There are {count} other sessions using the database."),
            (0, 1) => "There is 1 prepared transaction using the database.".to_owned(),
            (0, count) => format!("There are {count} prepared transactions using the database."),
            (count, prepared) => format!(
                "There are {count} other session(s) and {prepared} prepared transaction(s) using \
                 the database."
            ),
        };
        Err(Error::new(
            SqlState::OBJECT_IN_USE,
            format!("database \"{name}\" is being accessed by other users"),
        )
        .with_detail(detail))
    }

    pub(in crate::session) fn alter_database(
        &mut self,
        alter: &AlterDatabaseStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let old = named(&catalog, &alter.dbname)?.clone();
        must_own(&catalog, &own, &old)?;
        let mut new = old.clone();
        for option in options(&alter.options)? {
            if !common(&mut new, option)? {
                check_fixed(option)?;
            }
        }
        if let Some(open) = &mut self.open {
            cluster::update_database(open.txn.as_mut(), &old, &new)?;
        }
        Ok(tag("ALTER DATABASE"))
    }

    pub(in crate::session) fn alter_database_set(
        &mut self,
        alter: &AlterDatabaseSetStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let database = named(&catalog, &alter.dbname)?.clone();
        must_own(&catalog, &own, &database)?;
        let set = alter.setstmt.as_ref();
        let set = set.ok_or_else(|| Error::internal("ALTER DATABASE SET of nothing"))?;
        self.change_settings(&catalog, database.oid, 0, set, sink)?;
        Ok(tag("ALTER DATABASE"))
    }

    pub(super) fn rename_database(&mut self, old: &str, new: &str) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let database = named(&catalog, old)?.clone();
        must_own(&catalog, &own, &database)?;
        if !own.superuser && !own.create_database {
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                "permission denied to rename database",
            ));
        }
        let renamed = Database {
            name: cut_name(new),
            ..database.clone()
        };
        if named(&catalog, &renamed.name).is_ok() {
            return Err(duplicate(&renamed.name));
        }
        if database.oid == catalog.database.oid {
            return Err(Error::unsupported("current database cannot be renamed"));
        }
        self.check_database_idle(&database)?;
        let done = match &mut self.open {
            Some(open) => cluster::update_database(open.txn.as_mut(), &database, &renamed)?,
            None => false,
        };
        match done {
            true => Ok(tag("ALTER DATABASE")),
            false => Err(duplicate(&renamed.name)),
        }
    }

    /// ALTER DATABASE … OWNER TO.
    pub(super) fn give_database(&mut self, name: &str, owner: &Role) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let old = named(&catalog, name)?.clone();
        must_own(&catalog, &own, &old)?;
        if !catalog.is_member(own.oid, owner.oid) {
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("must be member of role \"{}\"", owner.name),
            ));
        }
        if old.owner != owner.oid {
            may_create(&own).map_err(|_| {
                Error::new(
                    SqlState::INSUFFICIENT_PRIVILEGE,
                    "permission denied to change owner of database",
                )
            })?;
        }
        self.put_database_owner(&catalog, &old, owner.oid)?;
        Ok(tag("ALTER DATABASE"))
    }
}

fn duplicate(name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_DATABASE,
        format!("database \"{name}\" already exists"),
    )
}

/// Whether a database has nothing that a user made.
fn is_empty(content: &Catalog) -> bool {
    let mut tables = content.tables.iter();
    let mut schemas = content.schemas.iter();
    content.routines.is_empty()
        && content.extensions.is_empty()
        && content.casts.is_empty()
        && content.collations.is_empty()
        && content.operators.is_empty()
        && content.user_types.iter().next().is_none()
        && tables.all(|table| table.kind == RelationKind::System)
        && schemas.all(|schema| schema.oid < FIRST_USER_OID)
}
