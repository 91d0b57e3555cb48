//! The built-in types: PostgreSQL's OIDs, names and categories. Those of types of one's own follow
//! from their OIDs ([`super::own`]).
//!
//! Source: PostgreSQL 15, catalog `pg_type`.

use std::fmt;

use super::own::{OwnKind, MARK};

/// A type, named by PostgreSQL's OID.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u32);

/// `typcategory`: groups types for the resolution of overloaded operators and functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Category {
    Array,
    Bits,
    Boolean,
    Composite,
    DateTime,
    Enum,
    Geometric,
    Network,
    Numeric,
    Pseudo,
    Range,
    String,
    Timespan,
    User,
    Unknown,
    /// Internal-use types (`"char"`).
    Internal,
}

/// What is known of a built-in type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// Its OID.
    pub id: TypeId,
    /// `typname`.
    pub name: &'static str,
    /// What `format_type` says without a modifier.
    pub sql_name: &'static str,
    /// `typlen`: bytes, or -1 for variable length, -2 for C strings.
    pub len: i16,
    /// `typcategory`.
    pub category: Category,
    /// `typispreferred`.
    pub preferred: bool,
    /// `typelem`: of arrays and vectors; 0 if none.
    pub element: TypeId,
    /// `typarray`; 0 if none.
    pub array: TypeId,
}

macro_rules! types {
    ($($constant:ident $id:literal $name:literal $sql:literal $len:literal $category:ident
       $preferred:literal $element:literal $array:literal;)*) => {
        #[allow(missing_docs)]
        impl TypeId { $(pub const $constant: TypeId = TypeId($id);)* }

        /// Every built-in type that is no array, ordered by OID.
        pub const TYPES: &[TypeInfo] = &[$(TypeInfo {
            id: TypeId($id),
            name: $name,
            sql_name: $sql,
            len: $len,
            category: Category::$category,
            preferred: $preferred == 1,
            element: TypeId($element),
            array: TypeId($array),
        }),*];
    };
}

