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
const PLANS: [(&str, &str, &str); 26] = [
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
        "Nested Loop Semi Join / Seq Scan on pl_a / Index Scan using pl_c_pkey on pl_c",
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
