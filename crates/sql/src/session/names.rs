//! What the names of catalog objects mean in values of `regclass` and its kin, and of enums and
//! domains: `'public.t'::regclass` is an OID in text, and back. The session makes it anew with each
//! catalog, search path and role ([`Session::use_catalog`](super::Session::use_catalog)), so that
//! evaluation asks no session.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Node, SelectStmt};

use catalog::depend::{routine_name, routine_path, routine_text};
use catalog::user_type::EnumLabel;
use catalog::{Catalog, RelationRef, Routine};
use functions::estimators;
use functions::search::dictionary::{self, Config, Dictionary};
use functions::strings::quote_identifier;
use syntax::parser::{self, NodeEnum};
use types::{NameLookup, RowField, TypeId};

/// Names of catalog objects for `regclass` and its kin.
pub(super) struct Names {
    pub catalog: Arc<Catalog>,
    pub search_path: Vec<u32>,
    pub role: u32,
    /// Labels that the open transaction has added: they may be used once it has committed.
    pub new_labels: Vec<(TypeId, u64)>,
}

/// Whether what the type names lies in schemas.
fn has_schema(kind: TypeId) -> bool {
    matches!(
        kind,
        TypeId::REGCLASS
            | TypeId::REGTYPE
            | TypeId::REGPROC
            | TypeId::REGPROCEDURE
            | TypeId::REGOPER
            | TypeId::REGCOLLATION
    )
}

impl Names {
    /// The OID of what a text names, if there is such a thing.
    fn find_oid(&self, kind: TypeId, name: &str) -> Result<Option<u32>> {
        let parts = split_name(name);
        let last = parts.last().cloned().unwrap_or_default();
        Ok(match kind {
            TypeId::REGCLASS => {
                let parts = match parts.as_slice() {
                    [database, rest @ ..] if rest.len() == 2 => {
                        self.check_database(database, &parts)?;
                        rest
                    }
                    [_, _, _, _, ..] => {
                        let message = "improper relation name (too many dotted names)";
                        let message = format!("{message}: {}", parts.join("."));
                        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                    }
                    parts => parts,
                };
                let composite = match parts {
                    [name] => {
                        let mut path = self.search_path.iter();
                        path.find_map(|schema| self.catalog.composite_relation(*schema, name))
                    }
                    [schema, name] => self
                        .catalog
                        .schema(schema)
                        .and_then(|schema| self.catalog.composite_relation(schema.oid, name)),
                    _ => None,
                };
                let found = match parts {
                    [name] => std::iter::once(catalog::PG_CATALOG)
                        .chain(self.search_path.iter().copied())
                        .find_map(|schema| self.catalog.relation(schema, name)),
                    [schema, name] => match self.catalog.schema(schema) {
                        Some(schema) => {
                            self.catalog.check_look_into(self.role, schema)?;
                            self.catalog.relation(schema.oid, name)
                        }
                        None => None,
                    },
                    _ => None,
                };
                found
                    .map(|found| match found {
                        RelationRef::Table(table) => self.catalog.tables[table].oid,
                        RelationRef::Index(table, index) => {
                            self.catalog.tables[table].indexes[index].oid
                        }
                    })
                    .or(composite)
            }
            TypeId::REGNAMESPACE => self.catalog.schema(&last).map(|schema| schema.oid),
            TypeId::REGROLE => self.catalog.role(&last).map(|role| role.oid),
            TypeId::REGCONFIG => Config::named(&parts.join(".")),
            TypeId::REGDICTIONARY => Dictionary::named(&parts.join(".")),
            TypeId::REGTYPE => self.type_named(name)?.map(|ty| ty.0),
            TypeId::REGCOLLATION => self.collation_named(&parts)?,
            TypeId::REGOPER => match self.operators_named(&parts)?[..] {
                [] => None,
                [found] => Some(found),
                _ => {
                    let message = format!("more than one operator named {name}");
                    return Err(Error::new(SqlState::of("42725"), message));
                }
            },
            TypeId::REGOPERATOR => self.operator_of_signature(name)?,
            TypeId::REGPROCEDURE => {
                let (name, types) = self.signature_of(name, false)?;
                let parts = split_name(name);
                let built_in = is_built_in(&parts).then(|| built_in_procedure(&parts, &types));
                let built_in = built_in.flatten();
                built_in.or_else(|| self.routine_named(&parts, Some(&types)))
            }
            _ => {
                let built_in = functions::functions_named(&last);
                let built_in = built_in.first().filter(|_| is_built_in(&parts));
                let built_in = built_in.map(|function| function.oid);
                built_in.or_else(|| self.routine_named(&parts, None))
            }
        })
    }
}

