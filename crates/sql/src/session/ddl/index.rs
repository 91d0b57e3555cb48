//! CREATE INDEX and REINDEX.
//!
//! An index is built beside the readers, while writers wait ([`Session::build_indexes`]); with
//! CONCURRENTLY too, which only keeps it out of transaction blocks here. A rebuilt index is a new
//! tree in the place of the old one. The primary key is the table's own tree, of which nothing is
//! derived, so there is nothing of it to rebuild. Indexes on expressions and with conditions are
//! explained in [`catalog::computed`].
//!
//! # What it leaves out
//! Operator classes and methods other than btree: 0A000.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    CollateClause, IndexElem, IndexStmt, Node, RangeVar, ReindexObjectType, ReindexStmt, SortByDir,
    SortByNulls,
};

use super::super::utility::tag;
use super::super::{CommandTag, Session, Sink};
use super::table::{choose_name, cut_name};
use catalog::access::must_own;
use catalog::store::{self, duplicate_relation};
use catalog::{
    Catalog, Computed, ComputedKey, Index, IndexedColumn, KeySource, RelationKind, RelationRef,
    Table, PG_CATALOG,
};
use planner::bind::{collation, qualified};
use syntax::parser::NodeEnum;
use types::TypeId;

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
        refuse_index_options(create)?;
        let range = create
            .relation
            .as_ref()
            .ok_or_else(|| Error::internal("an index without a table"))?;
        let named = self.find_table(range)?;
        self.must_own_relation(&named)?;
        let old = self.lock_named(range, TableLock::ShareRowExclusive)?;
        self.must_own_relation(&old)?;
        if !old.kind.has_rows() {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot create index on relation \"{}\"", old.name),
            )
            .with_detail(format!(
                "This operation is not supported for {}s.",
                old.kind.noun()
            )));
        }
        self.refuse_pending(&old, "CREATE INDEX")?;
        let catalog = self.current_catalog()?;
        self.may_create_in(&catalog, old.schema)?;
        let mut index = Index {
            unique: create.unique,
            nulls_equal: create.nulls_not_distinct,
            ..self.index_keys(text, &catalog, &old, create)?
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
        index.tree = store::new_tree(&*self.shared.engine.sequences)?;
        store::check_order(&new, &index)?;
        new.indexes.push(index);
        self.add_index(&old, new)?;
        Ok(tag("CREATE INDEX"))
    }

    /// The keys, included columns and condition that CREATE INDEX gives.
    fn index_keys(
        &self,
        text: &str,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        create: &IndexStmt,
    ) -> Result<Index> {
        let mut keys = Vec::new();
        let mut uses = Vec::new();
        for node in &create.index_params {
            let element = index_element(node)?;
            let descending = is_descending(element)?;
            let source = match &element.expr {
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
            let key = ComputedKey { source, descending };
            check_collation(catalog, element, key.type_id(table))?;
            keys.push(key);
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
                uses.extend(bound.1);
                Some(bound.0)
            }
        };
        uses.sort_unstable();
        uses.dedup();
        Ok(Index {
            include,
            ..index_of(keys, condition, uses, create.nulls_not_distinct)
        })
    }

    fn index_key(
        &self,
        text: &str,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        node: &Node,
        uses: &mut Vec<usize>,
    ) -> Result<KeySource> {
        let bound =
            self.try_binding(text, catalog, |binder| binder.check_index_key(table, node))?;
        uses.extend(bound.1);
        Ok(bound.0)
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
                self.rebuild(&table, |_| true)?;
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
            Some((table, _)) => self.rebuild(table, |index| index.oid == oid),
            None => Err(Error::serialization(
                "could not serialize access due to concurrent update",
            )),
        }
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
                dropped.push(index.tree);
                index.tree = store::new_tree(&*self.shared.engine.sequences)?;
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
                descending: key.descending,
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

fn index_element(node: &Node) -> Result<&IndexElem> {
    match &node.node {
        Some(NodeEnum::IndexElem(element)) if element.opclass.is_empty() => Ok(element),
        Some(NodeEnum::IndexElem(_)) => Err(Error::unsupported("an operator class of an index")),
        _ => Err(Error::internal("an index of no element")),
    }
}

/// COLLATE of a key.
fn check_collation(catalog: &Catalog, element: &IndexElem, ty: TypeId) -> Result<()> {
    if element.collation.is_empty() {
        return Ok(());
    }
    let clause = CollateClause {
        collname: element.collation.clone(),
        location: -1,
        ..CollateClause::default()
    };
    collation::resolve("", catalog, &clause, ty).map(drop)
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

fn is_descending(element: &IndexElem) -> Result<bool> {
    let descending = element.ordering == SortByDir::SortbyDesc as i32;
    // An inverted column has its NULLs first, as PostgreSQL's default is.
    let nulls_first = match SortByNulls::try_from(element.nulls_ordering) {
        Ok(SortByNulls::SortbyNullsFirst) => true,
        Ok(SortByNulls::SortbyNullsLast) => false,
        _ => descending,
    };
    match nulls_first == descending {
        true => Ok(descending),
        false => Err(Error::unsupported("this order of NULLs in an index")),
    }
}

fn refuse_index_options(create: &IndexStmt) -> Result<()> {
    let method = create.access_method.as_str();
    let refused = [
        (!matches!(method, "" | "btree"), "an index other than btree"),
        (!create.table_space.is_empty(), "TABLESPACE"),
    ];
    match refused.into_iter().find(|refused| refused.0) {
        Some((_, feature)) => Err(Error::unsupported(feature)),
        None => Ok(()),
    }
}