types! {
    BOOL 16 "bool" "boolean" 1 Boolean 1 0 1000;
    BYTEA 17 "bytea" "bytea" -1 User 0 0 1001;
    CHAR 18 "char" "\"char\"" 1 Internal 0 0 1002;
    NAME 19 "name" "name" 64 String 0 18 1003;
    INT8 20 "int8" "bigint" 8 Numeric 0 0 1016;
    INT2 21 "int2" "smallint" 2 Numeric 0 0 1005;
    INT2VECTOR 22 "int2vector" "int2vector" -1 Array 0 21 1006;
    INT4 23 "int4" "integer" 4 Numeric 0 0 1007;
    REGPROC 24 "regproc" "regproc" 4 Numeric 0 0 1008;
    TEXT 25 "text" "text" -1 String 1 0 1009;
    OID 26 "oid" "oid" 4 Numeric 1 0 1028;
    TID 27 "tid" "tid" 6 User 0 0 1010;
    XID 28 "xid" "xid" 4 User 0 0 1011;
    CID 29 "cid" "cid" 4 User 0 0 1012;
    OIDVECTOR 30 "oidvector" "oidvector" -1 Array 0 26 1013;
    JSON 114 "json" "json" -1 User 0 0 199;
    PG_NODE_TREE 194 "pg_node_tree" "pg_node_tree" -1 Internal 0 0 0;
    POINT 600 "point" "point" 16 Geometric 0 701 1017;
    LSEG 601 "lseg" "lseg" 32 Geometric 0 600 1018;
    PATH 602 "path" "path" -1 Geometric 0 0 1019;
    BOX 603 "box" "box" 32 Geometric 0 600 1020;
    POLYGON 604 "polygon" "polygon" -1 Geometric 0 0 1027;
    LINE 628 "line" "line" 24 Geometric 0 701 629;
    CIDR 650 "cidr" "cidr" -1 Network 0 0 651;
    FLOAT4 700 "float4" "real" 4 Numeric 0 0 1021;
    FLOAT8 701 "float8" "double precision" 8 Numeric 1 0 1022;
    UNKNOWN 705 "unknown" "unknown" -2 Unknown 0 0 0;
    CIRCLE 718 "circle" "circle" 24 Geometric 0 0 719;
    MACADDR8 774 "macaddr8" "macaddr8" 8 User 0 0 775;
    MONEY 790 "money" "money" 8 Numeric 0 0 791;
    MACADDR 829 "macaddr" "macaddr" 6 User 0 0 1040;
    INET 869 "inet" "inet" -1 Network 1 0 1041;
    ACLITEM 1033 "aclitem" "aclitem" 12 User 0 0 1034;
    BPCHAR 1042 "bpchar" "character" -1 String 0 0 1014;
    VARCHAR 1043 "varchar" "character varying" -1 String 0 0 1015;
    DATE 1082 "date" "date" 4 DateTime 0 0 1182;
    TIME 1083 "time" "time without time zone" 8 DateTime 0 0 1183;
    TIMESTAMP 1114 "timestamp" "timestamp without time zone" 8 DateTime 0 0 1115;
    TIMESTAMPTZ 1184 "timestamptz" "timestamp with time zone" 8 DateTime 1 0 1185;
    INTERVAL 1186 "interval" "interval" 16 Timespan 1 0 1187;
    TIMETZ 1266 "timetz" "time with time zone" 12 DateTime 0 0 1270;
    BIT 1560 "bit" "bit" -1 Bits 0 0 1561;
    VARBIT 1562 "varbit" "bit varying" -1 Bits 1 0 1563;
    NUMERIC 1700 "numeric" "numeric" -1 Numeric 0 0 1231;
    REFCURSOR 1790 "refcursor" "refcursor" -1 User 0 0 2201;
    REGPROCEDURE 2202 "regprocedure" "regprocedure" 4 Numeric 0 0 2207;
    REGOPER 2203 "regoper" "regoper" 4 Numeric 0 0 2208;
    REGOPERATOR 2204 "regoperator" "regoperator" 4 Numeric 0 0 2209;
    REGCLASS 2205 "regclass" "regclass" 4 Numeric 0 0 2210;
    REGTYPE 2206 "regtype" "regtype" 4 Numeric 0 0 2211;
    RECORD 2249 "record" "record" -1 Pseudo 0 0 2287;
    CSTRING 2275 "cstring" "cstring" -2 Pseudo 0 0 1263;
    ANY 2276 "any" "\"any\"" 4 Pseudo 0 0 0;
    ANYARRAY 2277 "anyarray" "anyarray" -1 Pseudo 0 0 0;
    VOID 2278 "void" "void" 4 Pseudo 0 0 0;
    TRIGGER 2279 "trigger" "trigger" 4 Pseudo 0 0 0;
    LANGUAGE_HANDLER 2280 "language_handler" "language_handler" 4 Pseudo 0 0 0;
    INTERNAL 2281 "internal" "internal" 8 Pseudo 0 0 0;
    ANYELEMENT 2283 "anyelement" "anyelement" 4 Pseudo 0 0 0;
    ANYNONARRAY 2776 "anynonarray" "anynonarray" 4 Pseudo 0 0 0;
    UUID 2950 "uuid" "uuid" 16 User 0 0 2951;
    PG_LSN 3220 "pg_lsn" "pg_lsn" 8 User 0 0 3221;
    PG_NDISTINCT 3361 "pg_ndistinct" "pg_ndistinct" -1 Internal 0 0 0;
    PG_DEPENDENCIES 3402 "pg_dependencies" "pg_dependencies" -1 Internal 0 0 0;
    ANYENUM 3500 "anyenum" "anyenum" 4 Pseudo 0 0 0;
    TSVECTOR 3614 "tsvector" "tsvector" -1 User 0 0 3643;
    TSQUERY 3615 "tsquery" "tsquery" -1 User 0 0 3645;
    REGCONFIG 3734 "regconfig" "regconfig" 4 Numeric 0 0 3735;
    REGDICTIONARY 3769 "regdictionary" "regdictionary" 4 Numeric 0 0 3770;
    JSONB 3802 "jsonb" "jsonb" -1 User 0 0 3807;
    ANYRANGE 3831 "anyrange" "anyrange" -1 Pseudo 0 0 0;
    EVENT_TRIGGER 3838 "event_trigger" "event_trigger" 4 Pseudo 0 0 0;
    INT4RANGE 3904 "int4range" "int4range" -1 Range 0 0 3905;
    NUMRANGE 3906 "numrange" "numrange" -1 Range 0 0 3907;
    TSRANGE 3908 "tsrange" "tsrange" -1 Range 0 0 3909;
    TSTZRANGE 3910 "tstzrange" "tstzrange" -1 Range 0 0 3911;
    DATERANGE 3912 "daterange" "daterange" -1 Range 0 0 3913;
    INT8RANGE 3926 "int8range" "int8range" -1 Range 0 0 3927;
    JSONPATH 4072 "jsonpath" "jsonpath" -1 User 0 0 4073;
    REGNAMESPACE 4089 "regnamespace" "regnamespace" 4 Numeric 0 0 4090;
    REGROLE 4096 "regrole" "regrole" 4 Numeric 0 0 4097;
    REGCOLLATION 4191 "regcollation" "regcollation" 4 Numeric 0 0 4192;
    INT4MULTIRANGE 4451 "int4multirange" "int4multirange" -1 Range 0 0 6150;
    NUMMULTIRANGE 4532 "nummultirange" "nummultirange" -1 Range 0 0 6151;
    TSMULTIRANGE 4533 "tsmultirange" "tsmultirange" -1 Range 0 0 6152;
    TSTZMULTIRANGE 4534 "tstzmultirange" "tstzmultirange" -1 Range 0 0 6153;
    DATEMULTIRANGE 4535 "datemultirange" "datemultirange" -1 Range 0 0 6155;
    INT8MULTIRANGE 4536 "int8multirange" "int8multirange" -1 Range 0 0 6157;
    ANYMULTIRANGE 4537 "anymultirange" "anymultirange" -1 Pseudo 0 0 0;
    ANYCOMPATIBLEMULTIRANGE 4538 "anycompatiblemultirange" "anycompatiblemultirange" -1 Pseudo 0 0 0;
    PG_MCV_LIST 5017 "pg_mcv_list" "pg_mcv_list" -1 Internal 0 0 0;
    XID8 5069 "xid8" "xid8" 8 User 0 0 271;
    ANYCOMPATIBLE 5077 "anycompatible" "anycompatible" 4 Pseudo 0 0 0;
    ANYCOMPATIBLEARRAY 5078 "anycompatiblearray" "anycompatiblearray" -1 Pseudo 0 0 0;
    ANYCOMPATIBLENONARRAY 5079 "anycompatiblenonarray" "anycompatiblenonarray" 4 Pseudo 0 0 0;
    ANYCOMPATIBLERANGE 5080 "anycompatiblerange" "anycompatiblerange" -1 Pseudo 0 0 0;
}

