//! How the tables of functions, operators and casts are written.
//!
//! A function is `oid "name" (argument types) result "flags" body;`. The flags are: `i`, `s` or `v`
//! for immutable, stable and volatile; `n` when it is called with NULLs; a second `v` when the last
//! argument is variadic; a digit for how many trailing arguments may be left out. The body is one of
//!
//! | body | what computes it |
//! |---|---|
//! | `strings::lower` | a function of values, here |
//! | `set arrays::unnest` | one that gives rows, here |
//! | `records sets::ZONES` | one whose rows have several columns: these, and who makes them |
//! | `session Sequence::Next` | the executor: a group and a function of [`super::session`] |
//! | `unsupported` | nothing: a call is answered 0A000 with its name |
//!
//! An operator is `oid "name" left right function "commutator" "negator";`, a cast `source target
//! how "context";` where `how` is a function's OID, 0 for the same bits, 1 for the text form, 2 and 3
//! for the same bits between an integer and an OID.

use super::Volatility;
use types::TypeId;

/// How explicit a conversion is; each allows what the ones before it allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// In an expression, unasked.
    Implicit,
    /// To the type of a column that is assigned to.
    Assignment,
    /// `CAST` and `::`.
    Explicit,
}

/// An operator whose function is still an OID.
#[derive(Debug)]
pub(crate) struct OperatorRow {
    pub oid: u32,
    pub name: &'static str,
    pub left: TypeId,
    pub right: TypeId,
    pub function: u32,
    pub commutator: &'static str,
    pub negator: &'static str,
}

/// A cast whose method is still a number.
#[derive(Debug)]
pub(crate) struct CastRow {
    pub source: TypeId,
    pub target: TypeId,
    pub how: u32,
    pub context: CastContext,
}

pub(crate) const fn volatility(flags: &str) -> Volatility {
    match flags.as_bytes()[0] {
        b'i' => Volatility::Immutable,
        b's' => Volatility::Stable,
        _ => Volatility::Volatile,
    }
}

/// Whether a flag stands after the first.
pub(crate) const fn has_flag(flags: &str, flag: u8) -> bool {
    let bytes = flags.as_bytes();
    let mut index = 1;
    while index < bytes.len() {
        if bytes[index] == flag {
            return true;
        }
        index += 1;
    }
    false
}

pub(crate) const fn defaults(flags: &str) -> u8 {
    let last = flags.as_bytes()[flags.len() - 1];
    if last.is_ascii_digit() {
        last - b'0'
    } else {
        0
    }
}

pub(crate) const fn cast_context(code: &str) -> CastContext {
    match code.as_bytes()[0] {
        b'i' => CastContext::Implicit,
        b'a' => CastContext::Assignment,
        _ => CastContext::Explicit,
    }
}

macro_rules! body {
    (session Own::$name:ident) => {
        $crate::table::body!(@Own OwnFunction $name)
    };
    (session Backend::$name:ident) => {
        $crate::table::body!(@Backend BackendFunction $name)
    };
    (session Wal::$name:ident) => {
        $crate::table::body!(@Wal WalFunction $name)
    };
    (session Cluster::$name:ident) => {
        $crate::table::body!(@Cluster ClusterFunction $name)
    };
    (session Transaction::$name:ident) => {
        $crate::table::body!(@Transaction TransactionFunction $name)
    };
    (session Sequence::$name:ident) => {
        $crate::table::body!(@Sequence SequenceFunction $name)
    };
    (session Size::$name:ident) => {
        $crate::table::body!(@Size SizeFunction $name)
    };
    (session Privilege::$name:ident) => {
        $crate::table::body!(@Privilege PrivilegeFunction $name)
    };
    (session Advisory::$name:ident) => {
        $crate::table::body!(@Advisory AdvisoryFunction $name)
    };
    (session Statistics::$name:ident) => {
        $crate::table::body!(@Statistics StatisticsFunction $name)
    };
    (session LargeObject::$name:ident) => {
        $crate::table::body!(@LargeObject LargeObjectFunction $name)
    };
    (session Statements::$name:ident) => {
        $crate::table::body!(@Statements StatementsFunction $name)
    };
    (session Catalog::$name:ident) => {
        $crate::table::body!(@Catalog CatalogFunction $name)
    };
    (@$group:ident $functions:ident $name:ident) => {
        $crate::Body::Session($crate::session::SessionFunction::$group(
            $crate::session::$functions::$name,
        ))
    };
    (unsupported) => {
        $crate::Body::Session($crate::session::SessionFunction::Unsupported)
    };
    (records $module:ident::$name:ident) => {
        $crate::Body::Records(&$crate::$module::$name)
    };
    (set $module:ident::$name:ident) => {
        $crate::Body::Set($crate::$module::$name)
    };
    ($module:ident::$name:ident) => {
        $crate::Body::Native($crate::$module::$name)
    };
}

macro_rules! functions {
    ($($oid:literal $name:literal ($($argument:ident)*) $result:ident $flags:literal
       $($body:ident)::+ $($set:ident::$set_name:ident)?;)*) => {
        pub(crate) static FUNCTIONS: &[$crate::Function] = &[
            $($crate::Function {
                oid: $oid,
                name: $name,
                arguments: &[$(::types::TypeId::$argument),*],
                variadic: $crate::table::has_flag($flags, b'v'),
                defaults: $crate::table::defaults($flags),
                result: ::types::TypeId::$result,
                volatility: $crate::table::volatility($flags),
                strict: !$crate::table::has_flag($flags, b'n'),
                body: $crate::table::body!($($body)::+ $($set::$set_name)?),
            }),*
        ];
    };
}

macro_rules! operators {
    ($($oid:literal $name:literal $left:ident $right:ident $function:literal
       $commutator:literal $negator:literal;)*) => {
        pub(crate) static OPERATORS: &[$crate::table::OperatorRow] = &[
            $($crate::table::OperatorRow {
                oid: $oid,
                name: $name,
                left: ::types::TypeId::$left,
                right: ::types::TypeId::$right,
                function: $function,
                commutator: $commutator,
                negator: $negator,
            }),*
        ];
    };
}

macro_rules! casts {
    ($($source:ident $target:ident $how:literal $context:literal;)*) => {
        pub(crate) static CASTS: &[$crate::table::CastRow] = &[
            $($crate::table::CastRow {
                source: ::types::TypeId::$source,
                target: ::types::TypeId::$target,
                how: $how,
                context: $crate::table::cast_context($context),
            }),*
        ];
    };
}

pub(crate) use {body, casts, functions, operators};