impl NameLookup for Names {
    fn name_of(&self, kind: TypeId, oid: u32) -> Option<String> {
        match kind {
            TypeId::REGCLASS => {
                let (schema, name) = self.catalog.relation_name(oid)?;
                let visible = schema == catalog::PG_CATALOG || self.search_path.contains(&schema);
                let quoted = quote_identifier(name);
                match (visible, self.catalog.schema_by_oid(schema)) {
                    (false, Some(schema)) => {
                        Some(format!("{}.{quoted}", quote_identifier(&schema.name)))
                    }
                    _ => Some(quoted),
                }
            }
            TypeId::REGNAMESPACE => self
                .catalog
                .schema_by_oid(oid)
                .map(|schema| quote_identifier(&schema.name)),
            TypeId::REGROLE => self
                .catalog
                .role_by_oid(oid)
                .map(|role| quote_identifier(&role.name)),
            TypeId::REGCONFIG => {
                let mut known = dictionary::configs();
                known
                    .find(|known| known.0 == oid)
                    .map(|known| known.1.to_owned())
            }
            TypeId::REGDICTIONARY => {
                let mut known = dictionary::dictionaries();
                known.find(|known| known.0 == oid).map(|known| known.1)
            }
            TypeId::REGTYPE if TypeId(oid).is_own() => {
                self.catalog.shown_type(&self.search_path, TypeId(oid))
            }
            TypeId::REGTYPE => TypeId(oid).info().map(|_| TypeId(oid).to_string()),
            TypeId::REGCOLLATION => self.catalog.shown_collation(&self.search_path, oid),
            TypeId::REGOPER => self.operator_alone(oid),
            TypeId::REGOPERATOR => self.catalog.shown_operator(&self.search_path, oid),
            TypeId::REGPROCEDURE | TypeId::REGPROC if estimators::by_oid(oid).is_some() => {
                let known = estimators::by_oid(oid)?;
                Some(match kind {
                    TypeId::REGPROC => known.name.to_owned(),
                    _ => known.signature(),
                })
            }
            TypeId::REGPROCEDURE => functions::signature_of(oid).or_else(|| {
                let routine = self.catalog.routine(oid)?;
                Some(routine_text(&self.catalog, &self.search_path, routine))
            }),
            TypeId::REGPROC => {
                let built_in = functions::function_by_oid(oid).map(|known| known.name.to_owned());
                built_in.or_else(|| {
                    let routine = self.catalog.routine(oid)?;
                    Some(self.routine_alone(routine))
                })
            }
            _ => None,
        }
    }