/// The built-in types of ranges: each with the type of its bounds, and its multirange.
pub const RANGES: &[(TypeId, TypeId, TypeId)] = &[
    (TypeId::INT4RANGE, TypeId::INT4, TypeId::INT4MULTIRANGE),
    (TypeId::NUMRANGE, TypeId::NUMERIC, TypeId::NUMMULTIRANGE),
    (TypeId::TSRANGE, TypeId::TIMESTAMP, TypeId::TSMULTIRANGE),
    (
        TypeId::TSTZRANGE,
        TypeId::TIMESTAMPTZ,
        TypeId::TSTZMULTIRANGE,
    ),
    (TypeId::DATERANGE, TypeId::DATE, TypeId::DATEMULTIRANGE),
    (TypeId::INT8RANGE, TypeId::INT8, TypeId::INT8MULTIRANGE),
];

impl TypeId {
    /// The type of the bounds of a range.
    pub fn range_element(self) -> Option<TypeId> {
        if self.is_own() {
            return self.own_multirange().and(self.own_range_element());
        }
        let mut all = RANGES.iter();
        all.find(|range| range.0 == self).map(|range| range.1)
    }

    /// The multirange of a range.
    pub fn range_multirange(self) -> Option<TypeId> {
        if self.is_own() {
            return self.own_multirange();
        }
        let mut all = RANGES.iter();
        all.find(|range| range.0 == self).map(|range| range.2)
    }

