//! How queries are planned: what joins what, and by which way rows are found. The tables are as large
//! as it takes for the choice to be clear.

use crate::shared;

const TABLES: &str = "
    create table pl_a (id int primary key, k int not null, x int);
    create table pl_b (id int primary key, k int not null, x int);
    create table pl_c (id int primary key, k int not null, x int);
    create index pl_b_k on pl_b (k);
    create index pl_c_k on pl_c (k);
    insert into pl_a select i, i % 100, i % 7 from generate_series(1, 3000) as i;
    insert into pl_b select i, i % 100, i % 7 from generate_series(1, 3000) as i;
    insert into pl_c select i, i % 1000, i % 7 from generate_series(1, 3000) as i;
    create view pl_v as select b.id, b.k, b.x + c.x as sum from pl_b as b join pl_c as c on c.id = b.k;
    analyze pl_a, pl_b, pl_c;
";

/// Settings, a query, and its plan.
const PLANS: [(&str, &str, &str); 33] = [
    (
        "enable_nestloop=off",
        "select 1 from pl_a as a, pl_b as b where a.k = b.k",
        "Hash Join / Seq Scan on pl_a / Seq Scan on pl_b",
    ),
    (
        "enable_hashjoin=off",
        "select 1 from pl_a as a, pl_b as b where a.x = b.x",
        "Nested Loop / Seq Scan on pl_a / Seq Scan on pl_b",
    ),
    (
        "enable_hashjoin=off",
        "select 1 from pl_a as a full join pl_b as b on a.x = b.x",
        "Nested Loop Full Join / Seq Scan on pl_a / Seq Scan on pl_b",
    ),
    (
        "enable_indexscan=off",
        "select 1 from pl_a where id = 3",
        "Seq Scan on pl_a",
    ),
    (
        "enable_sort=off",
        "select k from pl_b order by k",
        "Index Scan using pl_b_k on pl_b",
    ),
    (
        "enable_indexscan=off",
        "select k from pl_b order by k limit 3",
        "Limit / Sort / Seq Scan on pl_b",
    ),
    // A query in FROM is no wall: neither to keys, nor to the order of joins, nor to an index.
    (
        "",
        "select * from (select id, k + 1 as n from pl_a) as d where d.id = 7",
        "Index Scan using pl_a_pkey on pl_a",
    ),
    (
        "",
        "select v.sum from pl_v as v where v.id = 7",
        "Nested Loop / Index Scan using pl_b_pkey on pl_b / Index Scan using pl_c_pkey on pl_c",
    ),
    (
        "",
        "select a.id, d.id from pl_a as a left join (select id, k from pl_b where x = 3) as d \
         on d.id = a.k where a.id = 5",
        "Nested Loop Left Join / Index Scan using pl_a_pkey on pl_a / \
         Index Scan using pl_b_pkey on pl_b",
    ),
    // A condition above leaves nothing of what an outer join adds.
    (
        "",
        "select 1 from pl_a as a left join pl_b as b on b.id = a.id where b.id = 7",
        "Hash Join / Index Scan using pl_a_pkey on pl_a / Index Scan using pl_b_pkey on pl_b",
    ),
    // What is said of one column is said of those that equal it.
    (
        "",
        "select 1 from pl_a as a, pl_b as b where a.k = b.k and a.k = 5 and a.id = 105",
        "Hash Join / Index Scan using pl_b_k on pl_b / Index Scan using pl_a_pkey on pl_a",
    ),
    // Alternatives say something of each table, whatever their functions may tell.
    (
        "",
        "select 1 from pl_b as b, pl_c as c where (b.id = c.id and b.k = 3 and c.x::numeric > 2) \
         or (b.id = c.id and b.k = 3 and c.x::numeric < 1)",
        "Nested Loop / Index Scan using pl_b_k on pl_b / Index Scan using pl_c_pkey on pl_c",
    ),
    // Conditions go below groups, DISTINCT and unions.
    (
        "",
        "select * from (select k, count(*) as n from pl_b group by k) as d where d.k = 3 and d.n > 1",
        "GroupAggregate / Index Scan using pl_b_k on pl_b",
    ),
    (
        "",
        "select * from (select k, x from pl_b union all select id, x from pl_a) as d where d.k = 3",
        "Append / Index Scan using pl_b_k on pl_b / Index Scan using pl_a_pkey on pl_a",
    ),
    (
        "",
        "select * from (select distinct k, x from pl_b) as d where d.k = 3",
        "Unique / Seq Scan on pl_b",
    ),
    (
        "",
        "select min(k) from pl_b",
        "Aggregate / Limit / Index Scan using pl_b_k on pl_b",
    ),
    (
        "",
        "select min(k) from pl_b where x = 1",
        "Aggregate / Seq Scan on pl_b",
    ),
    // A query of WITH that is named once is read where it is named.
    (
        "",
        "with w as (select id, k + 1 as n from pl_a) select * from w where id = 7",
        "Index Scan using pl_a_pkey on pl_a",
    ),
    (
        "",
        "with w as materialized (select id from pl_a) select * from w where id = 7",
        "CTE Scan / Seq Scan on pl_a",
    ),
    (
        "",
        "with w as not materialized (select id, k from pl_a) select 1 from w, w as v \
         where w.id = 7 and v.id = 8",
        "Nested Loop / Index Scan using pl_a_pkey on pl_a / Index Scan using pl_a_pkey on pl_a",
    ),
    // What is correlated by an equality is ready for all rows at once.
    (
        "",
        "select id from pl_a as a where x < (select avg(x) from pl_b as b where b.k = a.k)",
        "Seq Scan on pl_a / Aggregate / Index Scan using pl_b_k on pl_b / HashAggregate / \
         Seq Scan on pl_b",
    ),
    (
        "",
        "select id from pl_a as a where x < (select avg(x) from pl_b as b where b.k < a.k)",
        "Seq Scan on pl_a / Aggregate / Index Scan using pl_b_k on pl_b",
    ),
    // IN is a join, from the side of which few rows are wanted if that has a key.
    (
        "",
        "select 1 from pl_b as b where b.k in (select a.id from pl_a as a where a.x = 3 and a.k = 7)",
        "Nested Loop / Seq Scan on pl_a / Index Scan using pl_b_k on pl_b",
    ),
    (
        "",
        "select 1 from pl_a as a where a.k in (select c.k from pl_c as c where c.id < 5)",
        "Hash Semi Join / Seq Scan on pl_a / Index Scan using pl_c_pkey on pl_c",
    ),
    // One list leads through an index, and so do several indexes for one OR; whole tables are read where
    // that is less.
    (
        "",
        "select 1 from pl_b where k in (3, 5) and x = 3",
        "Index Scan using pl_b_k on pl_b",
    ),
    (
        "",
        "select id from pl_a where id = any ('{7,3}') order by id desc",
        "Index Scan Backward using pl_a_pkey on pl_a",
    ),
    (
        "",
        "select 1 from pl_b where k = 3 or id = 5 and x = 3",
        "Bitmap Heap Scan on pl_b",
    ),
    ("", "select x from pl_b where k >= 0", "Seq Scan on pl_b"),
    // Few rows in the order of an index are worth that, from where they begin.
    (
        "",
        "select x from pl_b where k >= 50 order by k limit 3",
        "Limit / Index Scan using pl_b_k on pl_b",
    ),
    (
        "",
        "select max(k) from pl_b where k < 90",
        "Aggregate / Limit / Index Scan Backward using pl_b_k on pl_b",
    ),
    (
        "",
        "select x from pl_b where k >= 0 or id = 5",
        "Seq Scan on pl_b",
    ),
    // Where it would be one for each row around it, its rows are kept.
    (
        "",
        "select (select count(*) from pl_b as b where b.k < a.k and b.x in (select id from pl_c)) \
         from pl_a as a",
        "Seq Scan on pl_a / Aggregate / Index Scan using pl_b_k on pl_b / Seq Scan on pl_c",
    ),
    // What a subquery costs counts: it is computed for the rows that a join leaves.
    (
        "",
        "select 1 from pl_a as a, pl_b as b where b.id = a.k and a.id < 5 \
         and b.x > (select avg(c.x) from pl_c as c where c.k < b.k)",
        "Nested Loop / Index Scan using pl_a_pkey on pl_a / Index Scan using pl_b_pkey on pl_b / \
         Aggregate / Index Scan using pl_c_k on pl_c",
    ),
];

