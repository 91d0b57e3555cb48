//! What there is to generate: the types, functions, operators and casts that both servers have.
//!
//! It is read from the servers' catalogs, so that a new function is generated as soon as it is
//! there. PostgreSQL's OIDs say which function is which.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::servers::{Server, EXTENSIONS};
use super::values;

/// The OIDs of pseudo-types that stand for any type.
pub mod pseudo {
    /// `anyelement`.
    pub const ELEMENT: u32 = 2283;
    /// `anyarray`.
    pub const ARRAY: u32 = 2277;
    /// `anynonarray`.
    pub const NON_ARRAY: u32 = 2776;
    /// `anycompatible`.
    pub const COMPATIBLE: u32 = 5077;
    /// `anycompatiblearray`.
    pub const COMPATIBLE_ARRAY: u32 = 5078;
    /// `anycompatiblenonarray`.
    pub const COMPATIBLE_NON_ARRAY: u32 = 5079;
    /// `anyrange`.
    pub const ANYRANGE: u32 = 3831;
    /// `anymultirange`.
    pub const ANYMULTIRANGE: u32 = 4537;
    /// `"any"`.
    pub const ANY: u32 = 2276;
    /// Those that stand for an element.
    pub const ELEMENTS: [u32; 5] = [ELEMENT, NON_ARRAY, COMPATIBLE, COMPATIBLE_NON_ARRAY, ANY];
    /// Those that stand for an array of it.
    pub const ARRAYS: [u32; 2] = [ARRAY, COMPATIBLE_ARRAY];
}

/// How a function is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// In any expression.
    Plain,
    /// In FROM.
    Set,
    /// Over the rows of a group.
    Aggregate,
    /// `f(…) within group (order by …)`, with so many arguments before it.
    OrderedSet(usize),
    /// Over a window.
    Window,
}

/// Something that makes a value of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// A function, by name.
    Function(String, Use),
    /// An operator between two values.
    Infix(String),
    /// One before a value.
    Prefix(String),
    /// A cast to the result's type.
    Cast,
}

/// A maker with its types.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub maker: Maker,
    /// The types of what it takes.
    pub takes: Vec<u32>,
    /// The last of them may come any number of times.
    pub is_variadic: bool,
    /// The type of what it gives.
    pub gives: u32,
}

impl Row {
    /// As it is told in reports: `abs(int4)`.
    pub fn name(&self, catalog: &Catalog) -> String {
        let types: Vec<&str> = self.takes.iter().map(|of| catalog.name(*of)).collect();
        let types = types.join(",");
        match &self.maker {
            Maker::Function(name, _) => format!("{name}({types})"),
            Maker::Infix(name) | Maker::Prefix(name) => format!("{name}({types})"),
            Maker::Cast => format!("{types}::{}", catalog.name(self.gives)),
        }
    }
}

/// What is generated.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Names of types by OID.
    names: BTreeMap<u32, String>,
    /// The array of each type.
    arrays: BTreeMap<u32, u32>,
    /// Types of which there are literals, arrays not among them.
    pub plain: Vec<u32>,
    /// Types of ranges, each with that of its bounds and its multirange.
    ranges: Vec<(u32, u32, u32)>,
    /// All makers.
    pub rows: Vec<Row>,
    /// Those that give each type, in any expression; pseudo-types among them.
    by_result: BTreeMap<u32, Vec<usize>>,
}

