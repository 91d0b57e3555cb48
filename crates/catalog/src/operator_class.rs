//! Operator classes of indexes, and the methods that have them.
//!
//! Every index is a tree, ordered by its keys' bytes. A method is accepted with the operator classes
//! that such a tree serves truly: `hash` promises equality, `brin` equality and ranges, `spgist` on
//! text equality, ranges and prefixes, `gist` with the classes of `btree_gist` equality and ranges.
//! `gist` and `spgist` on ranges, addresses and paths are ordered as these are: they serve equality and
//! order, while `&&`, `@>`, `<<=` and `~` look at every row.
//! `bloom`, of the extension of that name, promises equality as `hash` does, of several keys each by
//! itself, of which a tree serves those that come first.
//! `gin` is another matter ([`super::inverted`]). Since texts are ordered by their bytes under any collation,
//! `text_pattern_ops` and its kin order as the default classes do; they are kept and shown for
//! whoever takes the index elsewhere, and either kind finds `LIKE 'x%'`.
//!
//! # What it leaves out
//! What a tree of keys does not serve: `gist` and `spgist` on other types, such as those of geometry,
//! and classes that are not built in. What only saves space: a hash or brin index is as large as a btree.

use crate::layout::{BTREE, HEAP};
use types::TypeId;

/// The access method of hash indexes.
pub const HASH: u32 = 405;
/// The access method of block ranges.
pub const BRIN: u32 = 3_580;
/// The access method of generalized search trees.
pub const GIST: u32 = 783;
/// The access method of inverted indexes.
pub const GIN: u32 = 2_742;
/// The access method of space-partitioned trees.
pub const SPGIST: u32 = 4_000;

/// The oid of `tsvector_ops` of gist, whose indexes are inverted ones.
pub const TSVECTOR_OPS_GIST: u32 = 10_072;

/// The oid of `gist_hstore_ops`, likewise.
pub const HSTORE_OPS_GIST: u32 = 9_684;

/// The family of gist for addresses.
pub const NETWORK_OPS_GIST: u32 = 3_550;

/// That of spgist.
pub const NETWORK_OPS_SPGIST: u32 = 3_794;

/// The families of `btree_gist`.
pub const BTREE_GIST_FAMILIES: std::ops::RangeInclusive<u32> = 9_650..=9_669;

/// Whether a class of gist is one of inverted indexes.
pub fn is_inverted_gist(class: u32) -> bool {
    matches!(class, TSVECTOR_OPS_GIST | HSTORE_OPS_GIST)
}

/// The access method of extension `bloom`: trees that promise equality.
pub const BLOOM: u32 = 9_690;

/// The access methods of extensions, by the extension that has them: as [`METHODS`].
pub const METHODS_OF_EXTENSIONS: [(&str, (u32, &str, u8)); 1] = [("bloom", (BLOOM, "bloom", b'i'))];

/// The access methods that are there without an extension: oid, name, kind as `amtype` has it.
pub const METHODS: [(u32, &str, u8); 7] = [
    (HEAP, "heap", b't'),
    (BTREE, "btree", b'i'),
    (HASH, "hash", b'i'),
    (GIST, "gist", b'i'),
    (GIN, "gin", b'i'),
    (SPGIST, "spgist", b'i'),
    (BRIN, "brin", b'i'),
];

fn all_methods() -> impl Iterator<Item = &'static (u32, &'static str, u8)> {
    let others = METHODS_OF_EXTENSIONS.iter().map(|own| &own.1);
    METHODS.iter().chain(others)
}

/// The access method of indexes of that name.
pub fn method_named(name: &str) -> Option<u32> {
    let mut indexes = all_methods().filter(|method| method.2 == b'i');
    let found = indexes.find(|method| method.1 == name);
    found.map(|method| method.0)
}

/// The extension that has an access method; none for one that is built in.
pub fn extension_of_method(method: u32) -> Option<&'static str> {
    let mut all = METHODS_OF_EXTENSIONS.iter();
    all.find(|own| own.1 .0 == method).map(|own| own.0)
}

