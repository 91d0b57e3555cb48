//! What an assignment of PL/pgSQL assigns to: a variable, a field of a record, or a part of either.
//!
//! ```text
//! a := x            the variable a
//! r.f := x          the field f of the record r
//! a[2] := x         a, which becomes what it is with x as its second element
//! r.f[2].g := x     the field f of r, likewise
//! ```

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{ColumnRef, Node};

use super::code::StepKind;
use super::compile::Compiler;
use super::piece::{Names, PieceKind};
use syntax::parser::{self, NodeEnum};
use syntax::plpgsql::ast::Fragment;

impl Compiler<'_> {
    pub(super) fn target_field(
        &self,
        target: &Fragment,
        names: &Rc<Names>,
    ) -> Result<(usize, Option<String>)> {
        let written = target.text.trim();
        let parts: Vec<_> = written
            .split('.')
            .map(|part| syntax::plpgsql::parse::fold(part.trim()))
            .collect();
        let found = match parts.as_slice() {
            [name] => names.find(name).map(|slot| (slot, None)),
            [first, second] => names
                .find_in(first, second)
                .map(|slot| (slot, None))
                .or_else(|| {
                    let slot = names
                        .find(first)
                        .filter(|slot| self.slots[*slot].is_record)?;
                    Some((slot, Some(second.clone())))
                }),
            _ => None,
        };
        let Some((slot, field)) = found else {
            let error = Error::new(
                SqlState::SYNTAX_ERROR,
                format!("\"{written}\" is not a known variable"),
            );
            return Err(self.at(error, target.start));
        };
        if self.slots[slot].constant {
            let error = Error::new(
                SqlState::of("22005"),
                format!(
                    "variable \"{}\" is declared CONSTANT",
                    self.slots[slot].name
                ),
            );
            return Err(self.at(error, target.start));
        }
        Ok((slot, field))
    }

    /// The variable, or the field of a record, of which a part is assigned to, with the nodes of its
    /// name and of what leads to the part; none if all of it is.
    #[allow(clippy::type_complexity)]
    fn target_part(
        &self,
        target: &Fragment,
        names: &Rc<Names>,
    ) -> Result<Option<(usize, Option<String>, Vec<Node>)>> {
        let written = target.text.trim();
        if !written.contains(['[', '.']) {
            return Ok(None);
        }
        let statements = parser::parse(&format!("SELECT {written}"))?;
        let value = match statements.first().map(|statement| statement.node()) {
            Some(NodeEnum::SelectStmt(select)) => match select.target_list.first() {
                Some(node) => match &node.node {
                    Some(NodeEnum::ResTarget(target)) => target.val.clone(),
                    _ => None,
                },
                None => None,
            },
            _ => None,
        };
        let (column, steps) = match value.and_then(|value| value.node) {
            Some(NodeEnum::ColumnRef(column)) => (column, Vec::new()),
            Some(NodeEnum::AIndirection(part)) => match part.arg.and_then(|arg| arg.node) {
                Some(NodeEnum::ColumnRef(column)) => (column, part.indirection),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let text = |node: &Node| match &node.node {
            Some(NodeEnum::String(name)) => name.sval.clone(),
            _ => String::new(),
        };
        let parts: Vec<String> = column.fields.iter().map(text).collect();
        let labelled = match parts.as_slice() {
            [label, name, ..] => names.find_in(label, name).map(|slot| (slot, 2)),
            _ => None,
        };
        let found = labelled.or_else(|| Some((names.find(parts.first()?)?, 1)));
        let Some((slot, mut used)) = found else {
            return Ok(None);
        };
        let variable = &self.slots[slot];
        let mut field = None;
        if variable.is_record && parts.len() > used {
            field = Some(parts[used].clone());
            used += 1;
        }
        if parts.len() == used && steps.is_empty() {
            return Ok(None);
        }
        if variable.constant {
            let message = format!("variable \"{}\" is declared CONSTANT", variable.name);
            let error = Error::new(SqlState::of("22005"), message);
            return Err(self.at(error, target.start));
        }
        let (of, rest) = column.fields.split_at(used);
        let named = NodeEnum::ColumnRef(ColumnRef {
            fields: of.to_vec(),
            location: -1,
        });
        let mut nodes = vec![Node { node: Some(named) }];
        nodes.extend(rest.iter().cloned().chain(steps));
        Ok(Some((slot, field, nodes)))
    }

    pub(super) fn assign(
        &mut self,
        target: &Fragment,
        value: &Fragment,
        names: &Rc<Names>,
    ) -> Result<StepKind> {
        let part = self.target_part(target, names)?;
        let (slot, field) = match &part {
            Some((slot, field, _)) => (*slot, field.clone()),
            None => self.target_field(target, names)?,
        };
        let mut piece = self.checked(value, names)?;
        piece.kind = PieceKind::Assignment;
        piece.part = part.map(|part| part.2);
        let end = value.start + value.text.trim_end().len();
        if let Some(whole) = self.text.get(target.start..end) {
            let lead = value.text.len() - value.text.trim_start().len();
            let before = self
                .text
                .get(target.start..value.start + lead)
                .unwrap_or("");
            piece.shift -= before.chars().count() as i64;
            piece.shown = whole.into();
        }
        Ok(StepKind::Assign(slot, field, piece))
    }
}
