//! ADD COLUMN, DROP COLUMN and ALTER COLUMN.

use std::sync::Arc;

use base::engine::TreeKind;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterTableCmd, AlterTableType, ColumnDef, ConstrType, Constraint, DefElem, DropBehavior, Node,
};

use super::super::super::in_use::Using;
use super::super::super::utility::option_text;
use super::super::super::{NoticeSeverity, Session, Sink};
use super::super::table::{cut_name, order_constraints};
use super::column_place;
use super::inherited::columns_with;
use super::rewrite::{null_in, NewValue};
use catalog::statistics_store;
use catalog::{store, Catalog, Identity, Object, RelationKind, Table, Trigger, Uses};
use execution::exec::program::Evaluate;
use execution::exec::Exec;
use execution::system::Relations;
use planner::bind::{self, BindContext};
use planner::plan::permit::Permit;
use planner::plan::Program;
use syntax::parser::NodeEnum;
use types::{self, Datum, TypeId};

/// A column has at most so many common values and parts of a histogram.
const TARGET_MAX: i32 = 10_000;

impl Session {
    /// ADD COLUMN.
    pub(super) fn alter_add_column(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        old: &Arc<Table>,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let column = column_def(command)?;
        let name = cut_name(&column.colname);
        if old.column(&name).is_some() {
            let message = format!(
                "column \"{name}\" of relation \"{}\" already exists",
                old.name
            );
            if !command.missing_ok {
                return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
            }
            let message = format!("{message}, skipping");
            let body = Error::new(SqlState::DUPLICATE_COLUMN, message);
            return self.notice(NoticeSeverity::Notice, body, sink);
        }
        let mut new = (**old).clone();
        let mut constraints = Vec::new();
        self.add_column(text, catalog, column, &mut new, &mut constraints)?;
        let sequence = self.own_sequence(text, catalog, column, &mut new, &[])?;
        self.add_generation(text, catalog, column, &mut new)?;
        if let (Some(sequence), Some(open)) = (&sequence, &mut self.open) {
            store::insert_table(open.txn.as_mut(), catalog, sequence)?;
            self.changed_catalog();
        }
        let is_primary =
            |added: &(Constraint, _)| added.0.contype == ConstrType::ConstrPrimary as i32;
        if old.has_children() && constraints.iter().any(is_primary) {
            // The heirs' have no NULLs either, as in PostgreSQL.
            new.columns
                .last_mut()
                .iter_mut()
                .for_each(|column| column.not_null = true);
        }
        self.fill_column(old, new.clone())?;
        if old.kind == RelationKind::Partitioned || old.has_children() {
            self.add_column_below(&new, command, sink)?;
        }
        order_constraints(&mut constraints);
        for (constraint, place) in &constraints {
            let (catalog, table) = self.own_table(old.oid)?;
            self.add_to_existing(text, &catalog, &table, (constraint, *place), command, sink)?;
        }
        Ok(())
    }

    /// Gives older rows their value of the last column, which is new, and puts the table into the
    /// catalog.
    pub(super) fn fill_column(&mut self, old: &Arc<Table>, mut new: Table) -> Result<()> {
        if !old.kind.has_rows() {
            return self.put_table(&new);
        }
        let place = new.columns.len() - 1;
        let catalog = self.current_catalog()?;
        let table = Arc::new(new.clone());
        if new.columns[place].generated {
            let generated = self.try_binding("", &catalog, |binder| binder.generated(&table))?;
            let values: Vec<_> = generated
                .into_iter()
                .filter(|(at, _)| *at == place)
                .map(|(place, program)| NewValue {
                    place,
                    program,
                    of_new: true,
                })
                .collect();
            let mut new = self.with_new_trees(&new)?;
            return self.rewrite(old, &mut new, &values);
        }
        let (program, volatile) =
            self.try_binding("", &catalog, |binder| binder.default_program(&table, place))?;
        if volatile {
            let value = NewValue {
                place,
                program,
                of_new: false,
            };
            let mut new = self.with_new_trees(&new)?;
            return self.rewrite(old, &mut new, &[value]);
        }
        let value = self.using(Using::tables([&**old]), |session| {
            session.compute(&catalog, &program)
        })?;
        let column = &mut new.columns[place];
        if value.is_null() {
            if column.not_null {
                let column = column.clone();
                self.for_each_row(old, |_, _, _| Err(null_in(&catalog, old, &column)))?;
            }
        } else {
            let mut bytes = Vec::new();
            types::encode_column(column.type_id, column.typmod, &value, &mut bytes)?;
            column.missing = Some(bytes);
        }
        if new.long_tree == store::NO_TREE {
            new.long_tree = store::long_tree(&new);
            let open = self
                .open
                .as_mut()
                .filter(|_| new.long_tree != store::NO_TREE);
            if let Some(open) = open {
                store::create_tree(open.txn.as_mut(), new.long_tree, TreeKind::Table)?;
            }
        }
        self.put_table(&new)
    }

