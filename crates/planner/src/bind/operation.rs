//! Operators in expressions: between operands, before one, and over arrays.
//!
//! ```text
//! 1 + 2.5                  the built-in operator of numerics, over a cast
//! a OPERATOR(s.<->) b      the one of schema s: a built-in one, one of an extension, or one that a user has made
//! x = ANY (array)          the operator between x and the elements
//! ```
//! What a name means depends on the operands' types and, where several schemas have operators of that name, on
//! the search path ([`Binder::operation`]). What users have made is in [`super::own_operator`].

use std::borrow::Cow;
use std::rc::Rc;

use base::{Result, SqlState};
use pg_query::protobuf::{AExpr, SubLinkType};

use super::expr::Place;
use super::own_operator::{declared, OwnMatch};
use super::scope::Scope;
use super::{boxed, inner, Binder};
use crate::logical::truth;
use crate::plan::{Expr, ExprKind, Func};
use catalog::PG_CATALOG;
use functions::operands::resolve_operator_among;
use functions::{operators_for, operators_named, OperatorMatch};
use syntax::parser::NodeEnum;
use types::TypeId;

/// What an operator's name and its operands mean.
pub(super) enum Operation {
    /// A built-in operator, or one of an extension.
    BuiltIn(OperatorMatch),
    /// One that a user has made.
    Own(OwnMatch),
}