    fn oid_of(&self, kind: TypeId, name: &str) -> Result<Option<u32>> {
        let found = self.find_oid(kind, name)?;
        let named = name.split('(').next().unwrap_or(name);
        match (found, split_name(named).as_slice()) {
            (None, [schema, _]) if has_schema(kind) && self.catalog.schema(schema).is_none() => {
                let message = format!("schema \"{schema}\" does not exist");
                Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message))
            }
            _ => Ok(found),
        }
    }

    fn enum_places(&self, kind: TypeId) -> Vec<u64> {
        let labels = self.labels(kind).iter();
        labels.map(|label| label.place).collect()
    }

    fn enum_label(&self, kind: TypeId, place: u64) -> Option<&str> {
        let labels = self.labels(kind);
        let at = labels.binary_search_by_key(&place, |label| label.place);
        Some(&labels[at.ok()?].name)
    }

    fn enum_place(&self, kind: TypeId, label: &str) -> Option<u64> {
        let mut labels = self.labels(kind).iter();
        Some(labels.find(|known| known.name == label)?.place)
    }

    fn base_type(&self, domain: TypeId) -> Option<(TypeId, i32)> {
        let own = domain.array_element().unwrap_or(domain);
        let known = self.catalog.domain(own).is_some();
        known.then(|| self.catalog.base_type(domain))
    }

    fn fields(&self, kind: TypeId) -> Option<Vec<RowField>> {
        let fields = self.catalog.fields(kind)?.into_iter();
        let fields = fields.map(|field| RowField {
            name: field.name,
            kind: field.ty,
            typmod: field.typmod,
            of_domain: field.domain != TypeId::NONE,
        });
        Some(fields.collect())
    }

    fn operator_schema(&self, function: u32) -> Option<String> {
        if self.catalog.hides_operator_of(&self.search_path, function) {
            return Some("pg_catalog".to_owned());
        }
        let aggregate = functions::aggregate_by_oid(function);
        let of_type = aggregate.and_then(|own| functions::extensions::of_type(own.result));
        let extension = functions::extensions::of_function(function).or(of_type)?;
        let schema = self.catalog.extension(extension.name)?.schema;
        if schema == catalog::PG_CATALOG || self.search_path.contains(&schema) {
            return None;
        }
        let schema = self.catalog.schema_by_oid(schema)?;
        Some(quote_identifier(&schema.name))
    }

    fn check_label(&self, kind: TypeId, place: u64) -> Result<()> {
        if !self.new_labels.contains(&(kind, place)) {
            return Ok(());
        }
        let label = self.enum_label(kind, place).unwrap_or_default();
        Err(Error::new(
            SqlState::of("55P04"),
            format!("unsafe use of new value \"{label}\" of enum type {kind}"),
        )
        .with_hint("New enum values must be committed before they can be used."))
    }

    fn partition_ancestors(&self, relation: u32) -> Vec<u32> {
        self.catalog.partition_ancestors(relation)
    }

    fn partition_tree(&self, relation: u32) -> Vec<(u32, bool)> {
        self.catalog.partition_tree(relation)
    }
}

impl Names {
    /// The collation of that name.
    fn collation_named(&self, parts: &[String]) -> Result<Option<u32>> {
        let found = match parts {
            [name] => self.catalog.visible_collation(&self.search_path, name),
            [schema, name] => match self.schema_named(schema)? {
                Some(schema) => self.catalog.collation_named(schema, name),
                None => None,
            },
            _ => None,
        };
        Ok(found.map(|found| found.oid))
    }

    /// A schema that somebody names, if it is there.
    ///
    /// # Errors
    /// 42501 for one that the role may not look into.
    fn schema_named(&self, name: &str) -> Result<Option<u32>> {
        let Some(schema) = self.catalog.schema(name) else {
            return Ok(None);
        };
        self.catalog.check_look_into(self.role, schema)?;
        Ok(Some(schema.oid))
    }

    /// The operators that a name means, between whatever types.
    fn operators_named(&self, parts: &[String]) -> Result<Vec<u32>> {
        let Some((name, schemas)) = parts.split_last() else {
            return Ok(Vec::new());
        };
        let schemas: Vec<u32> = match schemas {
            [] => {
                let own = self.search_path.iter().copied();
                let first = (!self.search_path.contains(&catalog::PG_CATALOG))
                    .then_some(catalog::PG_CATALOG);
                first.into_iter().chain(own).collect()
            }
            [.., schema] => self.schema_named(schema)?.into_iter().collect(),
        };
        let mut found: Vec<((TypeId, TypeId), u32)> = Vec::new();
        for schema in schemas {
            for (types, oid) in self.catalog.operators_in(schema, name) {
                if !found.iter().any(|known| known.0 == types) {
                    found.push((types, oid));
                }
            }
        }
        Ok(found.into_iter().map(|found| found.1).collect())
    }

    /// The name of an operator as `regoper` prints it: with its schema where it does not mean it alone.
    fn operator_alone(&self, oid: u32) -> Option<String> {
        let (schema, name, _) = self.catalog.known_operator(oid)?;
        let named = self.operators_named(std::slice::from_ref(&name)).ok()?;
        if named == [oid] {
            return Some(name);
        }
        let schema = &self.catalog.schema_by_oid(schema)?.name;
        Some(format!("{}.{name}", quote_identifier(schema)))
    }

