//! Records among the variables of a block, field by field.
//!
//! ```text
//! insert into log values (tg_op, new.*)      insert into log values (tg_op, new.id, new.name)
//! select (new).*                             select new.id, new.name
//! ```
//! # What it leaves out
//! Items of FROM, which `*` means before any variable.

use pg_query::protobuf::{ColumnRef, Node, String as StringNode};

use super::scope::Scope;
use super::{strings, Binder};
use syntax::parser::NodeEnum;

/// All fields of a record.
pub(super) struct Fields {
    /// The record, as it is named.
    pub record: String,
    /// The fields.
    pub names: Vec<String>,
    /// Where it stands.
    pub location: i32,
}

impl Binder<'_> {
    /// The fields that `r.*` or `(r).*` means, if `r` is a record among the variables.
    pub(super) fn fields_of(&self, node: &NodeEnum, scope: &Scope<'_>) -> Option<Fields> {
        let variables = self.cx.variables?;
        let is_star = |node: &Node| matches!(node.node, Some(NodeEnum::AStar(_)));
        let (column, starred) = match node {
            NodeEnum::ColumnRef(column) => (column, column.fields.last().is_some_and(is_star)),
            NodeEnum::AIndirection(part) => match part.arg.as_ref()?.node.as_ref()? {
                NodeEnum::ColumnRef(column) if column.fields.len() == 1 => (
                    column,
                    matches!(part.indirection.as_slice(), [star] if is_star(star)),
                ),
                _ => return None,
            },
            _ => return None,
        };
        let [record] = strings(&column.fields)[..] else {
            return None;
        };
        let mut levels = scope.levels();
        let is_item = levels.any(|level| level.tables.iter().any(|table| table.alias == record));
        if !starred || is_item {
            return None;
        }
        Some(Fields {
            names: variables.fields(record)?,
            record: record.to_owned(),
            location: column.location,
        })
    }

    /// Expressions with the fields of records in the place of `r.*`; none if there is no such.
    pub(super) fn spread(&self, nodes: &[Node], scope: &Scope<'_>) -> Option<Vec<Node>> {
        self.cx.variables?;
        let fields = |node: &Node| self.fields_of(node.node.as_ref()?, scope);
        if !nodes.iter().any(|node| fields(node).is_some()) {
            return None;
        }
        let mut out = Vec::new();
        for node in nodes {
            match fields(node) {
                None => out.push(node.clone()),
                Some(fields) => out.extend(fields.names.iter().map(|name| field(&fields, name))),
            }
        }
        Some(out)
    }
}

/// `r.f`.
fn field(fields: &Fields, name: &str) -> Node {
    let part = |text: &str| Node {
        node: Some(NodeEnum::String(StringNode {
            sval: text.to_owned(),
        })),
    };
    Node {
        node: Some(NodeEnum::ColumnRef(ColumnRef {
            fields: vec![part(&fields.record), part(name)],
            location: fields.location,
        })),
    }
}
