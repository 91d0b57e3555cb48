//! CREATE TYPE … AS RANGE.
//!
//! ```text
//! create type span as range (subtype = float8)
//! two rows of USER_TYPES: span, span_multirange
//! five of ROUTINES:       span(float8, float8), span(float8, float8, text), span_multirange(), …
//! ```
//! The routines are parts of their type, and have bodies by which the functions are found that make
//! values ([`functions::ranges::constructor`]).
//!
//! # What it leaves out
//! Ranges over domains, over tables' rows, over other ranges of one's own and over arrays of one's own
//! types answer 0A000 ([`types::own`]). A canonical form is PostgreSQL's 42P17: there are no types
//! before their definition, and so no functions of them.

use std::sync::Arc;

use base::engine::RowLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{CreateRangeStmt, DefElem, Node};

use super::super::utility::tag;
use super::super::{CommandTag, Session, Sink};
use super::aggregate::function_names;
use super::table::cut_name;
use catalog::layout::BTREE;
use catalog::operator_class::OperatorClass;
use catalog::routine::{Argument, Language, Mode, Routine};
use catalog::user_type::exists;
use catalog::{collation, Catalog, RangeOf, TypeBody, UserType, SUPERUSER};
use syntax::parser::{char_position, NodeEnum};
use types::text::{truncate_name, NAME_BYTES_MAX};
use types::{Category, TypeId};

/// What the definition says.
#[derive(Default)]
struct Said<'d> {
    element: Option<TypeId>,
    class: Option<Vec<String>>,
    collation: Option<&'d DefElem>,
    canonical: bool,
    difference: Option<Vec<String>>,
    /// The schema and the name of the multirange.
    multirange: Option<(u32, String)>,
}

fn syntax(message: String) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

/// 42P17.
fn invalid(message: &str) -> Error {
    Error::new(SqlState::of("42P17"), message)
}

/// The name of the multirange of a range where none is given.
fn multirange_name(range: &str) -> String {
    const ENDING: &str = "_multirange";
    let name = match range.split_once("range") {
        Some((before, after)) => format!("{before}multirange{after}"),
        None => {
            let mut kept = (NAME_BYTES_MAX - ENDING.len()).min(range.len());
            while !range.is_char_boundary(kept) {
                kept -= 1;
            }
            format!("{}{ENDING}", &range[..kept])
        }
    };
    truncate_name(&name).to_owned()
}

/// The constructors of a range and of its multirange: name, body, arguments, result.
fn constructors(range: &UserType, multirange: &UserType, element: TypeId) -> Vec<Routine> {
    let list = range.id.array_of().unwrap_or_default();
    let made = |of: &UserType, body: &str, types: &[TypeId], mode: Mode| Routine {
        schema: of.schema,
        name: of.name.clone(),
        // The first superuser owns them, whoever made the type, as in PostgreSQL.
        owner: SUPERUSER,
        language: Language::Internal,
        arguments: types
            .iter()
            .map(|type_id| Argument {
                type_id: *type_id,
                mode,
                ..Argument::default()
            })
            .collect(),
        result: of.id,
        volatility: b'i',
        strict: of.id == multirange.id,
        parallel: b's',
        body: body.to_owned(),
        ..Routine::default()
    };
    let bounds = [element, element, TypeId::TEXT];
    vec![
        made(range, "range_constructor2", &bounds[..2], Mode::In),
        made(range, "range_constructor3", &bounds, Mode::In),
        made(multirange, "multirange_constructor0", &[], Mode::In),
        made(multirange, "multirange_constructor1", &[range.id], Mode::In),
        made(
            multirange,
            "multirange_constructor2",
            &[list],
            Mode::Variadic,
        ),
    ]
}