    /// The range of a multirange.
    pub fn multirange_range(self) -> Option<TypeId> {
        if self.is_own() {
            return self.own_range_of_multirange();
        }
        let mut all = RANGES.iter();
        all.find(|range| range.2 == self).map(|range| range.0)
    }

    /// The type of the bounds of the ranges of a multirange.
    pub fn multirange_element(self) -> Option<TypeId> {
        self.multirange_range().and_then(TypeId::range_element)
    }

    /// Whether its values are ranges.
    pub fn is_range(self) -> bool {
        self.range_element().is_some()
    }

    /// Whether its values are multiranges.
    pub fn is_multirange(self) -> bool {
        self.multirange_range().is_some()
    }

    /// No type: absent operands, types without an array or an element.
    pub const NONE: TypeId = TypeId(0);
    /// `text[]`.
    pub const TEXT_ARRAY: TypeId = TypeId(1009);
    /// `boolean[]`.
    pub const BOOL_ARRAY: TypeId = TypeId(1000);
    /// `cstring[]`.
    pub const CSTRING_ARRAY: TypeId = TypeId(1263);
    /// `name[]`.
    pub const NAME_ARRAY: TypeId = TypeId(1003);
    /// `aclitem[]`.
    pub const ACLITEM_ARRAY: TypeId = TypeId(1034);
    /// `"char"[]`.
    pub const CHAR_ARRAY: TypeId = TypeId(1002);
    /// `real[]`.
    pub const FLOAT4_ARRAY: TypeId = TypeId(1021);
    /// `integer[]`.
    pub const INT4_ARRAY: TypeId = TypeId(1007);
    /// `double precision[]`.
    pub const FLOAT8_ARRAY: TypeId = TypeId(1022);
    /// `numeric[]`.
    pub const NUMERIC_ARRAY: TypeId = TypeId(1231);
    /// `interval[]`.
    pub const INTERVAL_ARRAY: TypeId = TypeId(1187);
    /// `int4range[]`.
    pub const INT4RANGE_ARRAY: TypeId = TypeId(3905);
    /// `numrange[]`.
    pub const NUMRANGE_ARRAY: TypeId = TypeId(3907);
    /// `tsrange[]`.
    pub const TSRANGE_ARRAY: TypeId = TypeId(3909);
    /// `tstzrange[]`.
    pub const TSTZRANGE_ARRAY: TypeId = TypeId(3911);
    /// `daterange[]`.
    pub const DATERANGE_ARRAY: TypeId = TypeId(3913);
    /// `int8range[]`.
    pub const INT8RANGE_ARRAY: TypeId = TypeId(3927);

