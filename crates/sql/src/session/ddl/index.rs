//! CREATE INDEX and REINDEX.
//!
//! An index is built beside the readers, while writers wait ([`Session::build_indexes`]); with
//! CONCURRENTLY too, which only keeps it out of transaction blocks here. A rebuilt index is a new
//! tree in the place of the old one. The primary key is the table's own tree, of which nothing is
//! derived, so there is nothing of it to rebuild. Indexes on expressions and with conditions are
//! explained in [`catalog::computed`].
//!
//! # What it leaves out
//! Classes that a tree does not serve: 42704. Parameters of WITH are
//! kept and shown; they say how pages are filled, of which a tree here takes its own care.

use std::sync::Arc;

use base::engine::TableLock;
use base::key::ColumnOrder;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    IndexElem, IndexStmt, Node, RangeVar, ReindexObjectType, ReindexStmt, SortByDir, SortByNulls,
};

use super::super::utility::{parameter_text, tag};
use super::super::{CommandTag, Session, Sink};
use super::table::{choose_name, cut_name};
use super::texts;
use catalog::access::must_own;
use catalog::collation;
use catalog::index_form::IndexForm;
use catalog::operator_class::{
    extension_of, extension_of_method, is_inverted_gist, method_name, method_named, OperatorClass,
    BLOOM, BRIN, GIN, GIST, HASH, SPGIST,
};
use catalog::store::{self, duplicate_relation};
use catalog::system::BTREE;
use catalog::{
    Catalog, Computed, ComputedKey, Index, IndexedColumn, KeySource, RelationKind, RelationRef,
    Table, PG_CATALOG,
};
use planner::bind::qualified;
use syntax::parser::NodeEnum;
use types::text::parse_bool;
use types::TypeId;

/// Where an operator class is: built in, or in the schema of an extension that was created.
fn schema_of(catalog: &Catalog, class: &OperatorClass) -> Option<u32> {
    match extension_of(class.oid) {
        None => Some(PG_CATALOG),
        Some(extension) => catalog.extension(extension).map(|known| known.schema),
    }
}

impl Session {
    /// The table that a name means once it is locked so.
    pub(in super::super) fn lock_named(
        &mut self,
        range: &RangeVar,
        mode: TableLock,
    ) -> Result<Arc<Table>> {
        loop {
            let table = self.find_table(range)?;
            self.lock_mode(&table, mode)?;
            let again = self.find_table(range)?;
            if again.tree == table.tree && again.oid == table.oid {
                return Ok(again);
            }
        }
    }