impl Session {
    /// CREATE TYPE … AS RANGE.
    pub(in crate::session) fn create_range(
        &mut self,
        text: &str,
        create: &CreateRangeStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let (schema, name) = self.new_type_name(&catalog, &create.type_name)?;
        let said = self.range_options(text, &catalog, &create.params)?;
        let Some(element) = said.element else {
            return Err(syntax("type attribute \"subtype\" is required".to_owned()));
        };
        if element.category() == Category::Pseudo {
            return Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("range subtype cannot be {element}"),
            ));
        }
        let class = self.range_class(&catalog, element, said.class.as_deref())?;
        let collation = range_collation(self, &catalog, element, said.collation)?;
        if said.canonical {
            let message = "cannot specify a canonical function without a pre-created shell type";
            return Err(invalid(message).with_hint(
                "Create the type as a shell type, then create its canonicalization function, \
                 then do a full CREATE TYPE.",
            ));
        }
        let difference = match &said.difference {
            Some(names) => self.range_difference(&catalog, element, names)?,
            None => 0,
        };
        let (of_list, list_name) = match said.multirange {
            Some((schema, name)) => {
                self.check_type_name(&catalog, schema, &name)?;
                (schema, name)
            }
            None => {
                let made = multirange_name(&name);
                self.check_type_name(&catalog, schema, &made)
                    .map_err(|error| {
                        error
                            .with_detail(format!(
                                "Failed while creating a multirange type for type \"{name}\"."
                            ))
                            .with_hint(
                                "You can manually specify a multirange type name using the \
                                 \"multirange_type_name\" attribute.",
                            )
                    })?;
                (schema, made)
            }
        };
        if (of_list, &list_name) == (schema, &name) {
            return Err(exists(&name));
        }
        self.lock_type(&catalog, element, RowLock::KeyShare)?;
        let owner = self.owner_of_new(&catalog)?;
        let id = self.range_id(&catalog, element)?;
        let list = id.range_multirange().unwrap_or_default();
        let multirange = UserType {
            id: list,
            schema: of_list,
            name: list_name,
            owner,
            body: TypeBody::Multirange,
        };
        let before = self.new_oid()?;
        let range = UserType {
            id,
            schema,
            name,
            owner,
            body: TypeBody::Range(RangeOf {
                number: before + 1,
                class,
                collation,
                difference,
                cast: self.new_oid()?,
            }),
        };
        self.insert_type(&catalog, &range)?;
        self.insert_type(&catalog, &multirange)?;
        for routine in constructors(&range, &multirange, element) {
            self.put_routine(&catalog, routine, false, sink)?;
        }
        self.changed_catalog();
        Ok(tag("CREATE TYPE"))
    }

    fn range_options<'d>(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        nodes: &'d [Node],
    ) -> Result<Said<'d>> {
        let mut said = Said::default();
        let mut seen: Vec<&str> = Vec::new();
        for node in nodes {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            let name = option.defname.as_str();
            if seen.contains(&name) {
                let error = syntax("conflicting or redundant options".to_owned());
                return Err(match char_position(text, option.location) {
                    Some(position) => error.at(position),
                    None => error,
                });
            }
            seen.push(name);
            const KNOWN: [&str; 6] = [
                "subtype",
                "subtype_opclass",
                "collation",
                "canonical",
                "subtype_diff",
                "multirange_type_name",
            ];
            if !KNOWN.contains(&name) {
                return Err(syntax(format!("type attribute \"{name}\" not recognized")));
            }
            if option.arg.is_none() {
                return Err(syntax(format!("{name} requires a parameter")));
            }
            match name {
                "subtype" => said.element = Some(self.option_type(catalog, option)?),
                "subtype_opclass" => said.class = Some(function_names(option)),
                "collation" => said.collation = Some(option),
                "canonical" => said.canonical = true,
                "subtype_diff" => said.difference = Some(function_names(option)),
                _ => {
                    let names = function_names(option);
                    let schema = match names.as_slice() {
                        [.., schema, _] => schema.as_str(),
                        _ => "",
                    };
                    let name = cut_name(names.last().map_or("", String::as_str));
                    said.multirange = Some((self.creation_schema(catalog, schema)?, name));
                }
            }
        }
        Ok(said)
    }

    /// The oid of the operator class by which a range's values are ordered.
    fn range_class(
        &self,
        catalog: &Catalog,
        element: TypeId,
        named: Option<&[String]>,
    ) -> Result<u32> {
        let (base, _) = catalog.base_type(element);
        if let Some(names) = named {
            if let [.., schema, _] = names {
                if catalog.schema(schema).is_none() {
                    return Err(Error::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        format!("schema \"{schema}\" does not exist"),
                    ));
                }
            }
            return Ok(self.class_named(catalog, names, BTREE, base)?.oid);
        }
        let default = OperatorClass::default_of(BTREE, base);
        default.map(|class| class.oid).ok_or_else(|| {
            let message = format!(
                "data type {element} has no default operator class for access method \"btree\""
            );
            Error::new(SqlState::UNDEFINED_OBJECT, message).with_hint(
                "You must specify an operator class for the range type or define a default \
                 operator class for the subtype.",
            )
        })
    }

    /// The function that says how far two values are apart, which the role may call.
    fn range_difference(
        &mut self,
        catalog: &Arc<Catalog>,
        element: TypeId,
        names: &[String],
    ) -> Result<u32> {
        let types = [element, element];
        let found = self.aggregate_part(catalog, names, &types)?;
        let shown = format!("{}({element}, {element})", names.join("."));
        if found.inputs != types {
            return Err(Error::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {shown} does not exist"),
            ));
        }
        if found.result != TypeId::FLOAT8 {
            return Err(invalid(&format!(
                "range subtype diff function {shown} must return type double precision"
            )));
        }
        if !found.immutable {
            return Err(invalid(&format!(
                "range subtype diff function {shown} must be immutable"
            )));
        }
        Ok(found.oid)
    }

    /// An OID for a range over a type that none has yet.
    fn range_id(&mut self, catalog: &Catalog, element: TypeId) -> Result<TypeId> {
        let first = self.new_oid()?;
        let places = element.ranges_max();
        let mut ids = (0..places).map(|step| {
            let place = first.wrapping_add(step) % places;
            TypeId::own_range(element, place)
        });
        let free = ids.find(|id| id.is_none_or(|id| catalog.user_type(id).is_none()));
        match free {
            Some(Some(id)) => Ok(id),
            Some(None) => Err(Error::unsupported(format!("a range over type {element}"))),
            None => Err(Error::unsupported(format!(
                "more than {places} ranges over type {element}"
            ))),
        }
    }
}

/// The collation of a range over a type, or 0.
fn range_collation(
    session: &mut Session,
    catalog: &Arc<Catalog>,
    element: TypeId,
    named: Option<&DefElem>,
) -> Result<u32> {
    let (base, _) = catalog.base_type(element);
    let own = collation::of_type(base);
    let Some(option) = named else {
        return Ok(own);
    };
    if own == 0 {
        return Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            "range collation specified but subtype does not support collation",
        ));
    }
    let names = function_names(option).into_iter().map(|name| Node {
        node: Some(NodeEnum::String(pg_query::protobuf::String { sval: name })),
    });
    let given = session.given_collation_named(catalog, names.collect(), base)?;
    match catalog.collation(given) {
        Some(known) if !known.is_bytewise() => Err(Error::unsupported(
            "ranges of texts under a collation of ICU",
        )),
        Some(_) => Ok(given),
        None => Ok(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiranges_are_named_after_their_ranges() {
        assert_eq!(multirange_name("span"), "span_multirange");
        assert_eq!(multirange_name("xrangerange"), "xmultirangerange");
        let long = "ä".repeat(40);
        let cut = multirange_name(&long);
        assert!(cut.ends_with("ä_multirange") && cut.len() <= NAME_BYTES_MAX);
    }
}
