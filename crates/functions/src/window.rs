//! The window functions that are no aggregates: what they are called, and what they take and give.
//!
//! A window function sees the partition around its row, not values alone, so that the executor
//! computes it ([`crate::exec::window`]); here it is found by name and typed. Aggregates that are
//! called with OVER stay aggregates.
//!
//! Source: PostgreSQL 15, catalog `pg_proc`.

use types::TypeId;

/// What a window function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
}

/// A window function.
#[derive(Clone, Copy, Debug)]
pub struct WindowFunction {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The declared types of its arguments.
    pub arguments: &'static [TypeId],
    /// The declared type of its result.
    pub result: TypeId,
    /// What it computes.
    pub kind: WindowKind,
}

macro_rules! windows {
    ($($oid:literal $name:literal ($($argument:ident)*) $result:ident $kind:ident;)*) => {
        static WINDOWS: &[WindowFunction] = &[
            $(WindowFunction {
                oid: $oid,
                name: $name,
                arguments: &[$(TypeId::$argument),*],
                result: TypeId::$result,
                kind: WindowKind::$kind,
            }),*
        ];
    };
}

windows! {
    3100 "row_number" () INT8 RowNumber;
    3101 "rank" () INT8 Rank;
    3102 "dense_rank" () INT8 DenseRank;
    3103 "percent_rank" () FLOAT8 PercentRank;
    3104 "cume_dist" () FLOAT8 CumeDist;
    3105 "ntile" (INT4) INT4 Ntile;
    3106 "lag" (ANYELEMENT) ANYELEMENT Lag;
    3107 "lag" (ANYELEMENT INT4) ANYELEMENT Lag;
    3108 "lag" (ANYCOMPATIBLE INT4 ANYCOMPATIBLE) ANYCOMPATIBLE Lag;
    3109 "lead" (ANYELEMENT) ANYELEMENT Lead;
    3110 "lead" (ANYELEMENT INT4) ANYELEMENT Lead;
    3111 "lead" (ANYCOMPATIBLE INT4 ANYCOMPATIBLE) ANYCOMPATIBLE Lead;
    3112 "first_value" (ANYELEMENT) ANYELEMENT FirstValue;
    3113 "last_value" (ANYELEMENT) ANYELEMENT LastValue;
    3114 "nth_value" (ANYELEMENT INT4) ANYELEMENT NthValue;
}

/// Every window function, in order of OID.
pub fn all_windows() -> impl Iterator<Item = &'static WindowFunction> {
    WINDOWS.iter()
}

/// The window functions of that name.
pub fn windows_named(name: &str) -> impl Iterator<Item = &'static WindowFunction> + '_ {
    WINDOWS.iter().filter(move |window| window.name == name)
}

/// The window function of that OID.
pub fn window_by_oid(oid: u32) -> Option<&'static WindowFunction> {
    WINDOWS.iter().find(|window| window.oid == oid)
}

impl WindowFunction {
    /// `proisstrict`, which says nothing of how it is computed.
    pub fn is_strict(&self) -> bool {
        !self.arguments.is_empty()
    }
}
