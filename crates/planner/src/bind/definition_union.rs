//! UNION and its kin, and VALUES, of a query that is shown ([`super::definition`]).
//!
//! ```text
//!  SELECT t.a
//!    FROM t
//! UNION ALL
//!  VALUES (1), (2)
//!   ORDER BY 1;
//! ```
//!
//! # What it leaves out
//! Sides that are sorted or cut and have sides of their own, VALUES that is sorted or cut: such a query
//! keeps the layout in which the catalog has it.

use base::Result;
use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{SelectStmt, SetOperation};

use super::definition::{direction, is_alone, Called};
use super::expr::Place;
use super::scope::Scope;
use super::{boxed, inner, strings, Binder, OutputColumn};
use crate::deparse::layout::{shifted, Layout, STEP};
use syntax::parser::NodeEnum;
use types::TypeId;

impl Binder<'_> {
    /// UNION and its kin.
    pub(super) fn united_text(
        &mut self,
        select: &SelectStmt,
        parent: Option<&Scope<'_>>,
        names: Called<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let (Some(left), Some(right)) = (&select.larg, &select.rarg) else {
            return Ok(None);
        };
        let types = self.output_columns(select, parent)?;
        let types: Vec<_> = types.iter().map(|column| column.ty).collect();
        let nested = !is_alone(left) && (left.op != select.op || left.all != select.all);
        if self
            .part_text(left, (nested, false), parent, (names, &types), layout)?
            .is_none()
        {
            return Ok(None);
        }
        if !nested {
            layout.keyword("", 0, 0, 0);
        }
        layout.text(match SetOperation::try_from(select.op) {
            Ok(SetOperation::SetopUnion) => "UNION ",
            Ok(SetOperation::SetopIntersect) => "INTERSECT ",
            _ => "EXCEPT ",
        });
        layout.text(if select.all { "ALL " } else { "" });
        let nested = !is_alone(right);
        if self
            .part_text(right, (nested, true), parent, (names, &types), layout)?
            .is_none()
        {
            return Ok(None);
        }
        // Columns are counted, as they have no names of their own here.
        let mut order = Vec::new();
        for node in &select.sort_clause {
            let NodeEnum::SortBy(sort) = inner(node)? else {
                return Ok(None);
            };
            let place = match boxed(&sort.node)? {
                NodeEnum::AConst(constant) => match &constant.val {
                    Some(Val::Ival(number)) => usize::try_from(number.ival).ok(),
                    _ => None,
                },
                NodeEnum::ColumnRef(column) => {
                    let wanted = strings(&column.fields);
                    let own = self.output_columns(select, parent)?;
                    let own = own.iter().position(|own| wanted == [own.name.as_str()]);
                    own.map(|own| own + 1)
                }
                _ => None,
            };
            let Some(place) = place else {
                return Ok(None);
            };
            order.push(format!("{place}{}", direction(sort)));
        }
        if !order.is_empty() {
            layout.clause(" ORDER BY ", 1);
            layout.text(&order.join(", "));
        }
        let scope = Scope::inside(parent);
        self.limit_text(select, &scope, layout)?;
        Ok(Some(()))
    }

    /// The columns of a query, as they call themselves.
    fn output_columns(
        &mut self,
        select: &SelectStmt,
        parent: Option<&Scope<'_>>,
    ) -> Result<Vec<OutputColumn>> {
        let laying = self.pause_layout();
        let bound = self.select(select, parent);
        self.resume_layout(laying);
        Ok(bound?.columns)
    }

    /// One side of UNION and its kin: in parentheses or not, the right one or the left.
    fn part_text(
        &mut self,
        part: &SelectStmt,
        (nested, right): (bool, bool),
        parent: Option<&Scope<'_>>,
        (names, types): (Called<'_>, &[TypeId]),
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        if nested {
            layout.text("(");
            layout.keyword("", STEP, 0, 0);
        } else if right {
            layout.keyword("", 0, 0, 0);
        }
        let is_operand = !is_alone(part);
        let ends = part.with_clause.is_some()
            || !part.sort_clause.is_empty()
            || part.limit_count.is_some()
            || part.limit_offset.is_some();
        if is_operand && ends {
            return Ok(None);
        }
        // The columns of the first one have the names.
        let names = match names {
            Called::Itself if right => Called::Nothing,
            names => names,
        };
        if is_operand {
            let mut inside = Layout::default();
            let united = self.nested(|binder| {
                let layout = &mut inside;
                binder.united_text(part, parent, names, layout)
            })?;
            if united.is_none() {
                return Ok(None);
            }
            layout.text(&shifted(&inside.out, layout.level));
        } else {
            if let Some(shown) = &mut self.shown_queries {
                shown.united = Some(types.to_vec());
            }
            let Some(text) = self.query_text(part, parent, names)? else {
                return Ok(None);
            };
            let text = shifted(&text, layout.level);
            match ends {
                true => layout.text(&format!("({text})")),
                false => layout.text(&text),
            }
        }
        if nested && right {
            layout.level -= STEP;
            layout.keyword(")", 0, 0, 0);
        } else if nested {
            layout.keyword(") ", -STEP, 0, 0);
        }
        Ok(Some(()))
    }

    pub(super) fn values_text(
        &mut self,
        select: &SelectStmt,
        parent: Option<&Scope<'_>>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        if !select.sort_clause.is_empty() || select.limit_count.is_some() {
            return Ok(None);
        }
        let scope = Scope::inside(parent);
        self.name_items(&scope);
        layout.level += STEP;
        layout.text(self.opening(" VALUES "));
        // By column: whether a value has no type of its own, and whether one has.
        let mut kinds: Vec<(bool, bool)> = Vec::new();
        for (place, row) in select.values_lists.iter().enumerate() {
            let NodeEnum::List(row) = inner(row)? else {
                return Ok(None);
            };
            let mut values = Vec::new();
            let row = self.row_fields(&row.items, &scope, Place::plain("VALUES"))?;
            kinds.resize(row.len().max(kinds.len()), (false, false));
            for (column, value) in row.into_iter().enumerate() {
                match value.is_untyped() {
                    true => kinds[column].0 = true,
                    false => kinds[column].1 = true,
                }
                let value = self.settle(value)?;
                values.push(self.shown_expr(&value, &scope, false, layout.level)?);
            }
            layout.text(if place > 0 { ", " } else { "" });
            layout.text(&format!("({})", values.join(",")));
        }
        if kinds.contains(&(true, true)) {
            return Ok(None);
        }
        if let Some(shown) = &mut self.shown_queries {
            shown.names.pop();
        }
        Ok(Some(()))
    }
}