/// The name of an access method, or nothing.
pub fn method_name(oid: u32) -> &'static str {
    let found = all_methods().find(|method| method.0 == oid);
    found.map_or("", |method| method.1)
}

/// An operator class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorClass {
    /// Its oid.
    pub oid: u32,
    /// The access method that it is for.
    pub method: u32,
    /// Its name, in `pg_catalog`.
    pub name: &'static str,
    /// The oid of its family.
    pub family: u32,
    /// The family's name.
    pub family_name: &'static str,
    /// The type of the values.
    pub input: TypeId,
    /// Whether it is the one that is meant where none is named.
    pub is_default: bool,
}

macro_rules! classes {
    ($($oid:literal $method:literal $name:literal $family:literal $family_name:literal $input:ident
       $default:ident;)*) => {
        &[$(OperatorClass {
            oid: $oid,
            method: $method,
            name: $name,
            family: $family,
            family_name: $family_name,
            input: TypeId::$input,
            is_default: classes!(@ $default),
        },)*]
    };
    (@ default) => { true };
    (@ other) => { false };
}

/// All of them, as `pg_opclass` numbers them.
pub const CLASSES: &[OperatorClass] = classes! {
    1978 403 "int4_ops" 1976 "integer_ops" INT4 default;
    1979 403 "int2_ops" 1976 "integer_ops" INT2 default;
    1981 403 "oid_ops" 1989 "oid_ops" OID default;
    3122 403 "date_ops" 434 "datetime_ops" DATE default;
    3123 403 "float8_ops" 1970 "float_ops" FLOAT8 default;
    3124 403 "int8_ops" 1976 "integer_ops" INT8 default;
    3125 403 "numeric_ops" 1988 "numeric_ops" NUMERIC default;
    3126 403 "text_ops" 1994 "text_ops" TEXT default;
    3127 403 "timestamptz_ops" 434 "datetime_ops" TIMESTAMPTZ default;
    3128 403 "timestamp_ops" 434 "datetime_ops" TIMESTAMP default;
    4217 403 "text_pattern_ops" 2095 "text_pattern_ops" TEXT other;
    4218 403 "varchar_pattern_ops" 2095 "text_pattern_ops" TEXT other;
    4219 403 "bpchar_pattern_ops" 2097 "bpchar_pattern_ops" BPCHAR other;
    10000 403 "array_ops" 397 "array_ops" ANYARRAY default;
    10003 403 "bool_ops" 424 "bool_ops" BOOL default;
    10004 403 "bpchar_ops" 426 "bpchar_ops" BPCHAR default;
    10006 403 "bytea_ops" 428 "bytea_ops" BYTEA default;
    10007 403 "char_ops" 429 "char_ops" CHAR default;
    10012 403 "float4_ops" 1970 "float_ops" FLOAT4 default;
    10002 403 "bit_ops" 423 "bit_ops" BIT default;
    10034 403 "record_ops" 2994 "record_ops" RECORD default;
    10035 405 "record_ops" 6194 "record_ops" RECORD default;
    10009 403 "cidr_ops" 1974 "network_ops" INET other;
    10024 403 "macaddr_ops" 1984 "macaddr_ops" MACADDR default;
    10026 403 "macaddr8_ops" 3371 "macaddr8_ops" MACADDR8 default;
    10043 403 "varbit_ops" 2002 "varbit_ops" VARBIT default;
    10015 403 "inet_ops" 1974 "network_ops" INET default;
    10022 403 "interval_ops" 1982 "interval_ops" INTERVAL default;
    10028 403 "name_ops" 1994 "text_ops" NAME default;
    10038 403 "time_ops" 1996 "time_ops" TIME default;
    10041 403 "timetz_ops" 2000 "timetz_ops" TIMETZ default;
    10044 403 "varchar_ops" 1994 "text_ops" TEXT other;
    10047 403 "money_ops" 2099 "money_ops" MONEY default;
    10053 403 "xid8_ops" 5067 "xid8_ops" XID8 default;
    10065 403 "uuid_ops" 2968 "uuid_ops" UUID default;
    10067 403 "pg_lsn_ops" 3253 "pg_lsn_ops" PG_LSN default;
    10069 403 "enum_ops" 3522 "enum_ops" ANYENUM default;
    10071 403 "tsvector_ops" 3626 "tsvector_ops" TSVECTOR default;
    10076 403 "range_ops" 3901 "range_ops" ANYRANGE default;
    10080 403 "multirange_ops" 4199 "multirange_ops" ANYMULTIRANGE default;
    10088 403 "jsonb_ops" 4033 "jsonb_ops" JSONB default;
    10001 405 "array_ops" 627 "array_ops" ANYARRAY default;
    10010 405 "cidr_ops" 1975 "network_ops" INET other;
    10016 405 "inet_ops" 1975 "network_ops" INET default;
    10025 405 "macaddr_ops" 1985 "macaddr_ops" MACADDR default;
    10027 405 "macaddr8_ops" 3372 "macaddr8_ops" MACADDR8 default;
    10005 405 "bpchar_ops" 427 "bpchar_ops" BPCHAR default;
    10008 405 "char_ops" 431 "char_ops" CHAR default;
    10011 405 "date_ops" 435 "date_ops" DATE default;
    10013 405 "float4_ops" 1971 "float_ops" FLOAT4 default;
    10014 405 "float8_ops" 1971 "float_ops" FLOAT8 default;
    10019 405 "int2_ops" 1977 "integer_ops" INT2 default;
    10020 405 "int4_ops" 1977 "integer_ops" INT4 default;
    10021 405 "int8_ops" 1977 "integer_ops" INT8 default;
    10023 405 "interval_ops" 1983 "interval_ops" INTERVAL default;
    10029 405 "name_ops" 1995 "text_ops" NAME default;
    10030 405 "numeric_ops" 1998 "numeric_ops" NUMERIC default;
    10031 405 "oid_ops" 1990 "oid_ops" OID default;
    10037 405 "text_ops" 1995 "text_ops" TEXT default;
    10039 405 "time_ops" 1997 "time_ops" TIME default;
    10040 405 "timestamptz_ops" 1999 "timestamptz_ops" TIMESTAMPTZ default;
    10042 405 "timetz_ops" 2001 "timetz_ops" TIMETZ default;
    10045 405 "varchar_ops" 1995 "text_ops" TEXT other;
    10046 405 "timestamp_ops" 2040 "timestamp_ops" TIMESTAMP default;
    10048 405 "bool_ops" 2222 "bool_ops" BOOL default;
    10049 405 "bytea_ops" 2223 "bytea_ops" BYTEA default;
    10052 405 "xid8_ops" 5032 "xid8_ops" XID8 default;
    10055 405 "tid_ops" 2227 "tid_ops" TID default;
    10056 405 "text_pattern_ops" 2229 "text_pattern_ops" TEXT other;
    10057 405 "varchar_pattern_ops" 2229 "text_pattern_ops" TEXT other;
    10058 405 "bpchar_pattern_ops" 2231 "bpchar_pattern_ops" BPCHAR other;
    10066 405 "uuid_ops" 2969 "uuid_ops" UUID default;
    10068 405 "pg_lsn_ops" 3254 "pg_lsn_ops" PG_LSN default;
    10070 405 "enum_ops" 3523 "enum_ops" ANYENUM default;
    10077 405 "range_ops" 3903 "range_ops" ANYRANGE default;
    10081 405 "multirange_ops" 4225 "multirange_ops" ANYMULTIRANGE default;
    10089 405 "jsonb_ops" 4034 "jsonb_ops" JSONB default;
    10092 3580 "bytea_minmax_ops" 4064 "bytea_minmax_ops" BYTEA default;
    10093 3580 "bytea_bloom_ops" 4578 "bytea_bloom_ops" BYTEA other;
    10094 3580 "char_minmax_ops" 4062 "char_minmax_ops" CHAR default;
    10095 3580 "char_bloom_ops" 4577 "char_bloom_ops" CHAR other;
    10096 3580 "name_minmax_ops" 4065 "name_minmax_ops" NAME default;
    10097 3580 "name_bloom_ops" 4579 "name_bloom_ops" NAME other;
    10098 3580 "int8_minmax_ops" 4054 "integer_minmax_ops" INT8 default;
    10099 3580 "int8_minmax_multi_ops" 4602 "integer_minmax_multi_ops" INT8 other;
    10100 3580 "int8_bloom_ops" 4572 "integer_bloom_ops" INT8 other;
    10101 3580 "int2_minmax_ops" 4054 "integer_minmax_ops" INT2 default;
    10102 3580 "int2_minmax_multi_ops" 4602 "integer_minmax_multi_ops" INT2 other;
    10103 3580 "int2_bloom_ops" 4572 "integer_bloom_ops" INT2 other;
    10104 3580 "int4_minmax_ops" 4054 "integer_minmax_ops" INT4 default;
    10105 3580 "int4_minmax_multi_ops" 4602 "integer_minmax_multi_ops" INT4 other;
    10106 3580 "int4_bloom_ops" 4572 "integer_bloom_ops" INT4 other;
    10107 3580 "text_minmax_ops" 4056 "text_minmax_ops" TEXT default;
    10108 3580 "text_bloom_ops" 4573 "text_bloom_ops" TEXT other;
    10109 3580 "oid_minmax_ops" 4068 "oid_minmax_ops" OID default;
    10110 3580 "oid_minmax_multi_ops" 4606 "oid_minmax_multi_ops" OID other;
    10111 3580 "oid_bloom_ops" 4580 "oid_bloom_ops" OID other;
    10112 3580 "tid_minmax_ops" 4069 "tid_minmax_ops" TID default;
    10113 3580 "tid_bloom_ops" 4581 "tid_bloom_ops" TID other;
    10114 3580 "tid_minmax_multi_ops" 4607 "tid_minmax_multi_ops" TID other;
    10115 3580 "float4_minmax_ops" 4070 "float_minmax_ops" FLOAT4 default;
    10116 3580 "float4_minmax_multi_ops" 4608 "float_minmax_multi_ops" FLOAT4 other;
    10117 3580 "float4_bloom_ops" 4582 "float_bloom_ops" FLOAT4 other;
    10118 3580 "float8_minmax_ops" 4070 "float_minmax_ops" FLOAT8 default;
    10119 3580 "float8_minmax_multi_ops" 4608 "float_minmax_multi_ops" FLOAT8 other;
    10120 3580 "float8_bloom_ops" 4582 "float_bloom_ops" FLOAT8 other;
    10131 3580 "bpchar_minmax_ops" 4076 "bpchar_minmax_ops" BPCHAR default;
    10132 3580 "bpchar_bloom_ops" 4586 "bpchar_bloom_ops" BPCHAR other;
    10133 3580 "time_minmax_ops" 4077 "time_minmax_ops" TIME default;
    10134 3580 "time_minmax_multi_ops" 4612 "time_minmax_multi_ops" TIME other;
    10135 3580 "time_bloom_ops" 4587 "time_bloom_ops" TIME other;
    10136 3580 "date_minmax_ops" 4059 "datetime_minmax_ops" DATE default;
    10137 3580 "date_minmax_multi_ops" 4605 "datetime_minmax_multi_ops" DATE other;
    10138 3580 "date_bloom_ops" 4576 "datetime_bloom_ops" DATE other;
    10139 3580 "timestamp_minmax_ops" 4059 "datetime_minmax_ops" TIMESTAMP default;
    10140 3580 "timestamp_minmax_multi_ops" 4605 "datetime_minmax_multi_ops" TIMESTAMP other;
    10141 3580 "timestamp_bloom_ops" 4576 "datetime_bloom_ops" TIMESTAMP other;
    10142 3580 "timestamptz_minmax_ops" 4059 "datetime_minmax_ops" TIMESTAMPTZ default;
    10143 3580 "timestamptz_minmax_multi_ops" 4605 "datetime_minmax_multi_ops" TIMESTAMPTZ other;
    10144 3580 "timestamptz_bloom_ops" 4576 "datetime_bloom_ops" TIMESTAMPTZ other;
    10145 3580 "interval_minmax_ops" 4078 "interval_minmax_ops" INTERVAL default;
    10146 3580 "interval_minmax_multi_ops" 4613 "interval_minmax_multi_ops" INTERVAL other;
    10147 3580 "interval_bloom_ops" 4588 "interval_bloom_ops" INTERVAL other;
    10148 3580 "timetz_minmax_ops" 4058 "timetz_minmax_ops" TIMETZ default;
    10149 3580 "timetz_minmax_multi_ops" 4604 "timetz_minmax_multi_ops" TIMETZ other;
    10150 3580 "timetz_bloom_ops" 4575 "timetz_bloom_ops" TIMETZ other;
    10153 3580 "numeric_minmax_ops" 4055 "numeric_minmax_ops" NUMERIC default;
    10154 3580 "numeric_minmax_multi_ops" 4603 "numeric_minmax_multi_ops" NUMERIC other;
    10155 3580 "numeric_bloom_ops" 4574 "numeric_bloom_ops" NUMERIC other;
    10156 3580 "uuid_minmax_ops" 4081 "uuid_minmax_ops" UUID default;
    10157 3580 "uuid_minmax_multi_ops" 4614 "uuid_minmax_multi_ops" UUID other;
    10158 3580 "uuid_bloom_ops" 4589 "uuid_bloom_ops" UUID other;
    10160 3580 "pg_lsn_minmax_ops" 4082 "pg_lsn_minmax_ops" PG_LSN default;
    10161 3580 "pg_lsn_minmax_multi_ops" 4615 "pg_lsn_minmax_multi_ops" PG_LSN other;
    10162 3580 "pg_lsn_bloom_ops" 4590 "pg_lsn_bloom_ops" PG_LSN other;
    10018 4000 "inet_ops" 3794 "network_ops" INET default;
    10086 4000 "text_ops" 4017 "text_ops" TEXT default;
    10017 783 "inet_ops" 3550 "network_ops" INET other;
    10072 783 "tsvector_ops" 3655 "tsvector_ops" TSVECTOR default;
    10078 783 "range_ops" 3919 "range_ops" ANYRANGE default;
    10082 783 "multirange_ops" 6158 "multirange_ops" ANYMULTIRANGE default;
    10079 4000 "range_ops" 3474 "range_ops" ANYRANGE default;
    10064 2742 "array_ops" 2745 "array_ops" ANYARRAY default;
    10073 2742 "tsvector_ops" 3659 "tsvector_ops" TSVECTOR default;
    10090 2742 "jsonb_ops" 4036 "jsonb_ops" JSONB default;
    10091 2742 "jsonb_path_ops" 4037 "jsonb_path_ops" JSONB other;
};