/// Functions that are not generated, by the beginning of their names, and why.
pub const LEFT_OUT: [(&str, &str); 34] = [
    ("populate_record", "is for rows, which are not generated"),
    ("hstore_version_diag", "tells how a value is kept"),
    ("cbrt", "its last digit is the C library's"),
    ("dcbrt", "its last digit is the C library's"),
    ("pg_", "tells of the server, or changes it"),
    ("has_", "tells of roles that are others"),
    ("row_security_active", "tells of roles that are others"),
    ("current_", "tells of the session"),
    ("session_user", "tells of the session"),
    ("inet_", "tells of the connection"),
    ("version", "is the server's own"),
    ("txid_", "counts transactions"),
    ("now", "is the time"),
    ("clock_timestamp", "is the time"),
    ("statement_timestamp", "is the time"),
    ("transaction_timestamp", "is the time"),
    ("timeofday", "is the time"),
    ("random", "is chance"),
    ("setseed", "is chance"),
    ("gen_random_uuid", "is chance"),
    ("nextval", "counts; statements of sequences are generated"),
    ("currval", "counts; statements of sequences are generated"),
    ("lastval", "counts; statements of sequences are generated"),
    ("setval", "counts; statements of sequences are generated"),
    ("set_config", "changes the session"),
    ("lo_", "makes and opens objects, and files of the server"),
    ("loread", "reads what the transaction has opened"),
    ("lowrite", "writes what the transaction has opened"),
    ("to_reg", "tells of the catalog"),
    ("col_description", "tells of the catalog"),
    ("obj_description", "tells of the catalog"),
    ("shobj_description", "tells of the catalog"),
    ("format_type", "tells of the catalog"),
    ("hash", "its values are PostgreSQL's own affair"),
];

/// Reads the catalogs of both.
///
/// # Errors
/// A server refuses.
pub fn read(ours: &mut Server, theirs: &mut Server) -> std::io::Result<Catalog> {
    let types =
        "select oid, typname, typarray from pg_type where typtype in ('b', 'r', 'm') order by oid";
    let mut catalog = Catalog {
        names: BTreeMap::new(),
        arrays: BTreeMap::new(),
        plain: Vec::new(),
        ranges: Vec::new(),
        rows: Vec::new(),
        by_result: BTreeMap::new(),
    };
    for row in ours.rows(types)? {
        let oid = ours.number_of(number(&row[0]));
        if values::literals(&row[1]).is_some() {
            catalog.plain.push(oid);
            catalog.arrays.insert(oid, ours.number_of(number(&row[2])));
        }
        catalog.names.insert(oid, row[1].clone());
    }
    let ranges = "select rngtypid, rngsubtype, rngmultitypid from pg_range where rngtypid < 16384";
    for row in ours.rows(ranges)? {
        let [range, element, multirange] = [0, 1, 2].map(|place| number(&row[place]));
        catalog.ranges.push((range, element, multirange));
    }
    catalog.read_functions(ours, theirs)?;
    catalog.read_operators(ours, theirs)?;
    catalog.read_casts(ours, theirs)?;
    for (place, row) in catalog.rows.iter().enumerate() {
        let anywhere = !matches!(&row.maker, Maker::Function(_, how) if *how != Use::Plain);
        if anywhere {
            catalog.by_result.entry(row.gives).or_default().push(place);
        }
    }
    Ok(catalog)
}

/// Functions that hash, whose values are PostgreSQL's own affair too (`time_hash`).
fn is_hash(name: &str) -> bool {
    name.ends_with("_hash") || name.ends_with("_hash_extended")
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_default()
}

/// What both answer, with the numbers of types in the columns from a place on, up to another.
fn common(
    ours: &mut Server,
    theirs: &mut Server,
    sql: &str,
    types: Range<usize>,
) -> std::io::Result<Vec<Vec<String>>> {
    let asked = |server: &mut Server| -> std::io::Result<Vec<Vec<String>>> {
        let mut rows = server.rows(sql)?;
        for column in rows.iter_mut().flat_map(|row| &mut row[types.clone()]) {
            let oids = column.split_whitespace().map(number);
            let oids = oids.map(|oid| server.number_of(oid).to_string());
            *column = oids.collect::<Vec<_>>().join(" ");
        }
        Ok(rows)
    };
    let theirs: BTreeSet<Vec<String>> = asked(theirs)?.into_iter().collect();
    let ours = asked(ours)?.into_iter();
    Ok(ours.filter(|row| theirs.contains(row)).collect())
}