    /// The value of a program that looks at no row.
    fn compute(&mut self, catalog: &Arc<Catalog>, program: &Program) -> Result<Datum> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.txn.begin_statement()?;
        let permit = Permit::of_definition(catalog);
        let eval = self.eval.clone();
        let mut cx = Exec::new(&Relations, self, permit, &eval, &[]);
        program.eval(&mut cx, &[])
    }

    /// DROP COLUMN.
    pub(super) fn alter_drop_column(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let place = match column_place(table, &command.name) {
            Ok(place) => place,
            Err(missing) if command.missing_ok => {
                return self.skip(missing.message(), sink);
            }
            Err(missing) => return Err(missing),
        };
        let catalog = self.current_catalog()?;
        let mut roots = vec![Object::Column(table.oid, place)];
        for below in catalog.below(table) {
            let place = below.column(&command.name);
            roots.extend(place.map(|place| Object::Column(below.oid, place)));
        }
        if table.has_children() {
            self.with_below(table.oid, command)?;
        }
        let catalog = self.current_catalog()?;
        roots.extend(columns_with(&catalog, table, &command.name));
        let cascade = command.behavior == DropBehavior::DropCascade as i32;
        self.drop_objects(|_| Ok(roots.clone()), cascade, sink)
    }

    /// ALTER COLUMN … SET DEFAULT and DROP DEFAULT.
    pub(super) fn alter_default(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let place = column_place(table, &command.name)?;
        let column = &table.columns[place];
        let shown = format!("column \"{}\" of relation \"{}\"", column.name, table.name);
        if column.identity != Identity::None {
            let error = Error::new(
                SqlState::SYNTAX_ERROR,
                format!("{shown} is an identity column"),
            );
            return Err(match command.def {
                Some(_) => error,
                None => {
                    error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
                }
            });
        }
        if column.generated {
            let error = Error::new(
                SqlState::SYNTAX_ERROR,
                format!("{shown} is a generated column"),
            );
            return Err(match command.def {
                Some(_) => error,
                None => {
                    error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
                }
            });
        }
        let mut new = (**table).clone();
        let changed = &mut new.columns[place];
        (changed.default, changed.default_uses) = match &command.def {
            None => (None, Vec::new()),
            Some(node) => self.column_default(text, catalog, column, node)?,
        };
        self.put_table(&new)
    }

    /// ALTER COLUMN … SET NOT NULL and DROP NOT NULL.
    pub(super) fn alter_not_null(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
        wanted: bool,
    ) -> Result<()> {
        let place = column_place(table, &command.name)?;
        let column = &table.columns[place];
        if column.not_null == wanted {
            return Ok(());
        }
        if wanted {
            self.check_not_null(table, place)?;
        } else {
            let refused = |state, what| {
                let message = format!("column \"{}\" {what}", column.name);
                Err(Error::new(state, message))
            };
            if column.identity != Identity::None {
                let what = format!("of relation \"{}\" is an identity column", table.name);
                return refused(SqlState::SYNTAX_ERROR, what);
            }
            let key = table.primary_index();
            if key.is_some_and(|key| key.columns.iter().any(|c| c.column == place)) {
                let what = "is in a primary key".to_owned();
                return refused(SqlState::INVALID_TABLE_DEFINITION, what);
            }
            let mut indexes = table.indexes.iter().filter(|index| index.replica_identity);
            if indexes.any(|index| index.columns.iter().any(|c| c.column == place)) {
                let what = "is in index used as replica identity".to_owned();
                return refused(SqlState::INVALID_TABLE_DEFINITION, what);
            }
        }
        let mut new = (**table).clone();
        new.columns[place].not_null = wanted;
        self.put_table(&new)
    }

    /// ALTER COLUMN … SET STATISTICS.
    pub(super) fn alter_statistics(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let value = command.def.as_ref().and_then(|node| node.node.as_ref());
        let Some(NodeEnum::Integer(value)) = value else {
            return Err(Error::internal("a statistics target that is no number"));
        };
        let mut target = value.ival;
        if target < -1 {
            let message = format!("statistics target {target} is too low");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        if target > TARGET_MAX {
            target = TARGET_MAX;
            let message = format!("lowering statistics target to {target}");
            self.warn(SqlState::INVALID_PARAMETER_VALUE, &message, sink)?;
        }
        let place = column_place(table, &command.name)?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let said = (target >= 0).then_some(target);
        let (txn, database) = (open.txn.as_mut(), catalog.database.oid);
        statistics_store::put_target(txn, database, (table.oid, place), said)?;
        self.changed_catalog();
        Ok(())
    }

    /// ALTER COLUMN … SET (…) and RESET (…).
    pub(super) fn alter_column_options(
        &mut self,
        table: &Table,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let place = column_place(table, &command.name)?;
        let Some(Some(NodeEnum::List(list))) = command.def.as_ref().map(|node| &node.node) else {
            return Err(Error::internal("options of a column that are no list"));
        };
        let mut new = table.clone();
        let kept = &mut new.columns[place].options;
        for node in &list.items {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            kept.retain(|known| known.0 != option.defname);
            if command.subtype == AlterTableType::AtSetOptions as i32 {
                let value = match option.arg {
                    None => "true".to_owned(),
                    Some(_) => option_text(option),
                };
                check_column_option(&option.defname, &value)?;
                kept.push((option.defname.clone(), value));
            }
        }
        self.put_table(&new)
    }

    /// ALTER COLUMN … TYPE, of several columns at once.
    pub(super) fn alter_types(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        old: &Arc<Table>,
        group: &[&AlterTableCmd],
    ) -> Result<()> {
        let mut new = (**old).clone();
        let (mut values, mut changed) = (Vec::new(), Vec::new());
        for command in group {
            let place = column_place(old, &command.name)?;
            refuse_used_column(catalog, old, place)?;
            let definition = column_def(command)?;
            let (ty, typmod, collation) = self.type_of(text, catalog, definition)?;
            self.may_use_type(catalog, ty)?;
            let counts = [TypeId::INT2, TypeId::INT4, TypeId::INT8].contains(&ty);
            if old.columns[place].identity != Identity::None && !counts {
                return Err(super::super::sequence::wrong_type(true));
            }
            super::super::composite::check_not_itself(catalog, old, ty)?;
            let using = definition.raw_default.as_deref();
            let program = self.try_binding(text, catalog, |binder| {
                binder.check_retyped_default(old, place, (ty, typmod))?;
                binder.conversion(old, place, (ty, typmod), using)
            })?;
            let column = &mut new.columns[place];
            let database = catalog.database.oid;
            if let Some(open) = &mut self.open {
                statistics_store::forget_found(open.txn.as_mut(), database, (old.oid, place))?;
            }
            let before = (column.type_id, column.typmod, column.domain);
            (column.type_id, column.typmod, column.domain) = match ty.is_of_domain() {
                true => {
                    let (base, typmod) = catalog.base_type(ty);
                    (base, typmod, ty)
                }
                false => (ty, typmod, TypeId::NONE),
            };
            let widens = is_widened(before.0, before.1, column.type_id, column.typmod);
            // What is of another domain has to meet that one's constraints.
            let is_tested = column.domain != TypeId::NONE && column.domain != before.2;
            let same = using.is_none() && widens && !is_tested;
            column.collation = collation;
            (column.said_storage, column.compression) = (None, None);
            changed.push(place);
            if !same {
                values.push(NewValue {
                    place,
                    program,
                    of_new: false,
                });
            }
        }
        for command in group {
            let place = column_place(old, &command.name)?;
            if old.columns[place].identity != Identity::None {
                let options = [as_type(column_def(command)?)];
                self.change_identity_sequence(text, old, place, &options)?;
            }
        }
        let retyped = Arc::new(new.clone());
        for index in &mut new.indexes {
            self.try_binding("", catalog, |binder| binder.retype_index(&retyped, index))?;
            store::check_order(&retyped, index)?;
        }
        self.retype_statistics(&retyped, &changed)?;
        self.check_keys_with(catalog, &new, &changed)?;
        if values.is_empty() || !old.kind.has_rows() {
            self.put_table(&new)?;
        } else {
            let mut new = self.with_new_trees(&new)?;
            self.rewrite(old, &mut new, &values)?;
        }
        self.recheck(old.oid, &changed)
    }

    /// The type, its modifier and the collation that a column is to have.
    fn type_of(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        definition: &ColumnDef,
    ) -> Result<(TypeId, i32, u32)> {
        let search_path = self.search_path(catalog);
        let cx = BindContext {
            catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text,
            literals: None,
            variables: None,
        };
        let name = definition.type_name.as_ref();
        let name = name.ok_or_else(|| Error::internal("a column without a type"))?;
        let (ty, typmod) = bind::type_names::resolve(&cx, name)?;
        if ty.category() == types::Category::Pseudo || ty == TypeId::UNKNOWN {
            return Err(Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column has pseudo-type {ty}"),
            ));
        }
        let collation = match &definition.coll_clause {
            Some(clause) => self.given_collation(text, catalog, clause, catalog.base_type(ty).0)?,
            None => catalog.domain_collation(ty),
        };
        Ok((ty, typmod, collation))
    }

    /// Foreign keys from and to columns with new types must still compare.
    fn check_keys_with(&self, catalog: &Catalog, new: &Table, changed: &[usize]) -> Result<()> {
        let refers = new
            .foreign_keys
            .iter()
            .filter(|key| key.columns.iter().any(|place| changed.contains(place)))
            .filter_map(|key| {
                let parent = match key.table == new.oid {
                    true => new,
                    false => catalog.table_by_oid(key.table)?,
                };
                Some((key, new, parent))
            });
        let referred = catalog
            .referrers(new.oid)
            .filter(|(child, _)| child.oid != new.oid)
            .filter(|(_, key)| key.referenced.iter().any(|place| changed.contains(place)))
            .map(|(child, key)| (key, &**child, new));
        for (key, child, parent) in refers.chain(referred) {
            let (columns, referenced) = (&key.columns, &key.referenced);
            super::super::foreign::check_types(&key.name, child, columns, parent, referenced)?;
        }
        Ok(())
    }

    /// Checks constraints again whose columns have other values now.
    fn recheck(&mut self, oid: u32, changed: &[usize]) -> Result<()> {
        let (catalog, table) = self.own_table(oid)?;
        let touched = |places: &[usize]| places.iter().any(|place| changed.contains(place));
        for check in &table.checks {
            if check.validated && touched(&check.columns) {
                self.check_condition(&table, &check.name)?;
            }
        }
        for key in &table.foreign_keys {
            if key.validated && touched(&key.columns) {
                self.check_foreign_key(&table, key)?;
            }
        }
        for (child, key) in catalog.referrers(oid) {
            if key.validated && child.oid != oid && touched(&key.referenced) {
                self.check_foreign_key(child, key)?;
            }
        }
        Ok(())
    }
}