/// The classes of extensions, by the extension that has them. Their oids are the same everywhere.
pub const OF_EXTENSIONS: &[(&str, &[OperatorClass])] = &[
    ("bloom", BLOOM_CLASSES),
    ("btree_gin", BTREE_GIN),
    ("btree_gist", BTREE_GIST),
    ("citext", CITEXT),
    ("hstore", HSTORE),
    ("ltree", LTREE),
    ("pg_trgm", PG_TRGM),
    ("vector", VECTORS),
];

const LTREE: &[OperatorClass] = classes! {
    8506 403 "ltree_ops" 8509 "ltree_ops" LTREE default;
    8507 783 "gist_ltree_ops" 8510 "gist_ltree_ops" LTREE default;
    8508 783 "gist__ltree_ops" 8511 "gist__ltree_ops" LTREE_ARRAY default;
};

const VECTORS: &[OperatorClass] = classes! {
    8500 403 "vector_ops" 8503 "vector_ops" VECTOR default;
    8501 403 "halfvec_ops" 8504 "halfvec_ops" HALFVEC default;
    8502 403 "sparsevec_ops" 8505 "sparsevec_ops" SPARSEVEC default;
};

const CITEXT: &[OperatorClass] = classes! {
    9670 403 "citext_ops" 9675 "citext_ops" CITEXT default;
    9671 405 "citext_ops" 9676 "citext_ops" CITEXT default;
    9672 403 "citext_pattern_ops" 9677 "citext_pattern_ops" CITEXT other;
};