    pub(in crate::session) fn create_index(
        &mut self,
        text: &str,
        create: &IndexStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let method = access_method(&*self.current_catalog()?, create)?;
        let range = create
            .relation
            .as_ref()
            .ok_or_else(|| Error::internal("an index without a table"))?;
        let named = self.find_table(range)?;
        self.must_own_relation(&named)?;
        let old = self.lock_named(range, TableLock::ShareRowExclusive)?;
        self.must_own_relation(&old)?;
        let partitioned = old.kind == RelationKind::Partitioned;
        if partitioned && create.concurrent {
            let name = &old.name;
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot create index on partitioned table \"{name}\" concurrently"),
            ));
        }
        if !old.kind.has_rows() && !partitioned {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot create index on relation \"{}\"", old.name),
            )
            .with_detail(format!(
                "This operation is not supported for {}s.",
                old.kind.noun()
            )));
        }
        self.refuse_in_use(&old, "CREATE INDEX")?;
        let catalog = self.current_catalog()?;
        self.may_create_in(&catalog, old.schema)?;
        self.check_tablespace(&catalog, &create.table_space, partitioned)?;
        let mut index = Index {
            unique: create.unique,
            nulls_equal: create.nulls_not_distinct,
            ..self.index_keys(text, &catalog, &old, create, method)?
        };
        let names: Vec<_> = index
            .shown_columns(&old)
            .into_iter()
            .map(|own| own.name)
            .collect();
        let taken = |name: &str| catalog.relation(old.schema, name).is_some();
        let name = match create.idxname.as_str() {
            "" => choose_name(&old.name, &names.join("_"), "idx", taken),
            name => cut_name(name),
        };
        if taken(&name) {
            self.pass_over_existing(&name, create.if_not_exists, sink)?;
            return Ok(tag("CREATE INDEX"));
        }
        let mut new = (*old).clone();
        index.oid = self.new_oid()?;
        index.name = name;
        index.tree = self.new_tree_beside(old.tree)?;
        store::check_order(&new, &index)?;
        new.indexes.push(index);
        match partitioned {
            true => self.add_partitioned_index(&old, new, range.inh)?,
            false => self.add_index(&old, new)?,
        }
        Ok(tag("CREATE INDEX"))
    }

    /// The keys, included columns and condition that CREATE INDEX gives.
    pub(super) fn index_keys(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        create: &IndexStmt,
        method: u32,
    ) -> Result<Index> {
        let mut keys = Vec::new();
        let mut uses = Vec::new();
        let mut classes = Vec::new();
        let mut collations = Vec::new();
        for node in &create.index_params {
            let element = index_element(node)?;
            let order = column_order(element, method)?;
            let (expr, written) = without_collate(element);
            let source = match expr {
                None => KeySource::Column(named_column(table, &element.name)?),
                Some(node) => match &node.node {
                    // Parentheses around a column change nothing.
                    Some(NodeEnum::ColumnRef(column)) if plain_name(&column.fields).is_some() => {
                        let place = plain_name(&column.fields).and_then(|name| table.column(name));
                        match place {
                            Some(place) => KeySource::Column(place),
                            None => self.index_key(text, catalog, table, node, &mut uses)?,
                        }
                    }
                    _ => self.index_key(text, catalog, table, node, &mut uses)?,
                },
            };
            if let KeySource::Column(place) = source {
                uses.push(place);
            }
            let key = ComputedKey { source, order };
            collations.push(self.key_collation(catalog, written, table, &key)?);
            classes.push(self.operator_class(catalog, element, method, key.type_id(table))?);
            keys.push(key);
        }
        if classes.iter().all(|class| *class == 0) {
            classes.clear();
        }
        if collations.iter().all(|collation| *collation == 0) {
            collations.clear();
        }
        let mut include = Vec::new();
        for node in &create.index_including_params {
            let element = index_element(node)?;
            if element.expr.is_some() {
                let message = "expressions are not supported in included columns";
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            include.push(named_column(table, &element.name)?);
        }
        let condition = match &create.where_clause {
            None => None,
            Some(node) => {
                let bound = self.try_binding(text, catalog, |binder| {
                    binder.check_index_condition(table, node)
                })?;
                self.may_use_types_of(catalog, bound.uses.iter().map(|uses| uses.relation))?;
                uses.extend(bound.columns);
                Some(bound.kept)
            }
        };
        uses.sort_unstable();
        uses.dedup();
        let first = classes.first().copied();
        let is_inverted = method == GIN || first.is_some_and(is_inverted_gist);
        Ok(Index {
            include,
            form: IndexForm {
                method,
                classes,
                collations,
                options: index_options(method, Vec::new(), &create.options)?,
            },
            ..match is_inverted {
                true => inverted_of(keys, condition, uses),
                false => index_of(keys, condition, uses, create.nulls_not_distinct),
            }
        })
    }

    /// The operator class of a key, 0 for the default.
    ///
    /// # Errors
    /// 42704 for one that there is not, 42804 for one of another type.
    fn operator_class(
        &self,
        catalog: &Catalog,
        element: &IndexElem,
        method: u32,
        ty: TypeId,
    ) -> Result<u32> {
        let undefined = |message: String| Error::new(SqlState::UNDEFINED_OBJECT, message);
        let default = OperatorClass::default_of(method, ty);
        let default = default.filter(|class| schema_of(catalog, class).is_some());
        let names = texts(&element.opclass);
        match names.as_slice() {
            // Such an index is an inverted one, which its class says.
            [] if default.is_some_and(|class| is_inverted_gist(class.oid)) => {
                return Ok(default.map_or(0, |class| class.oid));
            }
            [] if default.is_some() || method == BTREE => return Ok(0),
            [] if ty == TypeId::TSQUERY => {
                return Err(Error::unsupported("an index on a tsquery"));
            }
            _ if has_class_elsewhere(method, ty) => {
                let method = method_name(method);
                return Err(Error::unsupported(format!("a {method} index on a {ty}")));
            }
            [] => {
                let message = format!(
                    "data type {ty} has no default operator class for access method \"{}\"",
                    method_name(method)
                );
                return Err(undefined(message).with_hint(
                    "You must specify an operator class for the index or define a default \
                     operator class for the data type.",
                ));
            }
            _ => {}
        }
        let class = self.class_named(catalog, &names, method, ty)?;
        if !element.opclassopts.is_empty() {
            return Err(Error::unsupported("parameters of an operator class"));
        }
        let is_default = default.is_some_and(|default| default.oid == class.oid);
        let is_named = !is_default || is_inverted_gist(class.oid);
        Ok(if is_named { class.oid } else { 0 })
    }

    /// The operator class of that name, for values of a type.
    ///
    /// # Errors
    /// 42704 for one that there is not, 42804 for one of another type.
    pub(super) fn class_named(
        &self,
        catalog: &Catalog,
        names: &[String],
        method: u32,
        ty: TypeId,
    ) -> Result<&'static OperatorClass> {
        let (schemas, name) = match names {
            [.., schema, name] => {
                let schema = catalog.schema(schema).map(|known| known.oid);
                (schema.into_iter().collect(), name.as_str())
            }
            _ => {
                let mut schemas = self.search_path(catalog);
                schemas.insert(0, PG_CATALOG);
                (schemas, names.first().map_or("", String::as_str))
            }
        };
        let is_seen = |class: &&OperatorClass| {
            schema_of(catalog, class).is_some_and(|schema| schemas.contains(&schema))
        };
        let mut named = OperatorClass::named(method, name).filter(is_seen);
        let class = named.next().ok_or_else(|| {
            let (names, method) = (names.join("."), method_name(method));
            Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("operator class \"{names}\" does not exist for access method \"{method}\""),
            )
        })?;
        match class.accepts(ty) {
            true => Ok(class),
            false => Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "operator class \"{}\" does not accept data type {ty}",
                    names.join(".")
                ),
            )),
        }
    }

    fn index_key(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        node: &Node,
        uses: &mut Vec<usize>,
    ) -> Result<KeySource> {
        let bound =
            self.try_binding(text, catalog, |binder| binder.check_index_key(table, node))?;
        self.may_use_types_of(catalog, bound.uses.iter().map(|uses| uses.relation))?;
        uses.extend(bound.columns);
        Ok(bound.kept)
    }

    /// Builds the index that `new` has besides those of `old`, which may be its primary key, and
    /// puts `new` into the catalog.
    ///
    /// # Errors
    /// 42P07 when its name is taken; 23505 and 23502 when rows do not allow it.
    pub(super) fn add_index(&mut self, old: &Arc<Table>, new: Table) -> Result<()> {
        let is_new = |index: &&Index| old.indexes.iter().all(|known| known.oid != index.oid);
        let index = new.indexes.iter().find(is_new).cloned();
        let index = index.ok_or_else(|| Error::internal("a new index that is not there"))?;
        let database = self.current_catalog()?.database.oid;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let (class, schema) = (store::NameClass::Relation, new.schema);
        let txn = open.txn.as_mut();
        if !store::claim_name(txn, class, database, schema, &index.name, index.oid)? {
            return Err(duplicate_relation(&index.name));
        }
        match index.primary {
            true => {
                let new = self.with_new_trees(&new)?;
                self.rekey(database, old, &new)?;
            }
            false => self.build_indexes(database, old, &new)?,
        }
        self.changed_catalog();
        Ok(())
    }

    /// REINDEX.
    pub(in crate::session) fn reindex(
        &mut self,
        reindex: &ReindexStmt,
        alone: bool,
    ) -> Result<CommandTag> {
        let done = tag("REINDEX");
        let kind = ReindexObjectType::try_from(reindex.kind);
        let concurrent = reindex.params.iter().any(|node| {
            matches!(&node.node, Some(NodeEnum::DefElem(option)) if option.defname == "concurrently")
        });
        if concurrent {
            self.require_no_block("REINDEX CONCURRENTLY", alone)?;
        }
        match (kind, &reindex.relation) {
            (Ok(ReindexObjectType::ReindexObjectTable), Some(range)) => {
                let table = self.find_table(range)?;
                self.must_own_relation(&table)?;
                let table = self.lock_named(range, TableLock::AccessExclusive)?;
                self.must_own_relation(&table)?;
                match table.kind.has_rows() {
                    true => self.rebuild(&table, |_| true)?,
                    false => self.rebuild_parts(&table, None)?,
                }
            }
            (Ok(ReindexObjectType::ReindexObjectIndex), Some(range)) => {
                self.reindex_one(range)?;
            }
            (Ok(ReindexObjectType::ReindexObjectSchema), _) => {
                self.require_no_block("REINDEX SCHEMA", alone)?;
                let catalog = self.current_catalog()?;
                let schema = catalog.schema(&reindex.name).ok_or_else(|| {
                    Error::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        format!("schema \"{}\" does not exist", reindex.name),
                    )
                })?;
                if !catalog.has_privileges_of(self.shared.settings.current_role(), schema.owner) {
                    return Err(must_own("schema", &schema.name));
                }
                self.rebuild_all(|table| table.schema == schema.oid)?;
            }
            (Ok(ReindexObjectType::ReindexObjectDatabase), _) => {
                self.require_no_block("REINDEX DATABASE", alone)?;
                let catalog = self.current_catalog()?;
                let own = &catalog.database;
                if !reindex.name.is_empty() && reindex.name != own.name {
                    return Err(Error::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "can only reindex the currently open database",
                    ));
                }
                self.must_own_database(&catalog)?;
                self.rebuild_all(|table| table.schema != PG_CATALOG)?;
            }
            // The catalog's trees have no indexes.
            (Ok(ReindexObjectType::ReindexObjectSystem), _) => {
                self.require_no_block("REINDEX SYSTEM", alone)?;
                let catalog = self.current_catalog()?;
                self.must_own_database(&catalog)?;
            }
            _ => return Err(Error::internal("REINDEX of nothing")),
        }
        Ok(done)
    }

    fn reindex_one(&mut self, range: &RangeVar) -> Result<()> {
        let catalog = self.current_catalog()?;
        let Some(found) = self.find_range(range)? else {
            return Err(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", qualified(range)),
            ));
        };
        let RelationRef::Index(of, place) = found else {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not an index", range.relname),
            ));
        };
        let oid = catalog.tables[of].indexes[place].oid;
        self.must_own_index(&catalog.tables[of], &catalog.tables[of].indexes[place])?;
        self.lock_exclusively(&catalog.tables[of])?;
        let catalog = self.current_catalog()?;
        match catalog.index_by_oid(oid) {
            Some((table, _)) if table.kind.has_rows() => {
                self.rebuild(table, |index| index.oid == oid)
            }
            Some((table, _)) => self.rebuild_parts(table, Some(oid)),
            None => Err(Error::serialization(
                "could not serialize access due to concurrent update",
            )),
        }
    }

    /// Builds anew what a partitioned table has in its partitions: all indexes, or the parts of one.
    fn rebuild_parts(&mut self, whole: &Arc<Table>, index: Option<u32>) -> Result<()> {
        let catalog = self.current_catalog()?;
        let mut wanted: Vec<u32> = index.into_iter().collect();
        for table in catalog.below(whole) {
            let is_wanted = |part: &Index| {
                let above = table.part_above(part.oid);
                index.is_none() || above.is_some_and(|above| wanted.contains(&above))
            };
            let parts = table.indexes.iter().filter(|part| is_wanted(part));
            let parts: Vec<u32> = parts.map(|part| part.oid).collect();
            wanted.extend(&parts);
            if table.kind.has_rows() {
                self.lock_fully(&table)?;
                let now = self.current_catalog()?;
                if let Some(table) = now.table_by_oid(table.oid) {
                    self.rebuild(table, |part| parts.contains(&part.oid))?;
                }
            }
        }
        Ok(())
    }

    /// 42501 for who does not own the database at hand.
    fn must_own_database(&self, catalog: &Catalog) -> Result<()> {
        match catalog.has_privileges_of(self.shared.settings.current_role(), catalog.database.owner)
        {
            true => Ok(()),
            false => Err(must_own("database", &catalog.database.name)),
        }
    }

    /// Builds the indexes of all tables anew that are wanted; who asks owns what they are in.
    fn rebuild_all(&mut self, wanted: impl Fn(&Table) -> bool) -> Result<()> {
        let catalog = self.current_catalog()?;
        let mut tables = catalog.tables.iter();
        while let Some(table) = tables.find(|table| table.kind.has_rows() && wanted(table)) {
            self.lock_fully(table)?;
            if let Some(table) = self.current_catalog()?.table_by_oid(table.oid).cloned() {
                self.rebuild(&table, |_| true)?;
            }
        }
        Ok(())
    }

    /// Builds indexes of a table anew, which is locked against everyone.
    fn rebuild(&mut self, old: &Arc<Table>, wanted: impl Fn(&Index) -> bool) -> Result<()> {
        if old.kind == RelationKind::System {
            return Ok(());
        }
        let mut new = (**old).clone();
        let mut dropped = Vec::new();
        for index in &mut new.indexes {
            if !index.primary && wanted(index) {
                self.refuse_index_at_work(index, "REINDEX INDEX")?;
                dropped.push(index.tree);
                index.tree = self.new_tree_beside(old.tree)?;
            }
        }
        if dropped.is_empty() {
            return Ok(());
        }
        let database = self.current_catalog()?.database.oid;
        self.build_indexes(database, old, &new)?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        for tree in dropped {
            store::drop_tree(open.txn.as_mut(), tree)?;
        }
        self.changed_catalog();
        Ok(())
    }
}