/// Whether the row of a catalog belongs to an extension that is generated.
fn is_of_extension(catalog: &str) -> String {
    let names = EXTENSIONS
        .map(|extension| format!("'{}'", extension.0))
        .join(", ");
    format!(
        "{catalog}.oid in (select d.objid from pg_depend d join pg_extension e on e.oid = d.refobjid \
         where d.deptype = 'e' and d.refclassid = 'pg_extension'::regclass \
         and d.classid = '{catalog}'::regclass and e.extname in ({names}))"
    )
}

impl Catalog {
    /// A type's name.
    pub fn name(&self, of: u32) -> &str {
        self.names.get(&of).map_or("?", String::as_str)
    }

    /// The OID of a plain type.
    pub fn named(&self, name: &str) -> Option<u32> {
        let mut names = self.names.iter();
        names.find(|(_, other)| *other == name).map(|(oid, _)| *oid)
    }

    /// The type of arrays of a type.
    pub fn array_of(&self, of: u32) -> Option<u32> {
        self.arrays.get(&of).copied().filter(|oid| *oid != 0)
    }

    /// The type of an array's elements.
    pub fn element_of(&self, of: u32) -> Option<u32> {
        let mut arrays = self.arrays.iter();
        arrays.find(|(_, array)| **array == of).map(|(oid, _)| *oid)
    }

    /// What gives a type in any expression.
    pub fn makers_of(&self, of: u32) -> Vec<usize> {
        let stand_ins: &[u32] = match self.element_of(of) {
            Some(_) => &pseudo::ARRAYS,
            None => &pseudo::ELEMENTS,
        };
        let all = std::iter::once(&of).chain(stand_ins);
        let found = all.filter_map(|of| self.by_result.get(of));
        found.flatten().copied().collect()
    }

    /// Whether a function brings a value to its type's length (`varchar(varchar,int4,bool)`). Only
    /// casts call these, and their number is a type modifier, which no user writes.
    fn is_coercion(&self, name: &str, takes: &[u32]) -> bool {
        let of_name = |place: usize| takes.get(place).map(|of| self.name(*of));
        of_name(0) == Some(name) && of_name(1) == Some("int4")
    }

    /// Whether a function makes `bpchar` of a "char": one byte in PostgreSQL, also where that is none
    /// or no character.
    fn is_of_byte(&self, name: &str, takes: &[u32]) -> bool {
        name == "bpchar" && takes.iter().any(|of| self.name(*of) == "char")
    }

    fn is_known(&self, of: u32) -> bool {
        self.plain.contains(&of)
            || self.element_of(of).is_some()
            || pseudo::ELEMENTS.contains(&of)
            || pseudo::ARRAYS.contains(&of)
    }

    /// A function of ranges is one for each type of them.
    fn add(&mut self, row: Row) {
        let of_ranges = |of: &u32| [pseudo::ANYRANGE, pseudo::ANYMULTIRANGE].contains(of);
        if !row.takes.iter().any(of_ranges) {
            return self.add_concrete(row);
        }
        for (range, element, multirange) in self.ranges.clone() {
            let concrete = |of: u32| match of {
                pseudo::ANYRANGE => range,
                pseudo::ANYMULTIRANGE => multirange,
                of if pseudo::ELEMENTS.contains(&of) => element,
                of => of,
            };
            self.add_concrete(Row {
                maker: row.maker.clone(),
                takes: row.takes.iter().map(|of| concrete(*of)).collect(),
                is_variadic: row.is_variadic,
                gives: concrete(row.gives),
            });
        }
    }

    fn add_concrete(&mut self, row: Row) {
        let is_known = row.takes.iter().all(|of| self.is_known(*of)) && self.is_known(row.gives);
        if is_known && row.gives != pseudo::ANY {
            self.rows.push(row);
        }
    }