    /// The operator of a text like `+(integer,integer)`, in which NONE stands for no operand.
    ///
    /// # Errors
    /// 22P02, 42P02 and 54023 for one of another form, 42704 for a type that is not there.
    fn operator_of_signature(&self, text: &str) -> Result<Option<u32>> {
        let (name, types) = self.signature_of(text, true)?;
        let types = match types[..] {
            [left, right] => (left, right),
            [_] => {
                let error = Error::new(SqlState::of("42P02"), "missing argument");
                let hint = "Use NONE to denote the missing argument of a unary operator.";
                return Err(error.with_hint(hint));
            }
            _ => {
                let error = Error::new(SqlState::of("54023"), "too many arguments");
                return Err(error.with_hint("Provide two argument types for operator."));
            }
        };
        let parts = split_name(name);
        Ok(match parts.as_slice() {
            [name] => self
                .catalog
                .visible_operator(&self.search_path, name, types),
            [schema, name] => match self.schema_named(schema)? {
                Some(schema) => self.catalog.operator_in(schema, name, types),
                None => None,
            },
            _ => None,
        })
    }

    /// The name of a routine as `regproc` prints it: with its schema where others have that name too.
    fn routine_alone(&self, routine: &Routine) -> String {
        let named = |schema: &u32| self.catalog.routines_named(*schema, &routine.name).count();
        let others: usize = self.search_path.iter().map(named).sum();
        let built_in = functions::functions_named(&routine.name).len();
        let schema = self.catalog.schema_by_oid(routine.schema);
        match schema {
            Some(schema) if others + built_in > 1 => {
                let schema = quote_identifier(&schema.name);
                format!("{schema}.{}", quote_identifier(&routine.name))
            }
            _ => routine_name(&self.catalog, &self.search_path, routine),
        }
    }

    /// The routine of that name, with these argument types if they are given.
    fn routine_named(&self, parts: &[String], types: Option<&Vec<TypeId>>) -> Option<u32> {
        let last = parts.last()?;
        let schemas = match parts {
            [.., schema, _] => vec![self.catalog.schema(schema)?.oid],
            _ => routine_path(&self.search_path),
        };
        schemas.into_iter().find_map(|schema| {
            let mut named = self.catalog.routines_named(schema, last);
            let found = named.find(|known| types.is_none_or(|types| *types == known.input_types()));
            found.map(|found| found.oid)
        })
    }