/// A query, and how many bytes the rows of each node have: columns that nobody above looks at are not
/// among them.
const WIDTHS: [(&str, &str); 3] = [
    (
        "select a.x, count(b.id) from pl_a as a left join pl_b as b on b.k = a.id group by a.x",
        "12 8 8 8",
    ),
    (
        "select count(*) from pl_a as a, pl_b as b where a.x = b.x",
        "8 0 4 4",
    ),
    (
        "select a.id from pl_a as a, pl_b as b where a.x = b.x order by a.k limit 3",
        "8 8 8 12 4",
    ),
];

/// A node without what the statement calls its table.
fn without_alias(node: &str) -> String {
    let words: Vec<_> = node.split_whitespace().collect();
    let table = words.iter().position(|word| *word == "on");
    let end = table.map_or(words.len(), |on| on + 2);
    words[..end].join(" ")
}

#[test]
fn queries_are_planned_as_is_best() {
    let mut node = shared::one_node().nodes()[0].clone();
    let made = lab::host::run(node.psql().args(["-c", "create database choices"]));
    made.expect("a database of its own");
    node.login.database = "choices".to_owned();
    node.query(TABLES).expect("the tables");
    let mut wrong = Vec::new();
    for (settings, query, expected) in PLANS {
        let mut psql = node.psql();
        if !settings.is_empty() {
            psql.env("PGOPTIONS", format!("-c {settings}"));
        }
        let asked = format!("explain (costs off) {query}");
        let said = lab::host::run(psql.args(["-c", &asked])).expect("a plan");
        let nodes = said.lines().enumerate().filter_map(|(place, line)| {
            let node = line
                .trim()
                .strip_prefix("->")
                .or((place == 0).then_some(line));
            node.map(without_alias)
        });
        let plan = nodes.collect::<Vec<_>>().join(" / ");
        if plan != expected {
            wrong.push(format!(
                "{settings} {query}\n  {plan}\n  and not\n  {expected}"
            ));
        }
    }
    for (query, expected) in WIDTHS {
        let said = node.query(&format!("explain {query}")).expect("a plan");
        let widths = said.lines().filter_map(|line| line.split_once(" width="));
        let widths: Vec<_> = widths
            .map(|(_, width)| width.trim_end_matches(')'))
            .collect();
        let widths = widths.join(" ");
        if widths != expected {
            wrong.push(format!("{query}\n  {widths}\n  and not\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The fields of PostgreSQL 15's nodes, in its order: those of all before and behind those of some.
const FIRST_FIELDS: [&str; 16] = [
    "Node Type",
    "Strategy",
    "Partial Mode",
    "Operation",
    "Parent Relationship",
    "Subplan Name",
    "Parallel Aware",
    "Async Capable",
    "Scan Direction",
    "Index Name",
    "Relation Name",
    "Function Name",
    "Schema",
    "Alias",
    "Join Type",
    "Command",
];
const FIGURES: [&str; 9] = [
    "Startup Cost",
    "Total Cost",
    "Plan Rows",
    "Plan Width",
    "Actual Startup Time",
    "Actual Total Time",
    "Actual Rows",
    "Actual Loops",
    "Output",
];
const LAST_FIELDS: [&str; 15] = [
    "Shared Hit Blocks",
    "Shared Read Blocks",
    "Shared Dirtied Blocks",
    "Shared Written Blocks",
    "Local Hit Blocks",
    "Local Read Blocks",
    "Local Dirtied Blocks",
    "Local Written Blocks",
    "Temp Read Blocks",
    "Temp Written Blocks",
    "WAL Records",
    "WAL FPI",
    "WAL Bytes",
    "Subplans Removed",
    "Plans",
];

/// The fields of a node's own between these.
fn own_fields(node: &str) -> Option<&'static [&'static str]> {
    Some(match node {
        "Seq Scan" | "Values Scan" | "CTE Scan" | "WorkTable Scan" => {
            &["Filter", "Rows Removed by Filter"]
        }
        "Function Scan" => &["Function Call", "Filter", "Rows Removed by Filter"],
        "Index Scan" => &["Index Cond", "Filter", "Rows Removed by Filter"],
        "Tid Scan" => &["TID Cond", "Filter", "Rows Removed by Filter"],
        "Nested Loop" => &[
            "Join Filter",
            "Rows Removed by Join Filter",
            "Filter",
            "Rows Removed by Filter",
        ],
        "Hash Join" => &[
            "Hash Cond",
            "Join Filter",
            "Rows Removed by Join Filter",
            "Filter",
            "Rows Removed by Filter",
        ],
        "Aggregate" => &[
            "Group Key",
            "Filter",
            "HashAgg Batches",
            "Peak Memory Usage",
            "Disk Usage",
            "Rows Removed by Filter",
        ],
        "Sort" => &[
            "Sort Key",
            "Sort Method",
            "Sort Space Used",
            "Sort Space Type",
        ],
        "Result" => &["One-Time Filter", "Filter", "Rows Removed by Filter"],
        "ModifyTable" => &[
            "Conflict Resolution",
            "Conflict Arbiter Indexes",
            "Conflict Filter",
            "Rows Removed by Conflict Filter",
            "Tuples Inserted",
            "Conflicting Tuples",
        ],
        "WindowAgg" | "Limit" | "Unique" | "ProjectSet" | "LockRows" | "SetOp" | "Append"
        | "Recursive Union" => &[],
        _ => return None,
    })
}

/// What stands beside the nodes.
const BESIDE: [&str; 6] = [
    "Plan",
    "Settings",
    "Planning",
    "Planning Time",
    "Triggers",
    "Execution Time",
];

/// Statements whose nodes are of all kinds.
const STATEMENTS: [&str; 22] = [
    "select * from pl_a where id = 3 and x > 1",
    "select * from pl_a as a where k > 50 order by x desc",
    "select a.x, b.x from pl_a as a join pl_b as b on a.k = b.k and a.x < b.x",
    "select a.x, b.x from pl_a as a left join pl_b as b on a.k = b.id where b.x is null",
    "select a.x from pl_a as a, pl_b as b where a.id < 3 and b.id < 3 and a.x <> b.x",
    "select k, count(*) from pl_a group by k having count(*) > 3 order by k limit 2",
    "select count(*) from pl_a",
    "select distinct x from pl_a union all select 1",
    "select x from pl_a union select k from pl_b",
    "select x from pl_a except select k from pl_b",
    "select rank() over (order by x), generate_series(1, 2) from pl_a",
    "select * from generate_series(1, 10) as i where i > 3",
    "select * from (values (1), (2)) as v (i) where i > 1",
    "select (select max(x) from pl_b), (select x from pl_b as b where b.id = a.k) from pl_a as a",
    "with recursive r as (select 1 as i union all select i + 1 from r where i < 5) select * from r",
    "select 1 where random() > 2",
    "select * from pl_a where id < 5 for update",
    "insert into pl_a values (1, 2, 3) on conflict (id) do update set x = 1 where pl_a.x > 100",
    "insert into pl_a values (-1, 2, 3) returning x",
    "update pl_a as a set x = x + 1 where id = 7 returning a.*",
    "delete from pl_a where id = -1",
    "select relname from pg_class where relname = 'pl_a'",
];

/// The objects of an answer in JSON, each as its keys in order: those of nodes, and of the answer itself.
fn objects(answer: &str) -> Vec<Vec<(String, String)>> {
    let (mut open, mut done) = (Vec::new(), Vec::new());
    for line in answer.lines() {
        let line = line.trim().trim_end_matches(',');
        let field = line
            .strip_prefix('"')
            .and_then(|line| line.split_once("\": "));
        if let Some((key, value)) = field {
            let object: &mut Vec<(String, String)> = open.last_mut().expect("an object");
            object.push((key.to_owned(), value.trim_matches('"').to_owned()));
        }
        if line.ends_with('{') {
            open.push(Vec::new());
        }
        if line == "}" {
            done.extend(open.pop());
        }
    }
    done
}

/// Whether keys are some of those that are allowed, in their order.
fn are_in_order<'a>(keys: impl Iterator<Item = &'a str>, allowed: &[&str]) -> bool {
    let mut allowed = allowed.iter();
    keys.into_iter()
        .all(|key| allowed.any(|known| *known == key))
}

#[test]
fn fields_of_nodes_are_those_of_postgresql() {
    let mut node = shared::one_node().nodes()[0].clone();
    let made = lab::host::run(node.psql().args(["-c", "create database fields"]));
    made.expect("a database of its own");
    node.login.database = "fields".to_owned();
    node.query(TABLES).expect("the tables");
    let mut wrong = Vec::new();
    for statement in STATEMENTS {
        for options in [
            "format json",
            "costs off, verbose, format json",
            "analyze, verbose, buffers, wal, settings, format json",
        ] {
            let asked = format!("explain ({options}) {statement}");
            let answer = node.query(&asked).expect("a plan");
            for object in objects(&answer) {
                let keys = || object.iter().map(|(key, _)| key.as_str());
                let named = object.iter().find(|(key, _)| key == "Node Type");
                let is_right = match named {
                    None if keys().any(|key| key == "Plan") => are_in_order(keys(), &BESIDE),
                    None => true,
                    Some((_, node)) => own_fields(node).is_some_and(|own| {
                        let all = [&FIRST_FIELDS[..], &FIGURES, own, &LAST_FIELDS].concat();
                        are_in_order(keys(), &all)
                    }),
                };
                if !is_right {
                    wrong.push(format!("{asked}\n  {object:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