/// An index of such keys: a plain one, if columns are all it is on and NULLs are not equal to it.
pub(super) fn index_of(
    keys: Vec<ComputedKey>,
    condition: Option<String>,
    uses: Vec<usize>,
    nulls_equal: bool,
) -> Index {
    let columns: Option<Vec<_>> = keys
        .iter()
        .map(|key| match key.source {
            KeySource::Column(column) => Some(IndexedColumn {
                column,
                order: key.order,
            }),
            KeySource::Expression { .. } => None,
        })
        .collect();
    match columns.filter(|_| condition.is_none() && !nulls_equal) {
        Some(columns) => Index {
            columns,
            ..Index::default()
        },
        None => Index {
            computed: Some(Box::new(Computed {
                keys,
                condition,
                uses,
            })),
            ..Index::default()
        },
    }
}

/// An inverted index, which is always a computed one.
fn inverted_of(keys: Vec<ComputedKey>, condition: Option<String>, uses: Vec<usize>) -> Index {
    Index {
        computed: Some(Box::new(Computed {
            keys,
            condition,
            uses,
        })),
        ..Index::default()
    }
}

pub(super) fn index_element(node: &Node) -> Result<&IndexElem> {
    match &node.node {
        Some(NodeEnum::IndexElem(element)) => Ok(element),
        _ => Err(Error::internal("an index of no element")),
    }
}

