//! The aggregates: `oid "name" (argument types) result kind;`.
//!
//! Source: PostgreSQL 15, catalog `pg_proc`.

use super::aggregate::{Aggregate, Kind, Spread};
use super::json::make::Gathering;
use super::ordered_set::OrderedSet;
use super::regression::Fit;
use types::TypeId;

macro_rules! aggregates {
    ($($oid:literal $name:literal ($($argument:ident)*) $result:ident
       $kind:ident $((Spread::$spread:ident))? $((OrderedSet::$ordered:ident))? $((Fit::$fit:ident))? $((object $object:literal, binary $binary:literal))?;)*) => {
        pub(crate) static AGGREGATES: &[Aggregate] = &[
            $(Aggregate {
                oid: $oid,
                name: $name,
                arguments: &[$(TypeId::$argument),*],
                result: TypeId::$result,
                kind: Kind::$kind $((Spread::$spread))? $((OrderedSet::$ordered))? $((Fit::$fit))? $((Gathering { object: $object, binary: $binary }))?,
            }),*
        ];
    };
}

aggregates! {
    4053 "array_agg" (ANYARRAY) ANYARRAY CollectArrays;
    2335 "array_agg" (ANYNONARRAY) ANYARRAY Collect;
    2100 "avg" (INT8) NUMERIC Avg;
    2101 "avg" (INT4) NUMERIC Avg;
    2102 "avg" (INT2) NUMERIC Avg;
    2103 "avg" (NUMERIC) NUMERIC Avg;
    2104 "avg" (FLOAT4) FLOAT8 Avg;
    2105 "avg" (FLOAT8) FLOAT8 Avg;
    2106 "avg" (INTERVAL) INTERVAL Avg;
    8190 "avg" (VECTOR) VECTOR Avg;
    8191 "avg" (HALFVEC) HALFVEC Avg;
    2236 "bit_and" (INT2) INT2 BitAnd;
    2238 "bit_and" (INT4) INT4 BitAnd;
    2240 "bit_and" (INT8) INT8 BitAnd;
    2242 "bit_and" (BIT) BIT BitAnd;
    2237 "bit_or" (INT2) INT2 BitOr;
    2239 "bit_or" (INT4) INT4 BitOr;
    2241 "bit_or" (INT8) INT8 BitOr;
    2243 "bit_or" (BIT) BIT BitOr;
    6164 "bit_xor" (INT2) INT2 BitXor;
    6165 "bit_xor" (INT4) INT4 BitXor;
    6166 "bit_xor" (INT8) INT8 BitXor;
    6167 "bit_xor" (BIT) BIT BitXor;
    2517 "bool_and" (BOOL) BOOL And;
    2518 "bool_or" (BOOL) BOOL Or;
    2829 "corr" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::Correlation);
    2147 "count" (ANY) INT8 Count;
    2803 "count" () INT8 CountRows;
    2827 "covar_pop" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::CovariancePopulation);
    2828 "covar_samp" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::CovarianceSample);
    2519 "every" (BOOL) BOOL And;
    3175 "json_agg" (ANYELEMENT) JSON Json(object false, binary false);
    3197 "json_object_agg" (ANY ANY) JSON Json(object true, binary false);
    3267 "jsonb_agg" (ANYELEMENT) JSONB Json(object false, binary true);
    3270 "jsonb_object_agg" (ANY ANY) JSONB Json(object true, binary true);
    2050 "max" (ANYARRAY) ANYARRAY Max;
    3526 "max" (ANYENUM) ANYENUM Max;
    2115 "max" (INT8) INT8 Max;
    2116 "max" (INT4) INT4 Max;
    2117 "max" (INT2) INT2 Max;
    2118 "max" (OID) OID Max;
    2119 "max" (FLOAT4) FLOAT4 Max;
    2120 "max" (FLOAT8) FLOAT8 Max;
    2122 "max" (DATE) DATE Max;
    2123 "max" (TIME) TIME Max;
    2124 "max" (TIMETZ) TIMETZ Max;
    2126 "max" (TIMESTAMP) TIMESTAMP Max;
    2127 "max" (TIMESTAMPTZ) TIMESTAMPTZ Max;
    2128 "max" (INTERVAL) INTERVAL Max;
    2129 "max" (TEXT) TEXT Max;
    2130 "max" (NUMERIC) NUMERIC Max;
    3564 "max" (INET) INET Max;
    2244 "max" (BPCHAR) BPCHAR Max;
    9790 "max" (CITEXT) CITEXT Max;
    2797 "max" (TID) TID Max;
    4189 "max" (PG_LSN) PG_LSN Max;
    5099 "max" (XID8) XID8 Max;
    2125 "max" (MONEY) MONEY Max;
    2051 "min" (ANYARRAY) ANYARRAY Min;
    3527 "min" (ANYENUM) ANYENUM Min;
    2131 "min" (INT8) INT8 Min;
    2132 "min" (INT4) INT4 Min;
    2133 "min" (INT2) INT2 Min;
    2134 "min" (OID) OID Min;
    2135 "min" (FLOAT4) FLOAT4 Min;
    2136 "min" (FLOAT8) FLOAT8 Min;
    2138 "min" (DATE) DATE Min;
    2139 "min" (TIME) TIME Min;
    2140 "min" (TIMETZ) TIMETZ Min;
    2142 "min" (TIMESTAMP) TIMESTAMP Min;
    2143 "min" (TIMESTAMPTZ) TIMESTAMPTZ Min;
    2144 "min" (INTERVAL) INTERVAL Min;
    2145 "min" (TEXT) TEXT Min;
    9791 "min" (CITEXT) CITEXT Min;
    2146 "min" (NUMERIC) NUMERIC Min;
    3565 "min" (INET) INET Min;
    2245 "min" (BPCHAR) BPCHAR Min;
    2798 "min" (TID) TID Min;
    4190 "min" (PG_LSN) PG_LSN Min;
    5100 "min" (XID8) XID8 Min;
    2141 "min" (MONEY) MONEY Min;
    3990 "cume_dist" (ANY) FLOAT8 Sorted(OrderedSet::CumulativeDistribution);
    3992 "dense_rank" (ANY) INT8 Sorted(OrderedSet::DenseRank);
    3984 "mode" (ANYELEMENT) ANYELEMENT Sorted(OrderedSet::Mode);
    3988 "percent_rank" (ANY) FLOAT8 Sorted(OrderedSet::PercentRank);
    3974 "percentile_cont" (FLOAT8 FLOAT8) FLOAT8 Sorted(OrderedSet::Continuous);
    3976 "percentile_cont" (FLOAT8 INTERVAL) INTERVAL Sorted(OrderedSet::Continuous);
    3980 "percentile_cont" (FLOAT8_ARRAY FLOAT8) FLOAT8_ARRAY Sorted(OrderedSet::Continuous);
    3982 "percentile_cont" (FLOAT8_ARRAY INTERVAL) INTERVAL_ARRAY Sorted(OrderedSet::Continuous);
    3972 "percentile_disc" (FLOAT8 ANYELEMENT) ANYELEMENT Sorted(OrderedSet::Discrete);
    3978 "percentile_disc" (FLOAT8_ARRAY ANYELEMENT) ANYARRAY Sorted(OrderedSet::Discrete);
    3986 "rank" (ANY) INT8 Sorted(OrderedSet::Rank);
    6227 "range_agg" (ANYMULTIRANGE) ANYMULTIRANGE Ranges;
    4301 "range_agg" (ANYRANGE) ANYMULTIRANGE Ranges;
    4389 "range_intersect_agg" (ANYMULTIRANGE) ANYMULTIRANGE Intersect;
    4450 "range_intersect_agg" (ANYRANGE) ANYRANGE Intersect;
    2818 "regr_count" (FLOAT8 FLOAT8) INT8 Regression(Fit::Count);
    2819 "regr_sxx" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::Sxx);
    2820 "regr_syy" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::Syy);
    2821 "regr_sxy" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::Sxy);
    2822 "regr_avgx" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::AverageX);
    2823 "regr_avgy" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::AverageY);
    2824 "regr_r2" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::R2);
    2825 "regr_slope" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::Slope);
    2826 "regr_intercept" (FLOAT8 FLOAT8) FLOAT8 Regression(Fit::Intercept);
    2154 "stddev" (INT8) NUMERIC Deviation(Spread::Sample);
    2155 "stddev" (INT4) NUMERIC Deviation(Spread::Sample);
    2156 "stddev" (INT2) NUMERIC Deviation(Spread::Sample);
    2157 "stddev" (FLOAT4) FLOAT8 Deviation(Spread::Sample);
    2158 "stddev" (FLOAT8) FLOAT8 Deviation(Spread::Sample);
    2159 "stddev" (NUMERIC) NUMERIC Deviation(Spread::Sample);
    2724 "stddev_pop" (INT8) NUMERIC Deviation(Spread::Population);
    2725 "stddev_pop" (INT4) NUMERIC Deviation(Spread::Population);
    2726 "stddev_pop" (INT2) NUMERIC Deviation(Spread::Population);
    2727 "stddev_pop" (FLOAT4) FLOAT8 Deviation(Spread::Population);
    2728 "stddev_pop" (FLOAT8) FLOAT8 Deviation(Spread::Population);
    2729 "stddev_pop" (NUMERIC) NUMERIC Deviation(Spread::Population);
    2712 "stddev_samp" (INT8) NUMERIC Deviation(Spread::Sample);
    2713 "stddev_samp" (INT4) NUMERIC Deviation(Spread::Sample);
    2714 "stddev_samp" (INT2) NUMERIC Deviation(Spread::Sample);
    2715 "stddev_samp" (FLOAT4) FLOAT8 Deviation(Spread::Sample);
    2716 "stddev_samp" (FLOAT8) FLOAT8 Deviation(Spread::Sample);
    2717 "stddev_samp" (NUMERIC) NUMERIC Deviation(Spread::Sample);
    3538 "string_agg" (TEXT TEXT) TEXT Join;
    3545 "string_agg" (BYTEA BYTEA) BYTEA Join;
    2107 "sum" (INT8) NUMERIC Sum;
    2108 "sum" (INT4) INT8 Sum;
    2109 "sum" (INT2) INT8 Sum;
    2110 "sum" (FLOAT4) FLOAT4 Sum;
    2111 "sum" (FLOAT8) FLOAT8 Sum;
    2113 "sum" (INTERVAL) INTERVAL Sum;
    2114 "sum" (NUMERIC) NUMERIC Sum;
    8192 "sum" (VECTOR) VECTOR Sum;
    8193 "sum" (HALFVEC) HALFVEC Sum;
    2112 "sum" (MONEY) MONEY Sum;
    2718 "var_pop" (INT8) NUMERIC Variance(Spread::Population);
    2719 "var_pop" (INT4) NUMERIC Variance(Spread::Population);
    2720 "var_pop" (INT2) NUMERIC Variance(Spread::Population);
    2721 "var_pop" (FLOAT4) FLOAT8 Variance(Spread::Population);
    2722 "var_pop" (FLOAT8) FLOAT8 Variance(Spread::Population);
    2723 "var_pop" (NUMERIC) NUMERIC Variance(Spread::Population);
    2641 "var_samp" (INT8) NUMERIC Variance(Spread::Sample);
    2642 "var_samp" (INT4) NUMERIC Variance(Spread::Sample);
    2643 "var_samp" (INT2) NUMERIC Variance(Spread::Sample);
    2644 "var_samp" (FLOAT4) FLOAT8 Variance(Spread::Sample);
    2645 "var_samp" (FLOAT8) FLOAT8 Variance(Spread::Sample);
    2646 "var_samp" (NUMERIC) NUMERIC Variance(Spread::Sample);
    2148 "variance" (INT8) NUMERIC Variance(Spread::Sample);
    2149 "variance" (INT4) NUMERIC Variance(Spread::Sample);
    2150 "variance" (INT2) NUMERIC Variance(Spread::Sample);
    2151 "variance" (FLOAT4) FLOAT8 Variance(Spread::Sample);
    2152 "variance" (FLOAT8) FLOAT8 Variance(Spread::Sample);
    2153 "variance" (NUMERIC) NUMERIC Variance(Spread::Sample);
}