    /// What is known of a type that is no array; `None` for arrays and types not built in.
    pub fn scalar_info(self) -> Option<&'static TypeInfo> {
        let index = TYPES.binary_search_by_key(&self, |info| info.id).ok()?;
        Some(&TYPES[index])
    }

    /// What is known of a type, arrays included.
    pub fn info(self) -> Option<TypeInfo> {
        if let Some(info) = self.scalar_info() {
            return Some(*info);
        }
        if self.is_own() {
            return self.own_info();
        }
        let element = TYPES
            .iter()
            .find(|info| info.array == self && self.0 != 0)?;
        Some(TypeInfo {
            id: self,
            name: "_",
            sql_name: element.sql_name,
            len: -1,
            category: Category::Array,
            preferred: false,
            element: element.id,
            array: TypeId::NONE,
        })
    }

    /// What the OID of a type of one's own says; of its name nothing.
    fn own_info(self) -> Option<TypeInfo> {
        let element = self.own_element();
        let (len, category) = match (element, self.own_kind()) {
            (Some(_), _) => (-1, Category::Array),
            (None, Some(OwnKind::Enum)) => (4, Category::Enum),
            (None, Some(OwnKind::Composite | OwnKind::Row)) => (-1, Category::Composite),
            (None, Some(OwnKind::Domain)) => (-1, Category::User),
            (None, Some(OwnKind::Range | OwnKind::Multirange)) => (-1, Category::Range),
            (None, Some(OwnKind::Base)) => {
                let base = self.base_type();
                (-1, base.map_or(Category::User, |base| base.category))
            }
            (None, None) => return None,
        };
        Some(TypeInfo {
            id: self,
            name: "",
            sql_name: "",
            len,
            category,
            preferred: false,
            element: element.unwrap_or(TypeId::NONE),
            array: self.own_array().unwrap_or(TypeId::NONE),
        })
    }

    /// The type of that `typname`, also `_int4` for arrays.
    pub fn by_name(name: &str) -> Option<TypeId> {
        if let Some(info) = TYPES.iter().find(|info| info.name == name) {
            return Some(info.id);
        }
        let element = TYPES
            .iter()
            .find(|info| Some(info.name) == name.strip_prefix('_'))?;
        (element.array.0 != 0).then_some(element.array)
    }

    /// The type that `format_type` or `typname` calls so, also with `[]` for arrays.
    pub fn by_sql_name(name: &str) -> Option<TypeId> {
        if let Some(element) = name.strip_suffix("[]") {
            return TypeId::by_sql_name(element)?.array_of();
        }
        let named = TYPES.iter().find(|info| info.sql_name == name);
        named.map(|info| info.id).or_else(|| TypeId::by_name(name))
    }

    /// `typname`.
    pub fn name(self) -> String {
        match self.info() {
            Some(_) if self.is_own() => self.to_string(),
            Some(info) if info.name == "_" => {
                let element = info.element.scalar_info().map_or("", |info| info.name);
                format!("_{element}")
            }
            Some(info) => info.name.to_owned(),
            None => self.0.to_string(),
        }
    }

    /// Its category; types not known here are of category `User`.
    pub fn category(self) -> Category {
        self.info().map_or(Category::User, |info| info.category)
    }

    /// Whether it is the preferred type of its category.
    pub fn is_preferred(self) -> bool {
        self.scalar_info().is_some_and(|info| info.preferred)
    }

    /// `typlen`.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> i16 {
        self.info().map_or(-1, |info| info.len)
    }

    /// The element type of a true array (not of `name` or a vector).
    pub fn array_element(self) -> Option<TypeId> {
        if self.is_own() {
            return self.own_element();
        }
        if self.scalar_info().is_some() {
            return None;
        }
        self.info().map(|info| info.element)
    }

    /// The element type of what is an array of a fixed length: `name`, and points, lines, line
    /// segments and boxes.
    pub fn fixed_element(self) -> Option<TypeId> {
        let is_fixed = self.is_geometric() || self == TypeId::NAME;
        let element = self.scalar_info().map(|info| info.element);
        element.filter(|element| is_fixed && element.0 != 0)
    }

    /// Whether PostgreSQL has a hash of its values; a recursion's UNION asks for one.
    pub fn is_hashable(self) -> bool {
        let element = self.array_element().unwrap_or(self);
        let without = [
            TypeId::BIT,
            TypeId::VARBIT,
            TypeId::MONEY,
            TypeId::TSVECTOR,
            TypeId::TSQUERY,
            TypeId::VECTOR,
            TypeId::HALFVEC,
            TypeId::SPARSEVEC,
            TypeId::LTREE,
            TypeId::LQUERY,
            TypeId::LTXTQUERY,
        ];
        !without.contains(&element) && !element.is_geometric()
    }

    /// Whether values have an order, which transaction and command ids do not.
    pub fn is_sortable(self) -> bool {
        let of = self.array_element().unwrap_or(self);
        !matches!(
            of,
            TypeId::XID
                | TypeId::CID
                | TypeId::ACLITEM
                | TypeId::JSON
                | TypeId::JSONPATH
                | TypeId::REFCURSOR
                | TypeId::LQUERY
                | TypeId::LTXTQUERY
                | TypeId::PG_NDISTINCT
                | TypeId::PG_DEPENDENCIES
                | TypeId::PG_MCV_LIST
        ) && !of.is_geometric()
    }

    /// Whether two values may be equal.
    pub fn has_equality(self) -> bool {
        let of = self.array_element().unwrap_or(self);
        !matches!(
            of,
            TypeId::JSON
                | TypeId::JSONPATH
                | TypeId::REFCURSOR
                | TypeId::LQUERY
                | TypeId::LTXTQUERY
                | TypeId::PG_NDISTINCT
                | TypeId::PG_DEPENDENCIES
                | TypeId::PG_MCV_LIST
        ) && !of.is_geometric()
    }

    /// Whether values are kept as `Datum::Geometry`.
    pub fn is_geometric(self) -> bool {
        matches!(
            self,
            TypeId::POINT
                | TypeId::LINE
                | TypeId::LSEG
                | TypeId::BOX
                | TypeId::PATH
                | TypeId::POLYGON
                | TypeId::CIRCLE
        )
    }

    /// `typdelim`: what stands between the elements of an array of values of this type.
    pub fn delimiter(self) -> char {
        match self.array_element().unwrap_or(self) {
            TypeId::BOX => ';',
            _ => ',',
        }
    }

    /// The array type over this one.
    pub fn array_of(self) -> Option<TypeId> {
        if self.is_own() {
            return self.own_array();
        }
        let array = self.scalar_info()?.array;
        (array.0 != 0).then_some(array)
    }

    /// Whether it is one of the polymorphic pseudo-types.
    pub fn is_polymorphic(self) -> bool {
        matches!(
            self,
            TypeId::ANYELEMENT
                | TypeId::ANYARRAY
                | TypeId::ANYNONARRAY
                | TypeId::ANYENUM
                | TypeId::ANYCOMPATIBLE
                | TypeId::ANYCOMPATIBLEARRAY
                | TypeId::ANYCOMPATIBLENONARRAY
                | TypeId::ANYRANGE
                | TypeId::ANYMULTIRANGE
                | TypeId::ANYCOMPATIBLERANGE
                | TypeId::ANYCOMPATIBLEMULTIRANGE
        )
    }

    /// Whether values are kept as text (`Datum::Text`).
    pub fn is_text_like(self) -> bool {
        matches!(
            self,
            TypeId::TEXT
                | TypeId::VARCHAR
                | TypeId::BPCHAR
                | TypeId::NAME
                | TypeId::UNKNOWN
                | TypeId::CSTRING
                | TypeId::PG_NODE_TREE
                | TypeId::PG_NDISTINCT
                | TypeId::PG_DEPENDENCIES
                | TypeId::ACLITEM
                | TypeId::JSON
                | TypeId::JSONPATH
                | TypeId::REFCURSOR
                | TypeId::CITEXT
                | TypeId::LTREE
                | TypeId::LQUERY
                | TypeId::LTXTQUERY
        )
    }

    /// Whether values are kept as `Datum::Vector`.
    pub fn is_vector(self) -> bool {
        matches!(self, TypeId::VECTOR | TypeId::HALFVEC | TypeId::SPARSEVEC)
    }

    /// Whether values are kept as `Datum::Oid`.
    pub fn is_oid_like(self) -> bool {
        matches!(
            self,
            TypeId::OID
                | TypeId::REGPROC
                | TypeId::REGPROCEDURE
                | TypeId::REGOPER
                | TypeId::REGOPERATOR
                | TypeId::REGCLASS
                | TypeId::REGTYPE
                | TypeId::REGCOLLATION
                | TypeId::REGNAMESPACE
                | TypeId::REGROLE
                | TypeId::REGCONFIG
                | TypeId::REGDICTIONARY
                | TypeId::XID
                | TypeId::CID
        )
    }
}

impl fmt::Debug for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())
    }
}

/// What `format_type` says of the type without a modifier, as in error messages.
impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(_) if self.is_own() => match self.own_element() {
                Some(element) => write!(f, "{element}[]"),
                None => write!(f, "{MARK}{}{MARK}", self.0),
            },
            Some(info) if info.name == "_" => write!(f, "{}[]", info.sql_name),
            Some(info) => f.write_str(info.sql_name),
            None if self.0 == 0 => f.write_str("-"),
            None => f.write_str("???"),
        }
    }
}
