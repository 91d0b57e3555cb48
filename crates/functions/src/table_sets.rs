//! The functions over the catalog that give rows, or say something of lists.
//!
//! Source: PostgreSQL 15, catalog `pg_proc`. See [`super::table`] for what a row says.

use super::table::functions;

functions! {
    1035 "aclinsert" (ACLITEM_ARRAY ACLITEM) ACLITEM_ARRAY "i" acl::insert;
    1036 "aclremove" (ACLITEM_ARRAY ACLITEM) ACLITEM_ARRAY "i" acl::remove;
    1037 "aclcontains" (ACLITEM_ARRAY ACLITEM) BOOL "i" acl::contains;
    1062 "aclitemeq" (ACLITEM ACLITEM) BOOL "i" acl::equal;
    1349 "oidvectortypes" (OIDVECTOR) TEXT "s" sets::type_names;
    1403 "current_schemas" (BOOL) NAME_ARRAY "s" session Own::CurrentSchemas;
    1365 "makeaclitem" (OID OID TEXT BOOL) ACLITEM "i" acl::make;
    1686 "pg_get_keywords" () RECORD "s" records keywords::KEYWORDS;
    1689 "aclexplode" (ACLITEM_ARRAY) RECORD "s" records acl::EXPLODED;
    2289 "pg_options_to_table" (TEXT_ARRAY) RECORD "s" records sets::OPTIONS;
    2599 "pg_timezone_abbrevs" () RECORD "s" records sets::ABBREVIATIONS;
    2856 "pg_timezone_names" () RECORD "s" records sets::ZONES;
    3423 "pg_partition_tree" (REGCLASS) RECORD "v" records system::PARTITIONS;
    3082 "pg_available_extensions" () RECORD "s" records extensions::AVAILABLE;
    3083 "pg_available_extension_versions" () RECORD "s" records extensions::VERSIONS;
    3943 "acldefault" (CHAR OID) ACLITEM_ARRAY "i" session Catalog::DefaultPrivileges;
}