impl Binder<'_> {
    /// `left name right`.
    pub(super) fn binary(
        &mut self,
        name: &str,
        left: Expr,
        right: Expr,
        location: i32,
    ) -> Result<Expr> {
        self.binary_in(&[name], left, right, location)
    }

    /// The same of a name that may have a schema before it.
    pub(super) fn binary_in(
        &mut self,
        names: &[&str],
        left: Expr,
        right: Expr,
        location: i32,
    ) -> Result<Expr> {
        let name = names.last().copied().unwrap_or_default();
        if left.is_row() && right.is_row() {
            self.refuse_set_in_rows(&left, location)?;
            self.refuse_set_in_rows(&right, location)?;
            return self.compare_rows(names, left, right, location);
        }
        let operands = (declared(&left), declared(&right));
        let found = match self.operation(names, operands, location)? {
            Operation::BuiltIn(found) => found,
            Operation::Own(found) => {
                return self.own_operation(&found, names, vec![left, right], location);
            }
        };
        let left = self.coerce_argument(left, found.argument_types[0])?;
        let right = self.coerce_argument(right, found.argument_types[1])?;
        self.calls(found.operator.function.oid);
        let (found, left, right) = self.compared(name, found, left, right)?;
        let made = operator_call(&found, vec![left, right], location);
        let made = self.refuse_mismatch(made)?;
        self.call_under_collation(made)
    }

    /// What an operator's name means, perhaps with a schema before it, between operands of these types, which
    /// may be domains.
    ///
    /// # Errors
    /// As [`functions::resolve_operator`]; 3F000 and 42501 for the schema.
    pub(super) fn operation(
        &mut self,
        names: &[&str],
        (left, right): (TypeId, TypeId),
        location: i32,
    ) -> Result<Operation> {
        let name = names.last().copied().unwrap_or_default();
        let base = |ty: TypeId| match ty.is_of_domain() {
            true => self.cx.catalog.base_type(ty).0,
            false => ty,
        };
        match self.cx.catalog.operators.knows(name) {
            true => self.own_or_built_in(names, (left, right), location),
            false => {
                let (left, right) = (base(left), base(right));
                let found = self.built_in_operator(names, left, right, location)?;
                Ok(Operation::BuiltIn(found))
            }
        }
    }

    /// An operator where one that a user has made cannot be.
    ///
    /// # Errors
    /// As [`Binder::operation`]; 0A000 for one that a user has made.
    pub(super) fn operator_in(
        &mut self,
        names: &[&str],
        left: TypeId,
        right: TypeId,
        location: i32,
    ) -> Result<OperatorMatch> {
        match self.operation(names, (left, right), location)? {
            Operation::BuiltIn(found) => Ok(found),
            Operation::Own(found) => {
                let what = format!("operator {} of one's own here", found.operator.name);
                Err(self.unsupported(&what, location))
            }
        }
    }

    /// The operator of a name of which users have made none.
    fn built_in_operator(
        &mut self,
        names: &[&str],
        left: TypeId,
        right: TypeId,
        location: i32,
    ) -> Result<OperatorMatch> {
        let catalog = self.cx.catalog;
        let name = names.last().copied().unwrap_or_default();
        let schema = names.len().checked_sub(2).map(|at| names[at]);
        let mut all = Cow::Borrowed(operators_named(name));
        let written = schema.map(|schema| catalog.schema(schema).map(|known| known.oid));
        let written: Option<Vec<u32>> = written.map(|oid| oid.into_iter().collect());
        if written
            .as_ref()
            .is_some_and(|oids| !oids.contains(&PG_CATALOG))
        {
            all = Cow::Borrowed(&[]);
        }
        if !catalog.extensions.is_empty() {
            // What is stored was found once, wherever its extension is now.
            let schemas = match &written {
                Some(oids) if !self.stored || oids.contains(&PG_CATALOG) => Some(oids.as_slice()),
                _ => (!self.stored).then_some(self.cx.search_path),
            };
            let others = catalog.operators_of_extensions(name, schemas);
            if !others.is_empty() {
                all.to_mut().extend(others);
            }
        }
        if let (Some(schema), false) = (schema, self.stored) {
            self.check_operator_schema(schema, location)?;
        }
        let shown = names.join(".");
        let found = resolve_operator_among(&shown, left, right, &all, &self.unasked())
            .map_err(|error| self.place_choice(error, location))?;
        self.note_built_in(&found, names, (left, right), location)?;
        Ok(found)
    }

    /// Notes that the text uses an operator, if that is one of an extension.
    pub(super) fn note_built_in(
        &mut self,
        found: &OperatorMatch,
        names: &[&str],
        (left, right): (TypeId, TypeId),
        location: i32,
    ) -> Result<()> {
        let catalog = self.cx.catalog;
        let kind = if left.is_of_extension() { left } else { right };
        if let ([name], true, true) = (names, self.recorded.is_some(), kind.is_of_extension()) {
            let everywhere = operators_for(name, kind);
            let other = resolve_operator_among(name, left, right, &everywhere, &[]);
            let is_hidden = |other: OperatorMatch| other.operator.oid != found.operator.oid;
            self.refuse_hidden(other.is_ok_and(is_hidden), name, location)?;
        }
        let routine = match catalog.extensions.is_empty() {
            true => None,
            false => catalog.routine_of_operator(found.operator),
        };
        if let Some(routine) = routine {
            self.calls(routine);
            if let Some(recorded) = &mut self.recorded {
                recorded.operators.push(routine);
            }
        }
        Ok(())
    }

    /// 0A000 for what would mean something else once it is stored: the text keeps no search path, by which
    /// an extension that has it was not seen.
    pub(super) fn refuse_hidden(&self, is_hidden: bool, name: &str, location: i32) -> Result<()> {
        match is_hidden {
            true => {
                let what = format!(
                    "{name} stored where the extension that has it is not in the search path"
                );
                Err(self.unsupported(&what, location))
            }
            false => Ok(()),
        }
    }

    pub(super) fn plain_operator(
        &mut self,
        operator: &AExpr,
        names: &[&str],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = operator.location;
        let Some(left) = &operator.lexpr else {
            let right = self.expr(boxed(&operator.rexpr)?, scope, place)?;
            let operands = (TypeId::NONE, declared(&right));
            let found = match self.operation(names, operands, location)? {
                Operation::BuiltIn(found) => found,
                Operation::Own(found) => {
                    return self.own_operation(&found, names, vec![right], location);
                }
            };
            let arg = self.coerce_argument(right, found.argument_types[0])?;
            self.calls(found.operator.function.oid);
            return Ok(operator_call(&found, vec![arg], location));
        };
        let left = self.expr(inner(left)?, scope, place)?;
        // `(a, b) = (SELECT …)` compares a row with a subquery's.
        if let (true, NodeEnum::SubLink(link)) = (left.is_row(), boxed(&operator.rexpr)?) {
            if link.sub_link_type == SubLinkType::ExprSublink as i32 && place.no_subquery.is_none()
            {
                self.refuse_set_in_rows(&left, location)?;
                return self.compare_with_subquery(names, left, link, scope, place, location);
            }
        }
        let right = self.expr(boxed(&operator.rexpr)?, scope, place)?;
        self.binary_in(names, left, right, location)
    }

    /// Both sides of an equality, with its function.
    #[allow(clippy::type_complexity)]
    pub(super) fn equality(
        &mut self,
        left: Expr,
        right: Expr,
        location: i32,
    ) -> Result<(Expr, Expr, Func, Rc<[TypeId]>)> {
        let found = self.operator_in(&["="], declared(&left), declared(&right), location)?;
        let left = self.coerce_argument(left, found.argument_types[0])?;
        let right = self.coerce_argument(right, found.argument_types[1])?;
        let (found, left, right) = self.compared("=", found, left, right)?;
        let types = Rc::from(found.argument_types.as_slice());
        Ok((left, right, Func(found.operator.function), types))
    }

    /// `left name ANY (array)`, or with ALL.
    pub(super) fn any_array(
        &mut self,
        names: &[&str],
        left: Expr,
        right: Expr,
        all: bool,
        location: i32,
    ) -> Result<Expr> {
        let mut right = right;
        if right.is_untyped() {
            let element = match left.is_untyped() {
                true => TypeId::TEXT,
                false => self.element_beside(names, left.ty, location),
            };
            let array = element.array_of().unwrap_or(TypeId::TEXT_ARRAY);
            right = self.coerce_argument(right, array)?;
        }
        let element = match right.ty {
            TypeId::INT2VECTOR => Some(TypeId::INT2),
            TypeId::OIDVECTOR => Some(TypeId::OID),
            ty => ty.array_element(),
        };
        let Some(element) = element else {
            return Err(self.error(
                SqlState::WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires array on right side",
                location,
            ));
        };
        let found = match self.operation(names, (declared(&left), element), location)? {
            Operation::BuiltIn(found) => found,
            Operation::Own(found) => {
                self.check_quantified(found.result, found.routine.set, location)?;
                return self.own_any_array(&found, names, (left, right), all, location);
            }
        };
        self.check_quantified(found.result, false, location)?;
        let left = self.coerce_argument(left, found.argument_types[0])?;
        if let Some(wanted) = found.argument_types[1].array_of() {
            right = self.coerce_argument(right, wanted)?;
        }
        let name = names.last().copied().unwrap_or_default();
        let (found, left, right) = self.compared(name, found, left, right)?;
        let types = Rc::from(found.argument_types.as_slice());
        let function = Func(found.operator.function);
        let (left, right) = (Box::new(left), Box::new(right));
        Ok(truth(
            ExprKind::AnyArray(left, right, function, types, all),
            location,
        ))
    }

    /// 42809 for an operator that does not say of each element whether it is one.
    fn check_quantified(&self, result: TypeId, set: bool, location: i32) -> Result<()> {
        let what = match (result, set) {
            (_, true) => "not to return a set",
            (TypeId::BOOL, false) => return Ok(()),
            _ => "to yield boolean",
        };
        let message = format!("op ANY/ALL (array) requires operator {what}");
        Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, location))
    }

    /// The type of the elements of an array that a literal without a type is, beside an operand.
    fn element_beside(&mut self, names: &[&str], left: TypeId, location: i32) -> TypeId {
        let mut right_of = |right: TypeId| {
            let found = self.operation(names, (left, right), location);
            found.map(|found| match found {
                Operation::BuiltIn(found) => found.argument_types[1],
                Operation::Own(found) => found.argument_types[1],
            })
        };
        // `varchar = ANY ($1)` compares texts: the parameter is an array of these.
        let found = right_of(left).or_else(|_| right_of(TypeId::UNKNOWN));
        let right = found.unwrap_or(left);
        match right.is_polymorphic() {
            true => left,
            false => right,
        }
    }
}

pub(super) fn operator_call(found: &OperatorMatch, args: Vec<Expr>, location: i32) -> Expr {
    let types = Rc::from(found.argument_types.as_slice());
    let function = Func(found.operator.function);
    Expr::new(
        ExprKind::Call(function, args, types),
        found.result,
        location,
    )
}