const HSTORE: &[OperatorClass] = classes! {
    9681 403 "btree_hstore_ops" 9685 "btree_hstore_ops" HSTORE default;
    9682 405 "hash_hstore_ops" 9686 "hash_hstore_ops" HSTORE default;
    9683 2742 "gin_hstore_ops" 9687 "gin_hstore_ops" HSTORE default;
    9684 783 "gist_hstore_ops" 9688 "gist_hstore_ops" HSTORE default;
};

const BLOOM_CLASSES: &[OperatorClass] = classes! {
    9691 9690 "int4_ops" 9693 "int4_ops" INT4 default;
    9692 9690 "text_ops" 9694 "text_ops" TEXT default;
};

const PG_TRGM: &[OperatorClass] = classes! {
    9501 2742 "gin_trgm_ops" 9601 "gin_trgm_ops" TEXT other;
};

const BTREE_GIN: &[OperatorClass] = classes! {
    9510 2742 "bool_ops" 9610 "bool_ops" BOOL default;
    9511 2742 "bpchar_ops" 9611 "bpchar_ops" BPCHAR default;
    9512 2742 "bytea_ops" 9612 "bytea_ops" BYTEA default;
    9513 2742 "char_ops" 9613 "char_ops" CHAR default;
    9514 2742 "date_ops" 9614 "date_ops" DATE default;
    9515 2742 "enum_ops" 9615 "enum_ops" ANYENUM default;
    9516 2742 "float4_ops" 9616 "float4_ops" FLOAT4 default;
    9517 2742 "float8_ops" 9617 "float8_ops" FLOAT8 default;
    9518 2742 "inet_ops" 9618 "inet_ops" INET default;
    9519 2742 "int2_ops" 9619 "int2_ops" INT2 default;
    9520 2742 "int4_ops" 9620 "int4_ops" INT4 default;
    9521 2742 "int8_ops" 9621 "int8_ops" INT8 default;
    9522 2742 "interval_ops" 9622 "interval_ops" INTERVAL default;
    9523 2742 "name_ops" 9623 "name_ops" NAME default;
    9524 2742 "numeric_ops" 9624 "numeric_ops" NUMERIC default;
    9525 2742 "oid_ops" 9625 "oid_ops" OID default;
    9526 2742 "text_ops" 9626 "text_ops" TEXT default;
    9527 2742 "time_ops" 9627 "time_ops" TIME default;
    9528 2742 "timestamp_ops" 9628 "timestamp_ops" TIMESTAMP default;
    9529 2742 "timestamptz_ops" 9629 "timestamptz_ops" TIMESTAMPTZ default;
    9530 2742 "timetz_ops" 9630 "timetz_ops" TIMETZ default;
    9531 2742 "uuid_ops" 9631 "uuid_ops" UUID default;
};

