//! The operators of exclusion constraints: as they are given, and as rows are compared by them.
//!
//! ```text
//! exclude using gist (room with =, during with &&)
//!   equal: 1 (room)      others: [$2 && $4], over room │ during │ room │ during
//! ```

use base::{Error, Result, SqlState};

use super::operation::operator_call;
use super::Binder;
use crate::plan::{compile, ExclusionRule, Expr, ExprKind, KeyValue, Search};
use catalog::exclusion::is_of_family;
use catalog::operator_class::OperatorClass;
use catalog::{Index, KeyOrder, Table};
use functions::operands::resolve_operator_among;
use functions::{CastMethod, Operator};
use types::TypeId;

impl Binder<'_> {
    /// The oid of the operator of that name, perhaps with a schema, for a key of a type with an operator
    /// class.
    ///
    /// # Errors
    /// 42883 if there is none, 42809 if it does not fit.
    pub fn exclusion_operator(
        &mut self,
        names: &[&str],
        ty: TypeId,
        class: Option<&OperatorClass>,
    ) -> Result<u32> {
        let found = self.operator_in(names, ty, ty, -1)?;
        let operator = found.operator;
        let is_plain = |to: &TypeId| {
            let cast = functions::cast_between(ty, *to);
            *to == ty || cast.is_some_and(|cast| matches!(cast.method, CastMethod::Binary))
        };
        if !found.argument_types.iter().all(is_plain) {
            let message = format!(
                "operator requires run-time type coercion: {}",
                shown(operator)
            );
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        let refused = |message: String, detail: &str| {
            Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).with_detail(detail))
        };
        if operator.commutator != operator.name || operator.left != operator.right {
            return refused(
                format!("operator {} is not commutative", shown(operator)),
                "Only commutative operators can be used in exclusion constraints.",
            );
        }
        let Some(class) = class.filter(|class| !is_of_family(operator, class)) else {
            return Ok(operator.oid);
        };
        refused(
            format!(
                "operator {} is not a member of operator family \"{}\"",
                shown(operator),
                class.family_name
            ),
            "The exclusion operator must be related to the index operator class for the constraint.",
        )
    }

    /// The operators that the keys of an index have now that columns have other types.
    ///
    /// # Errors
    /// As [`Binder::exclusion_operator`]; 42704 where a key has no operator class any more.
    pub(super) fn retype_exclusion(&mut self, table: &Table, index: &mut Index) -> Result<()> {
        let Some(exclusion) = index.exclusion.clone() else {
            return Ok(());
        };
        let mut operators = Vec::with_capacity(exclusion.operators.len());
        for place in 0..index.key_count() {
            let order = index.key_order(table, place);
            let (Some(KeyOrder { type_id, .. }), Some(operator)) =
                (order, exclusion.operator(place))
            else {
                return Err(Error::internal("a key without an operator"));
            };
            let class = OperatorClass::by_oid(index.form.class_for(place, type_id));
            if class.is_none_or(|class| !class.accepts(type_id)) {
                let method = catalog::operator_class::method_name(index.form.method);
                let message = format!(
                    "data type {type_id} has no default operator class for access method \"{method}\""
                );
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message).with_hint(
                    "You must specify an operator class for the index or define a default \
                     operator class for the data type.",
                ));
            }
            operators.push(self.exclusion_operator(&[operator.name], type_id, class)?);
        }
        if let Some(exclusion) = &mut index.exclusion {
            exclusion.operators = operators;
        }
        Ok(())
    }

    /// What rows conflict by, if an index is that of an exclusion constraint; its keys as its entries
    /// have them.
    pub(super) fn exclusion_rule(
        &mut self,
        index: &Index,
        keys: &[(KeyValue, KeyOrder)],
    ) -> Result<Option<ExclusionRule>> {
        let Some(exclusion) = &index.exclusion else {
            return Ok(None);
        };
        let places = index.stored_order();
        let is_equality = |place: &&usize| exclusion.is_equality(**place);
        let equal = places.iter().take_while(is_equality).count();
        let mut others = Vec::new();
        let mut search = Search::All;
        for (at, place) in places.iter().enumerate().skip(equal) {
            let operator = exclusion.operator(*place);
            let operator = operator.ok_or_else(|| Error::internal("an operator that is gone"))?;
            let ty = keys[at].1.type_id;
            let value = |place: usize| Expr::new(ExprKind::Column(place), ty, -1);
            let name = operator.name;
            let found = resolve_operator_among(name, ty, ty, &[operator], &[])?;
            let (left, right) = (value(at), value(keys.len() + at));
            let left = self.coerce_argument(left, found.argument_types[0])?;
            let right = self.coerce_argument(right, found.argument_types[1])?;
            others.push(compile(&operator_call(&found, vec![left, right], -1)));
            search = match name {
                "&&" if ty.is_range() => Search::Neighbours,
                "<>" => Search::Any,
                _ => Search::All,
            };
        }
        if others.len() > 1 {
            search = Search::All;
        }
        Ok(Some(ExclusionRule {
            equal,
            others,
            search,
            deferrable: exclusion.deferrable,
        }))
    }
}

/// An operator as messages name it.
fn shown(operator: &Operator) -> String {
    format!("{}({},{})", operator.name, operator.left, operator.right)
}