impl Session {
    /// The collation of a key, or 0 for that of what it is on.
    fn key_collation(
        &mut self,
        catalog: &Arc<Catalog>,
        written: &[Node],
        table: &Table,
        key: &ComputedKey,
    ) -> Result<u32> {
        if written.is_empty() {
            return Ok(0);
        }
        let ty = key.type_id(table);
        let given = match self.given_collation_named(catalog, written.to_vec(), ty)? {
            0 => collation::of_type(ty),
            given => given,
        };
        let own = match key.source {
            KeySource::Column(place) => table.columns[place].collation,
            KeySource::Expression { .. } => 0,
        };
        let own = if own == 0 {
            collation::of_type(ty)
        } else {
            own
        };
        Ok(if own == given { 0 } else { given })
    }
}

/// What a key is on, and its collation: `x COLLATE y` is the same with parentheses around it.
fn without_collate(element: &IndexElem) -> (Option<&Node>, &[Node]) {
    let mut expr = element.expr.as_deref();
    let mut written = element.collation.as_slice();
    while let Some(NodeEnum::CollateClause(clause)) = expr.and_then(|node| node.node.as_ref()) {
        expr = clause.arg.as_deref();
        if written.is_empty() {
            written = &clause.collname;
        }
    }
    (expr, written)
}