fn column_def(command: &AlterTableCmd) -> Result<&ColumnDef> {
    match command.def.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::ColumnDef(column)) => Ok(column),
        _ => Err(Error::internal("a column without a definition")),
    }
}

/// Whether every stored value of the one type is one of the other as it is.
fn is_widened(from: TypeId, from_typmod: i32, to: TypeId, to_typmod: i32) -> bool {
    let is_text = |ty| matches!(ty, TypeId::TEXT | TypeId::VARCHAR);
    let wider = to_typmod == -1 || (from_typmod != -1 && from_typmod <= to_typmod);
    (from == to && from_typmod == to_typmod) || (is_text(from) && is_text(to) && wider)
}

/// 0A000 for a column that views or generated columns look at.
/// The option AS of a sequence, with the type of a column.
fn as_type(definition: &ColumnDef) -> Node {
    let ty = definition.type_name.clone().map(NodeEnum::TypeName);
    let option = DefElem {
        defname: "as".to_owned(),
        arg: Some(Box::new(Node { node: ty })),
        location: -1,
        ..DefElem::default()
    };
    Node {
        node: Some(NodeEnum::DefElem(Box::new(option))),
    }
}

fn refuse_used_column(catalog: &Catalog, table: &Table, place: usize) -> Result<()> {
    let name = &table.columns[place].name;
    let mut others = table.columns.iter();
    let user = others.find(|other| !other.dropped && other.generated_from.contains(&place));
    if let Some(user) = user {
        return Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot alter type of a column used by a generated column",
        )
        .with_detail(format!(
            "Column \"{name}\" is used by generated column \"{}\".",
            user.name
        )));
    }
    let looks_at = |trigger: &&Trigger| {
        let condition = trigger.condition.as_ref();
        trigger.columns.contains(&place)
            || condition.is_some_and(|condition| condition.columns.contains(&place))
    };
    if let Some(trigger) = table.triggers.iter().find(looks_at) {
        return Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot alter type of a column used in a trigger definition",
        )
        .with_detail(format!(
            "trigger {} on table {} depends on column \"{name}\"",
            trigger.name, table.name
        )));
    }
    let names_it = |uses: &Uses| uses.relation == table.oid && uses.columns.contains(&place);
    for routine in catalog.routines.iter() {
        if routine.uses.iter().any(names_it) {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a function or procedure",
            )
            .with_detail(format!(
                "function {} depends on column \"{name}\"",
                routine.signature()
            )));
        }
    }
    for view in &catalog.tables {
        let mut policies = view.policies.iter();
        if let Some(policy) = policies.find(|policy| policy.uses.iter().any(names_it)) {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used in a policy definition",
            )
            .with_detail(format!(
                "policy {} on table {} depends on column \"{name}\"",
                policy.name, view.name
            )));
        }
        let mut rules = view.rules.iter();
        if let Some(rule) = rules.find(|rule| rule.uses.iter().any(names_it)) {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a view or rule",
            )
            .with_detail(format!(
                "rule {} on {} {} depends on column \"{name}\"",
                rule.name,
                view.kind.noun(),
                view.name
            )));
        }
        if view.view.iter().flat_map(|view| &view.uses).any(names_it) {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a view or rule",
            )
            .with_detail(format!(
                "rule _RETURN on {} {} depends on column \"{name}\"",
                view.kind.noun(),
                view.name
            )));
        }
    }
    Ok(())
}

/// 22023 for an option of a column that there is not, or not with that value.
fn check_column_option(name: &str, value: &str) -> Result<()> {
    let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if !["n_distinct", "n_distinct_inherited"].contains(&name) {
        return Err(invalid(format!("unrecognized parameter \"{name}\"")));
    }
    let number: f64 = value.parse().map_err(|_| {
        invalid(format!(
            "invalid value for floating point option \"{name}\": {value}"
        ))
    })?;
    match (-1.0..=f64::MAX).contains(&number) {
        true => Ok(()),
        false => Err(
            invalid(format!("value {value} out of bounds for option \"{name}\"")).with_detail(
                format!(
                    "Valid values are between \"-1.000000\" and \"{:.6}\".",
                    f64::MAX
                ),
            ),
        ),
    }
}
