//! Values of another type, as assignments of PL/pgSQL make them.

use base::{Error, Result};

use super::super::Session;
use execution::exec::program::Evaluate;
use execution::exec::Exec;
use execution::system::Relations;
use functions::{find_coercion, CastContext, Coercion};
use planner::plan::permit::Permit;
use planner::plan::{Expr, ExprKind, How};
use types::{self, Datum, TypeId};

impl Session {
    /// A value of another type, as an assignment makes it; through its text where no cast does.
    pub(in crate::session) fn convert(
        &mut self,
        value: Datum,
        from: TypeId,
        to: TypeId,
        typmod: i32,
    ) -> Result<Datum> {
        if from == to && typmod == types::NO_TYPMOD {
            return Ok(value);
        }
        if from.is_of_domain() || to.is_of_domain() {
            return self.convert_domain(value, from, to, typmod);
        }
        if let (Datum::Record(record), true) = (&value, to.is_composite()) {
            return self.convert_row(record, to);
        }
        if from != to && self.known_catalog().own_cast(from, to).is_some() {
            self.ensure_open()?;
            let catalog = self.known_catalog().clone();
            let program = self.try_binding("", &catalog, |binder| {
                binder.own_cast_program(from, to, typmod)
            })?;
            if let Some(program) = program {
                return self.run_conversion(&program, value);
            }
        }
        let how = match from == to {
            true => Coercion::Binary,
            false => find_coercion(from, to, CastContext::Explicit).unwrap_or(Coercion::InOut),
        };
        let given = Expr::new(ExprKind::Param(0), from, -1);
        let mut expr = Expr::new(ExprKind::Coerce(Box::new(given), How(how, false)), to, -1);
        if typmod != types::NO_TYPMOD {
            expr = Expr {
                typmod,
                ..Expr::new(ExprKind::Fit(Box::new(expr), false), to, -1)
            };
        }
        let program = planner::plan::compile(&expr);
        self.run_conversion(&program, value)
    }

    /// A row as one of a composite type, field by field; what it lacks is NULL.
    fn convert_row(&mut self, record: &types::Record, to: TypeId) -> Result<Datum> {
        let fields = self.known_catalog().fields(to);
        let fields = fields.ok_or_else(|| Error::internal("a row of no type"))?;
        let mut values = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let wanted = match field.domain {
                TypeId::NONE => field.ty,
                domain => domain,
            };
            values.push(match (record.values.get(at), record.types.get(at)) {
                (Some(value), Some(from)) => {
                    self.convert(value.clone(), *from, wanted, field.typmod)?
                }
                _ => Datum::Null,
            });
        }
        Ok(Datum::Record(std::sync::Arc::new(types::Record {
            types: fields.iter().map(|field| field.ty).collect(),
            values,
            names: Some(fields.into_iter().map(|field| field.name).collect()),
        })))
    }

    /// The same to or from a domain, of which the value must be one.
    fn convert_domain(
        &mut self,
        value: Datum,
        from: TypeId,
        to: TypeId,
        typmod: i32,
    ) -> Result<Datum> {
        let catalog = self.known_catalog().clone();
        let (mut from, _) = catalog.base_type(from);
        if !to.is_of_domain() {
            return self.convert(value, from, to, typmod);
        }
        let (base, _) = catalog.base_type(to);
        let value = match value {
            Datum::Record(record) if from == TypeId::RECORD && base.is_composite() => {
                from = base;
                self.convert_row(&record, base)?
            }
            value => value,
        };
        self.ensure_open()?;
        let program = self.try_binding("", &catalog, |binder| binder.domain_program(from, to))?;
        self.run_conversion(&program, value)
    }

    fn run_conversion(&mut self, program: &planner::plan::Program, value: Datum) -> Result<Datum> {
        self.ensure_open()?;
        let catalog = self.known_catalog().clone();
        let params = [value];
        let permit = Permit::of_definition(&catalog);
        let eval = self.eval.clone();
        let mut cx = Exec::new(&Relations, self, permit, &eval, &params);
        program.eval(&mut cx, &[])
    }
}