/// The only part of a name.
fn plain_name(fields: &[Node]) -> Option<&str> {
    match fields {
        [Node {
            node: Some(NodeEnum::String(name)),
        }] => Some(&name.sval),
        _ => None,
    }
}

fn named_column(table: &Table, name: &str) -> Result<usize> {
    table.column(name).ok_or_else(|| {
        Error::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" does not exist"),
        )
    })
}

fn column_order(element: &IndexElem, method: u32) -> Result<ColumnOrder> {
    let ordered = SortByDir::try_from(element.ordering) != Ok(SortByDir::SortbyDefault);
    let nulls = SortByNulls::try_from(element.nulls_ordering);
    let placed = nulls != Ok(SortByNulls::SortbyNullsDefault);
    let refused = [(ordered, "ASC/DESC"), (placed, "NULLS FIRST/LAST")];
    if let Some((_, what)) = refused.iter().find(|(given, _)| *given && method != BTREE) {
        let message = format!(
            "access method \"{}\" does not support {what} options",
            method_name(method)
        );
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let descending = element.ordering == SortByDir::SortbyDesc as i32;
    Ok(ColumnOrder {
        descending,
        nulls_first: match nulls {
            Ok(SortByNulls::SortbyNullsFirst) => true,
            Ok(SortByNulls::SortbyNullsLast) => false,
            _ => descending,
        },
    })
}

/// Whether a parameter says how many bits a column has in a signature: `col1` to `col32`.
fn is_bloom_column(name: &str) -> bool {
    let number = name.strip_prefix("col").and_then(|rest| rest.parse().ok());
    number.is_some_and(|number: u8| (1..=32).contains(&number) && name == format!("col{number}"))
}

/// The access method of USING.
///
/// # Errors
/// 42704 for one that there is not; 0A000 for one that a tree does not serve, or not so.
pub(super) fn access_method(catalog: &Catalog, create: &IndexStmt) -> Result<u32> {
    let name = match create.access_method.as_str() {
        "" => "btree",
        // What was an access method once.
        "rtree" => "gist",
        name => name,
    };
    if matches!(name, "hnsw" | "ivfflat") && catalog.extension("vector").is_some() {
        let message = format!("access method \"{name}\" is not supported");
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_hint("Without an index, ORDER BY a distance with LIMIT searches exactly."));
    }
    let is_seen = |method: &u32| {
        let extension = extension_of_method(*method);
        extension.is_none_or(|name| catalog.extension(name).is_some())
    };
    let method = method_named(name).filter(is_seen).ok_or_else(|| {
        Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("access method \"{name}\" does not exist"),
        )
    })?;
    let several = create.index_params.len() > 1;
    let includes = !create.index_including_params.is_empty();
    let refused = [
        (create.unique && method != BTREE, "unique indexes"),
        (
            several && matches!(method, HASH | SPGIST),
            "multicolumn indexes",
        ),
        (
            includes && matches!(method, HASH | BRIN | GIN | BLOOM),
            "included columns",
        ),
    ];
    match refused.into_iter().find(|refused| refused.0) {
        None => Ok(method),
        Some((_, what)) => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("access method \"{name}\" does not support {what}"),
        )),
    }
}

