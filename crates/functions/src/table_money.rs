//! The functions, operators and casts of money: see [`super::table`] for what a row says.
//!
//! Source: PostgreSQL 15, catalogs `pg_proc`, `pg_operator` and `pg_cast`.

use super::table::{casts, functions, operators};

functions! {
    377 "cash_cmp" (MONEY MONEY) INT4 "i" comparison::cmp;
    846 "cash_mul_flt4" (MONEY FLOAT4) MONEY "i" money::times_float;
    847 "cash_div_flt4" (MONEY FLOAT4) MONEY "i" money::over_float;
    848 "flt4_mul_cash" (FLOAT4 MONEY) MONEY "i" money::float_times;
    862 "int4_mul_cash" (INT4 MONEY) MONEY "i" money::integer_times;
    863 "int2_mul_cash" (INT2 MONEY) MONEY "i" money::integer_times;
    864 "cash_mul_int4" (MONEY INT4) MONEY "i" money::times_integer;
    865 "cash_div_int4" (MONEY INT4) MONEY "i" money::over_integer;
    866 "cash_mul_int2" (MONEY INT2) MONEY "i" money::times_integer;
    867 "cash_div_int2" (MONEY INT2) MONEY "i" money::over_integer;
    888 "cash_eq" (MONEY MONEY) BOOL "i" comparison::eq;
    889 "cash_ne" (MONEY MONEY) BOOL "i" comparison::ne;
    890 "cash_lt" (MONEY MONEY) BOOL "i" comparison::lt;
    891 "cash_le" (MONEY MONEY) BOOL "i" comparison::le;
    892 "cash_gt" (MONEY MONEY) BOOL "i" comparison::gt;
    893 "cash_ge" (MONEY MONEY) BOOL "i" comparison::ge;
    894 "cash_pl" (MONEY MONEY) MONEY "i" money::add;
    895 "cash_mi" (MONEY MONEY) MONEY "i" money::sub;
    896 "cash_mul_flt8" (MONEY FLOAT8) MONEY "i" money::times_float;
    897 "cash_div_flt8" (MONEY FLOAT8) MONEY "i" money::over_float;
    898 "cashlarger" (MONEY MONEY) MONEY "i" money::larger;
    899 "cashsmaller" (MONEY MONEY) MONEY "i" money::smaller;
    919 "flt8_mul_cash" (FLOAT8 MONEY) MONEY "i" money::float_times;
    935 "cash_words" (MONEY) TEXT "i" money::words;
    3344 "cash_mul_int8" (MONEY INT8) MONEY "i" money::times_integer;
    3345 "cash_div_int8" (MONEY INT8) MONEY "i" money::over_integer;
    3399 "int8_mul_cash" (INT8 MONEY) MONEY "i" money::integer_times;
    3811 "money" (INT4) MONEY "s" money::from_integer;
    3812 "money" (INT8) MONEY "s" money::from_integer;
    3822 "cash_div_cash" (MONEY MONEY) FLOAT8 "i" money::ratio;
    3823 "numeric" (MONEY) NUMERIC "s" money::to_numeric;
    3824 "money" (NUMERIC) MONEY "s" money::from_numeric;
}

operators! {
    843 "*" MONEY FLOAT4 846 "*" "";
    844 "/" MONEY FLOAT4 847 "" "";
    845 "*" FLOAT4 MONEY 848 "*" "";
    900 "=" MONEY MONEY 888 "=" "<>";
    901 "<>" MONEY MONEY 889 "<>" "=";
    902 "<" MONEY MONEY 890 ">" ">=";
    903 ">" MONEY MONEY 892 "<" "<=";
    904 "<=" MONEY MONEY 891 ">=" ">";
    905 ">=" MONEY MONEY 893 "<=" "<";
    906 "+" MONEY MONEY 894 "+" "";
    907 "-" MONEY MONEY 895 "" "";
    908 "*" MONEY FLOAT8 896 "*" "";
    909 "/" MONEY FLOAT8 897 "" "";
    912 "*" MONEY INT4 864 "*" "";
    913 "/" MONEY INT4 865 "" "";
    914 "*" MONEY INT2 866 "*" "";
    915 "/" MONEY INT2 867 "" "";
    916 "*" FLOAT8 MONEY 919 "*" "";
    917 "*" INT4 MONEY 862 "*" "";
    918 "*" INT2 MONEY 863 "*" "";
    3346 "*" MONEY INT8 3344 "*" "";
    3347 "/" MONEY INT8 3345 "" "";
    3349 "*" INT8 MONEY 3399 "*" "";
    3825 "/" MONEY MONEY 3822 "" "";
}

casts! {
    MONEY NUMERIC 3823 "a";
    NUMERIC MONEY 3824 "a";
    INT4 MONEY 3811 "a";
    INT8 MONEY 3812 "a";
}