const BTREE_GIST: &[OperatorClass] = classes! {
    9550 783 "gist_bool_ops" 9650 "gist_bool_ops" BOOL default;
    9551 783 "gist_bpchar_ops" 9651 "gist_bpchar_ops" BPCHAR default;
    9552 783 "gist_bytea_ops" 9652 "gist_bytea_ops" BYTEA default;
    9553 783 "gist_date_ops" 9653 "gist_date_ops" DATE default;
    9554 783 "gist_enum_ops" 9654 "gist_enum_ops" ANYENUM default;
    9555 783 "gist_float4_ops" 9655 "gist_float4_ops" FLOAT4 default;
    9556 783 "gist_float8_ops" 9656 "gist_float8_ops" FLOAT8 default;
    9557 783 "gist_inet_ops" 9657 "gist_inet_ops" INET default;
    9558 783 "gist_int2_ops" 9658 "gist_int2_ops" INT2 default;
    9559 783 "gist_int4_ops" 9659 "gist_int4_ops" INT4 default;
    9560 783 "gist_int8_ops" 9660 "gist_int8_ops" INT8 default;
    9561 783 "gist_interval_ops" 9661 "gist_interval_ops" INTERVAL default;
    9562 783 "gist_numeric_ops" 9662 "gist_numeric_ops" NUMERIC default;
    9563 783 "gist_oid_ops" 9663 "gist_oid_ops" OID default;
    9564 783 "gist_text_ops" 9664 "gist_text_ops" TEXT default;
    9565 783 "gist_time_ops" 9665 "gist_time_ops" TIME default;
    9566 783 "gist_timestamp_ops" 9666 "gist_timestamp_ops" TIMESTAMP default;
    9567 783 "gist_timestamptz_ops" 9667 "gist_timestamptz_ops" TIMESTAMPTZ default;
    9568 783 "gist_timetz_ops" 9668 "gist_timetz_ops" TIMETZ default;
    9569 783 "gist_uuid_ops" 9669 "gist_uuid_ops" UUID default;
};