/// Whether PostgreSQL has operator classes of a method for a type of geometry, which a tree of keys does
/// not serve.
fn has_class_elsewhere(method: u32, ty: TypeId) -> bool {
    match method {
        GIST => matches!(
            ty,
            TypeId::POINT | TypeId::BOX | TypeId::POLYGON | TypeId::CIRCLE
        ),
        SPGIST => matches!(ty, TypeId::POINT | TypeId::BOX | TypeId::POLYGON),
        BRIN => ty == TypeId::BOX,
        _ => false,
    }
}

/// Checks `buffering` of a gist index.
fn check_buffering(value: &str) -> Result<()> {
    let values = ["auto", "on", "off"];
    if values.iter().any(|known| known.eq_ignore_ascii_case(value)) {
        return Ok(());
    }
    Err(Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for enum option \"buffering\": {value}"),
    )
    .with_detail("Valid values are \"on\", \"off\", and \"auto\"."))
}

/// The storage parameters of an index with those of WITH or SET.
///
/// # Errors
/// 22023 for one that there is not, or not with that value.
pub(super) fn index_options(
    method: u32,
    mut known: Vec<(String, String)>,
    options: &[Node],
) -> Result<Vec<(String, String)>> {
    let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    for node in options {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        let name = option.defname.as_str();
        let value = parameter_text(option);
        let bounds = match (name, method) {
            ("fillfactor", BTREE | HASH | SPGIST) => Some((10, 100)),
            ("pages_per_range", BRIN) => Some((1, 131_072)),
            ("length", BLOOM) => Some((1, 4_096)),
            (name, BLOOM) if is_bloom_column(name) => Some((1, 4_095)),
            ("fillfactor", GIST) => Some((10, 100)),
            ("gin_pending_list_limit", GIN) => Some((64, i64::from(i32::MAX))),
            ("deduplicate_items", BTREE) | ("autosummarize", BRIN) | ("fastupdate", GIN) => None,
            ("buffering", GIST) => {
                check_buffering(&value)?;
                known.retain(|(other, _)| other != name);
                known.push((name.to_owned(), value));
                continue;
            }
            _ => return Err(invalid(format!("unrecognized parameter \"{name}\""))),
        };
        match bounds {
            None => {
                parse_bool(&value).ok_or_else(|| {
                    invalid(format!(
                        "invalid value for boolean option \"{name}\": {value}"
                    ))
                })?;
            }
            Some((least, greatest)) => {
                let number: i64 = value.parse().map_err(|_| {
                    invalid(format!(
                        "invalid value for integer option \"{name}\": {value}"
                    ))
                })?;
                if !(least..=greatest).contains(&number) {
                    let message = format!("value {value} out of bounds for option \"{name}\"");
                    return Err(invalid(message).with_detail(format!(
                        "Valid values are between \"{least}\" and \"{greatest}\"."
                    )));
                }
            }
        }
        known.retain(|(other, _)| other != name);
        known.push((name.to_owned(), value));
    }
    Ok(known)
}
