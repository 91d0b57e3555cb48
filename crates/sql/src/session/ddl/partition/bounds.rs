//! FOR VALUES: what a bound says, and whether it leaves room for a partition.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Node, PartitionBoundSpec};

use super::super::super::Session;
use super::{definition, invalid, placed};
use catalog::partition::{
    compare_ends, differing_part, Bound, Edge, PartitionKey, PartitionOf, Strategy,
};
use catalog::{Catalog, KeySource, Table};
use execution::exec::partition::end_text;
use syntax::parser::NodeEnum;
use types::{self, Datum};

/// The words MINVALUE and MAXVALUE, which the grammar takes for names of columns.
fn edge_word(node: &Node) -> Option<Edge> {
    let Some(NodeEnum::ColumnRef(column)) = &node.node else {
        return None;
    };
    let [Node {
        node: Some(NodeEnum::String(name)),
    }] = column.fields.as_slice()
    else {
        return None;
    };
    match name.sval.as_str() {
        "minvalue" => Some(Edge::Min),
        "maxvalue" => Some(Edge::Max),
        _ => None,
    }
}

fn location_of(node: Option<&Node>) -> i32 {
    match node.and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::ColumnRef(column)) => column.location,
        Some(NodeEnum::AConst(constant)) => constant.location,
        Some(NodeEnum::FuncCall(call)) => call.location,
        Some(NodeEnum::TypeCast(cast)) => match &cast.arg {
            Some(arg) => location_of(Some(arg)),
            None => cast.location,
        },
        Some(NodeEnum::AExpr(expr)) => match &expr.lexpr {
            Some(left) => location_of(Some(left)),
            None => expr.location,
        },
        _ => -1,
    }
}

impl Session {
    /// FOR VALUES, or DEFAULT, for a partition of a table.
    pub(in super::super) fn bound_of(
        &mut self,
        text: &str,
        parent: &Table,
        spec: &PartitionBoundSpec,
    ) -> Result<PartitionOf> {
        let key = parent.partitioning()?.clone();
        let types = key.types(parent);
        let of = |bound| PartitionOf {
            parent: parent.oid,
            types: types.clone(),
            bound,
            parts: Vec::new(),
        };
        let wrong = |what: &str| {
            let message = format!("invalid bound specification for a {what} partition");
            Err(placed(text, spec.location, definition(message)))
        };
        if spec.is_default {
            if key.strategy == Strategy::Hash {
                let message = "a hash-partitioned table may not have a default partition";
                return Err(definition(message));
            }
            return Ok(of(Bound::Default));
        }
        Ok(of(match key.strategy {
            Strategy::Hash if spec.strategy != "h" => return wrong("hash"),
            Strategy::List if spec.strategy != "l" => return wrong("list"),
            Strategy::Range if spec.strategy != "r" => return wrong("range"),
            Strategy::Hash => remainder_of(spec)?,
            Strategy::List => {
                let mut values: Vec<Datum> = Vec::new();
                for node in &spec.listdatums {
                    let value = self.bound_value(text, parent, &key, 0, node)?;
                    let known = Bound::List(values.clone());
                    if !known.names(&types, std::slice::from_ref(&value)) {
                        values.push(value);
                    }
                }
                Bound::List(values)
            }
            Strategy::Range => {
                let count = key.parts.len();
                for (end, word) in [(&spec.lowerdatums, "FROM"), (&spec.upperdatums, "TO")] {
                    if end.len() != count {
                        return Err(definition(format!(
                            "{word} must specify exactly one value per partitioning column"
                        )));
                    }
                }
                let low = self.bound_end(text, parent, &key, &spec.lowerdatums)?;
                let high = self.bound_end(text, parent, &key, &spec.upperdatums)?;
                Bound::Range(low, high)
            }
        }))
    }

    fn bound_end(
        &mut self,
        text: &str,
        parent: &Table,
        key: &PartitionKey,
        nodes: &[Node],
    ) -> Result<Vec<Edge>> {
        let mut end: Vec<Edge> = Vec::new();
        for (part, node) in nodes.iter().enumerate() {
            let edge = match edge_word(node) {
                Some(edge) => edge,
                None => {
                    let value = self.bound_value(text, parent, key, part, node)?;
                    if value.is_null() {
                        return Err(invalid("cannot specify NULL in range bound"));
                    }
                    Edge::Value(value)
                }
            };
            let word = match end.last() {
                Some(Edge::Min) if edge != Edge::Min => Some("MINVALUE"),
                Some(Edge::Max) if edge != Edge::Max => Some("MAXVALUE"),
                _ => None,
            };
            if let Some(word) = word {
                let message = format!("every bound following {word} must also be {word}");
                let error = Error::new(SqlState::DATATYPE_MISMATCH, message);
                return Err(placed(text, location_of(Some(node)), error));
            }
            end.push(edge);
        }
        Ok(end)
    }