/// All classes, those of extensions too.
pub fn all() -> impl Iterator<Item = &'static OperatorClass> {
    let others = OF_EXTENSIONS.iter().flat_map(|own| own.1);
    CLASSES.iter().chain(others)
}

/// The extension that has a class; none for one that is built in.
pub fn extension_of(class: u32) -> Option<&'static str> {
    let mut all = OF_EXTENSIONS.iter();
    let found = all.find(|own| own.1.iter().any(|known| known.oid == class));
    found.map(|own| own.0)
}

/// The type of which an operator class must be for values of that type.
fn input_of(ty: TypeId) -> TypeId {
    match ty {
        TypeId::VARCHAR => TypeId::TEXT,
        TypeId::CIDR => TypeId::INET,
        ty if ty.array_element().is_some() => TypeId::ANYARRAY,
        ty if ty.is_enum() => TypeId::ANYENUM,
        ty if ty.is_range() => TypeId::ANYRANGE,
        ty if ty.is_multirange() => TypeId::ANYMULTIRANGE,
        ty if ty.is_oid_like() => TypeId::OID,
        ty if ty.is_composite() => TypeId::RECORD,
        ty => ty,
    }
}

impl OperatorClass {
    /// The class that a method has for a type where none is named.
    pub fn default_of(method: u32, ty: TypeId) -> Option<&'static OperatorClass> {
        let input = input_of(ty);
        let mut own = all().filter(|class| class.method == method);
        own.find(|class| class.is_default && (class.input == input || class.input == ty))
    }

    /// The classes of that name.
    pub fn named(method: u32, name: &str) -> impl Iterator<Item = &'static OperatorClass> + '_ {
        all().filter(move |class| class.method == method && class.name == name)
    }

    /// The class with that oid.
    pub fn by_oid(oid: u32) -> Option<&'static OperatorClass> {
        all().find(|class| class.oid == oid)
    }

    /// Whether it takes values of that type.
    pub fn accepts(&self, ty: TypeId) -> bool {
        self.input == input_of(ty) || self.input == ty
    }
}