    fn read_functions(&mut self, ours: &mut Server, theirs: &mut Server) -> std::io::Result<()> {
        // What extensions bring has other OIDs on each server.
        let of_extension = is_of_extension("pg_proc");
        let sql = format!(
            "select case when {of_extension} then 0 else oid end, proname, proretset, prokind, \
             provolatile, provariadic, proargtypes::text, prorettype from pg_proc \
             where oid < 16384 or {of_extension}"
        );
        let ordered = "select aggfnoid::oid, aggnumdirectargs from pg_aggregate \
                       where aggkind <> 'n'";
        let ordered = theirs.rows(ordered)?.into_iter();
        let ordered: BTreeMap<String, usize> = ordered
            .map(|row| (row[0].clone(), row[1].parse().unwrap_or(0)))
            .collect();
        for row in common(ours, theirs, &sql, 5..8)? {
            let takes: Vec<u32> = row[6].split_whitespace().map(number).collect();
            let is_left_out = LEFT_OUT.iter().any(|(name, _)| row[1].starts_with(name))
                || is_hash(&row[1])
                || self.is_of_byte(&row[1], &takes)
                || self.is_coercion(&row[1], &takes);
            if is_left_out {
                continue;
            }
            let how = match (row[3].as_str(), row[2].as_str()) {
                ("a", _) => ordered
                    .get(&row[0])
                    .map_or(Use::Aggregate, |direct| Use::OrderedSet(*direct)),
                ("w", _) => Use::Window,
                (_, "t") => Use::Set,
                _ => Use::Plain,
            };
            self.add(Row {
                maker: Maker::Function(row[1].clone(), how),
                takes,
                is_variadic: number(&row[5]) != 0,
                gives: number(&row[7]),
            });
        }
        Ok(())
    }

    fn read_operators(&mut self, ours: &mut Server, theirs: &mut Server) -> std::io::Result<()> {
        let of_extension = is_of_extension("pg_operator");
        let sql = format!(
            "select case when {of_extension} then 0 else oid end, oprname, oprleft, oprright, \
             oprresult from pg_operator"
        );
        for row in common(ours, theirs, &sql, 2..5)? {
            // The cube root, and what fills rows, as above.
            if row[1] == "||/" || row[1] == "#=" {
                continue;
            }
            let (left, right) = (number(&row[2]), number(&row[3]));
            let (maker, takes) = match left {
                0 => (Maker::Prefix(row[1].clone()), vec![right]),
                _ => (Maker::Infix(row[1].clone()), vec![left, right]),
            };
            self.add(Row {
                maker,
                takes,
                is_variadic: false,
                gives: number(&row[4]),
            });
        }
        Ok(())
    }

    fn read_casts(&mut self, ours: &mut Server, theirs: &mut Server) -> std::io::Result<()> {
        let sql = "select castsource, casttarget from pg_cast where castsource <> casttarget";
        let mut pairs: BTreeSet<(u32, u32)> = common(ours, theirs, sql, 0..2)?
            .iter()
            .map(|row| (number(&row[0]), number(&row[1])))
            .collect();
        // Every type goes to text and comes from it.
        let text = self.named("text").unwrap_or_default();
        // As the function, see `is_of_byte`.
        let pair = |from: &str, to: &str| Some((self.named(from)?, self.named(to)?));
        if let Some(pair) = pair("char", "bpchar") {
            pairs.remove(&pair);
        }
        let others = self.plain.iter().filter(|of| **of != text);
        pairs.extend(others.flat_map(|of| [(*of, text), (text, *of)]));
        for (from, to) in pairs {
            self.add(Row {
                maker: Maker::Cast,
                takes: vec![from],
                is_variadic: false,
                gives: to,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coercions_and_hashes_are_left_out() {
        let names = [
            (23, "int4"),
            (25, "text"),
            (1043, "varchar"),
            (1186, "interval"),
        ];
        let catalog = Catalog {
            names: names.map(|(oid, name)| (oid, name.to_owned())).into(),
            arrays: BTreeMap::new(),
            plain: Vec::new(),
            ranges: Vec::new(),
            rows: Vec::new(),
            by_result: BTreeMap::new(),
        };
        assert!(catalog.is_coercion("interval", &[1186, 23]));
        assert!(catalog.is_coercion("varchar", &[1043, 23, 16]));
        assert!(!catalog.is_coercion("interval", &[25]));
        assert!(!catalog.is_coercion("left", &[25, 23]));
        assert!(is_hash("time_hash") && is_hash("jsonb_hash_extended"));
        assert!(!is_hash("md5"));
    }
}