    /// The name and the argument types of a text like `abs(integer)`; NONE may be no type.
    ///
    /// # Errors
    /// 22P02 for one of another form, 42704 for a type that is not there.
    fn signature_of<'t>(&self, text: &'t str, none: bool) -> Result<(&'t str, Vec<TypeId>)> {
        let wanted = |what: &str| {
            let message = format!("expected a {what}");
            Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
        };
        let (name, rest) = match pieces(text, '(')[..] {
            [name, _, ..] => (name, &text[name.len() + 1..]),
            _ => return Err(wanted("left parenthesis")),
        };
        let types = rest.trim_end().strip_suffix(')');
        let types = types.ok_or_else(|| wanted("right parenthesis"))?;
        if types.trim().is_empty() {
            return Ok((name, Vec::new()));
        }
        let mut found = Vec::new();
        for ty in pieces(types, ',') {
            let ty = ty.trim();
            if ty.is_empty() {
                return Err(wanted("type name"));
            }
            if none && ty.eq_ignore_ascii_case("none") {
                found.push(TypeId::NONE);
                continue;
            }
            found.push(self.type_named(ty)?.ok_or_else(|| {
                let message = format!("type \"{ty}\" does not exist");
                Error::new(SqlState::UNDEFINED_OBJECT, message)
            })?);
        }
        Ok((name, found))
    }

    fn labels(&self, kind: TypeId) -> &[EnumLabel] {
        self.catalog
            .user_type(kind)
            .map_or(&[], |made| made.labels())
    }

    /// The type that a text names as SQL does.
    fn type_named(&self, name: &str) -> Result<Option<TypeId>> {
        if let Some(built_in) = type_named(name) {
            return Ok(Some(built_in));
        }
        let trimmed = name.trim();
        if let Some(element) = trimmed.strip_suffix("[]") {
            return Ok(self.type_named(element)?.and_then(array_over));
        }
        if let Some(built_in) = spelled(trimmed) {
            return Ok(Some(built_in));
        }
        let parts = split_name(trimmed);
        match parts.as_slice() {
            [name] => {
                // Here for one in quotes; `type_named` above knows no quotes.
                let path = std::iter::once(&catalog::PG_CATALOG);
                let mut path = path.chain(self.search_path.iter());
                Ok(path.find_map(|schema| self.catalog.type_named(*schema, name)))
            }
            [schema, name] => match self.catalog.schema(schema) {
                Some(schema) => {
                    self.catalog.check_look_into(self.role, schema)?;
                    Ok(self.catalog.type_named(schema.oid, name))
                }
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

/// Whether a name may be that of a built-in function.
fn is_built_in(parts: &[String]) -> bool {
    match parts {
        [.., schema, _] => schema == "pg_catalog",
        _ => true,
    }
}

/// The built-in function of that name and these argument types.
fn built_in_procedure(parts: &[String], types: &[TypeId]) -> Option<u32> {
    let name = parts.last()?;
    let named = functions::functions_named(name).iter();
    let function = named.clone().find(|known| known.arguments == types);
    let aggregates = functions::aggregates_named(name).iter();
    let mut aggregates = aggregates.filter(|known| known.arguments == types);
    let windows = functions::windows_named(name);
    let mut windows = windows.filter(|known| known.arguments == types);
    function
        .map(|function| function.oid)
        .or(aggregates.next().map(|aggregate| aggregate.oid))
        .or_else(|| windows.next().map(|window| window.oid))
}

/// The parts of a text between the places where a character stands, outside of quotes and parentheses.
fn pieces(text: &str, between: char) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut depth) = (Vec::new(), 0, false, 0_usize);
    for (at, c) in text.char_indices() {
        if c == between && !quoted && depth == 0 {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The built-in type that a text names in one of the ways that only the grammar knows:
/// `numeric(4, 2)`, `national character varying`, `integer array`.
fn spelled(text: &str) -> Option<TypeId> {
    let statements = parser::parse(&format!("SELECT NULL::{text}")).ok()?;
    let [statement] = statements.as_slice() else {
        return None;
    };
    let NodeEnum::SelectStmt(select) = statement.node() else {
        return None;
    };
    let [Node {
        node: Some(NodeEnum::ResTarget(target)),
    }] = select.target_list.as_slice()
    else {
        return None;
    };
    let plain = SelectStmt {
        target_list: select.target_list.clone(),
        limit_option: select.limit_option,
        op: select.op,
        ..SelectStmt::default()
    };
    let value = target.val.as_ref().and_then(|value| value.node.as_ref());
    let Some(NodeEnum::TypeCast(cast)) = value.filter(|_| plain == **select) else {
        return None;
    };
    let name = cast.type_name.as_ref().filter(|name| !name.setof)?;
    let names = name.names.iter().map(|node| match &node.node {
        Some(NodeEnum::String(part)) => part.sval.as_str(),
        _ => "",
    });
    let built_in = match names.collect::<Vec<_>>()[..] {
        ["pg_catalog", name] => TypeId::by_name(name)?,
        _ => return None,
    };
    match name.array_bounds.is_empty() {
        true => Some(built_in),
        false => built_in.array_of(),
    }
}

/// The arrays over a type: one of arrays is of the same type.
fn array_over(ty: TypeId) -> Option<TypeId> {
    ty.array_element()
        .map_or_else(|| ty.array_of(), |_| Some(ty))
}

/// The type that a text names as SQL does.
fn type_named(name: &str) -> Option<TypeId> {
    let plain = name.trim().to_lowercase();
    if let Some(element) = plain.strip_suffix("[]") {
        return array_over(type_named(element)?);
    }
    let plain = match plain.as_str() {
        "int" => "integer".to_owned(),
        "dec" | "decimal" => "numeric".to_owned(),
        "float" => "double precision".to_owned(),
        "char varying" => "character varying".to_owned(),
        "char" => "character".to_owned(),
        _ => plain,
    };
    TypeId::by_name(&plain).or_else(|| {
        let known = types::type_id::TYPES
            .iter()
            .find(|info| info.sql_name == plain);
        known.map(|info| info.id)
    })
}

impl Names {
    /// A name of three parts begins with the session's own database.
    fn check_database(&self, database: &str, parts: &[String]) -> Result<()> {
        if self.catalog.database.name == database {
            return Ok(());
        }
        let whole = parts.join(".");
        Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cross-database references are not implemented: \"{whole}\""),
        ))
    }
}

/// The parts of a qualified name.
fn split_name(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quoted, mut begins) = (false, true);
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        let last = parts.last_mut().expect("there is always one");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                last.push('"');
            }
            '"' if quoted || begins => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c if quoted => last.push(c),
            // Quotes inside of a name that began without are part of it.
            c => last.extend(c.to_lowercase()),
        }
        begins = c == '.' && !quoted;
    }
    parts
}