    /// A value in a bound, as one of the key's.
    fn bound_value(
        &mut self,
        text: &str,
        parent: &Table,
        key: &PartitionKey,
        part: usize,
        node: &Node,
    ) -> Result<Datum> {
        let part = &key.parts[part];
        let ty = part.type_id(parent);
        let (typmod, name) = match &part.source {
            KeySource::Column(place) => {
                let column = &parent.columns[*place];
                (column.typmod, column.name.clone())
            }
            KeySource::Expression { typmod, text, .. } => (*typmod, text.clone()),
        };
        let value = self.execute_parameter(text, node, 0, ty);
        let value = value.map_err(|error| match error.state() {
            SqlState::DATATYPE_MISMATCH => {
                let message =
                    format!("specified value cannot be cast to type {ty} for column \"{name}\"");
                let error = Error::new(SqlState::DATATYPE_MISMATCH, message);
                placed(text, location_of(Some(node)), error)
            }
            _ => error,
        })?;
        types::apply_typmod(ty, typmod, value, false)
    }

    /// 42P17 for a bound without room for rows, or which overlaps another.
    pub(in super::super) fn check_partition_bound(
        &mut self,
        text: &str,
        catalog: &Catalog,
        parent: &Table,
        of: &PartitionOf,
        spec: Option<&PartitionBoundSpec>,
        name: &str,
    ) -> Result<()> {
        let at = |end: Option<&Vec<Node>>| location_of(end.and_then(|end| end.first()));
        let lower = at(spec.map(|spec| &spec.lowerdatums));
        if let Bound::Range(low, high) = &of.bound {
            if compare_ends(&of.types, low, high) != std::cmp::Ordering::Less {
                let shown = |end: &[Edge]| end_text(&self.eval, &of.types, end);
                let message = format!("empty range bound specified for partition \"{name}\"");
                let error = invalid(message).with_detail(format!(
                    "Specified lower bound {} is greater than or equal to upper bound {}.",
                    shown(low),
                    shown(high)
                ));
                return Err(placed(text, lower, error));
            }
        }
        if let Bound::Hash { modulus, .. } = of.bound {
            check_modulus(catalog, parent, modulus)?;
        }
        for (known, known_of) in catalog.partitions(parent) {
            if !of.bound.overlaps(&of.types, &known_of.bound) {
                continue;
            }
            if of.bound == Bound::Default {
                let error = invalid(format!(
                    "partition \"{name}\" conflicts with existing default partition \"{}\"",
                    known.name
                ));
                return Err(placed(text, spec.map_or(-1, |spec| spec.location), error));
            }
            let message = format!(
                "partition \"{name}\" would overlap partition \"{}\"",
                known.name
            );
            let location = match (&of.bound, &known_of.bound) {
                (Bound::Range(low, high), Bound::Range(known_low, _)) => {
                    let (end, own) = match compare_ends(&of.types, low, known_low) {
                        std::cmp::Ordering::Less => (spec.map(|spec| &spec.upperdatums), high),
                        _ => (spec.map(|spec| &spec.lowerdatums), low),
                    };
                    let part = differing_part(&of.types, own, known_low).unwrap_or(0);
                    location_of(end.and_then(|end| end.get(part)))
                }
                (Bound::List(values), known) => {
                    let named =
                        |value: &&Datum| known.names(&of.types, std::slice::from_ref(value));
                    let place = values.iter().position(|value| named(&value));
                    let nodes = spec.map(|spec| &spec.listdatums);
                    location_of(nodes.and_then(|nodes| nodes.get(place?)))
                }
                _ => spec.map_or(-1, |spec| spec.location),
            };
            return Err(placed(text, location, invalid(message)));
        }
        Ok(())
    }
}

fn remainder_of(spec: &PartitionBoundSpec) -> Result<Bound> {
    let (modulus, remainder) = (spec.modulus, spec.remainder);
    let wrong = |message: &str| Err(definition(message));
    match (u32::try_from(modulus), u32::try_from(remainder)) {
        (Err(_) | Ok(0), _) => {
            wrong("modulus for hash partition must be an integer value greater than zero")
        }
        (_, Err(_)) => wrong(
            "remainder for hash partition must be an integer value greater than or equal to zero",
        ),
        (Ok(modulus), Ok(remainder)) if remainder >= modulus => {
            wrong("remainder for hash partition must be less than modulus")
        }
        (Ok(modulus), Ok(remainder)) => Ok(Bound::Hash { modulus, remainder }),
    }
}

/// 42P17 unless of any two moduli one divides the other.
fn check_modulus(catalog: &Catalog, parent: &Table, modulus: u32) -> Result<()> {
    let mut known: Vec<(u32, &str)> = Vec::new();
    for (table, of) in catalog.partitions(parent) {
        if let Bound::Hash { modulus, .. } = of.bound {
            known.push((modulus, &table.name));
        }
    }
    known.sort();
    let message = "every hash partition modulus must be a factor of the next larger modulus";
    let below = known.iter().rev().find(|known| known.0 <= modulus);
    let above = known.iter().find(|known| known.0 >= modulus);
    if let Some((other, name)) = below.filter(|below| modulus % below.0 != 0) {
        return Err(invalid(message).with_detail(format!(
            "The new modulus {modulus} is not divisible by {other}, the modulus of existing \
             partition \"{name}\"."
        )));
    }
    if let Some((other, name)) = above.filter(|above| above.0 % modulus != 0) {
        return Err(invalid(message).with_detail(format!(
            "The new modulus {modulus} is not a factor of {other}, the modulus of existing \
             partition \"{name}\"."
        )));
    }
    Ok(())
}
