//! FROM of a query that is shown ([`super::definition`]): tables, joins, queries and functions, with
//! the names that they have beside all others.

use base::Result;
use pg_query::protobuf::{Alias, JoinExpr, JoinType, Node, RangeFunction};

use super::definition::Called;
use super::expr::{Place, Sets};
use super::scope::{Scope, ScopeTable};
use super::{boxed, inner, strings, Binder};
use crate::deparse::layout::{shifted, Layout, JOIN};
use catalog::depend::shown_name;
use functions::strings::quote_identifier;
use syntax::parser::NodeEnum;

impl Binder<'_> {
    /// An item of FROM; none if it is of a kind that is not laid out.
    pub(super) fn item_text(
        &mut self,
        node: &Node,
        scope: &Scope<'_>,
        next: &mut usize,
        at: i32,
    ) -> Result<Option<String>> {
        let node = inner(node)?;
        if let NodeEnum::JoinExpr(join) = node {
            return self.join_text(join, scope, next, at);
        }
        if let NodeEnum::RangeTableSample(sample) = node {
            let Some(table) = sample.relation.as_deref() else {
                return Ok(None);
            };
            let Some(table) = self.item_text(table, scope, next, at)? else {
                return Ok(None);
            };
            return Ok(Some(table + &self.sample_text(sample, scope, at)?));
        }
        let place = *next;
        *next += 1;
        let Some(item) = scope.tables.get(place) else {
            return Ok(None);
        };
        let shown = self
            .shown_queries
            .as_ref()
            .and_then(|shown| shown.names.last());
        let name = shown
            .and_then(|names| names.get(place))
            .cloned()
            .unwrap_or_default();
        match node {
            NodeEnum::RangeVar(range) => {
                let (named, own) = match &item.table {
                    Some(table) => {
                        let named = shown_name(self.cx.catalog, self.cx.search_path, table.oid);
                        let own = quote_identifier(&table.name);
                        (named.unwrap_or_else(|| own.clone()), table.name.clone())
                    }
                    None => (quote_identifier(&range.relname), range.relname.clone()),
                };
                if item.table.is_none() && range.alias.as_ref().is_some_and(has_columns) {
                    return Ok(None);
                }
                let only = if range.inh { "" } else { "ONLY " };
                Ok(Some(match name == own {
                    true => format!("{only}{named}"),
                    false => format!("{only}{named} {}", quote_identifier(&name)),
                }))
            }
            NodeEnum::RangeSubselect(query) => {
                let NodeEnum::SelectStmt(select) = boxed(&query.subquery)? else {
                    return Ok(None);
                };
                let text = match query.lateral {
                    true => self.query_text(select, Some(scope), Called::Itself)?,
                    false => {
                        let parent = scope.parent;
                        self.beside_names(|binder| {
                            binder.query_text(select, parent, Called::Itself)
                        })?
                    }
                };
                let Some(text) = text else {
                    return Ok(None);
                };
                let mut out = if query.lateral { "LATERAL (" } else { "(" }.to_owned();
                out.push_str(&shifted(&text, at));
                out.push_str(") ");
                out.push_str(&quote_identifier(&name));
                if query.alias.as_ref().is_some_and(has_columns) {
                    out.push_str(&columns_text(item));
                }
                Ok(Some(out))
            }
            NodeEnum::RangeFunction(function) => {
                self.function_text(function, item, &name, scope, at)
            }
            _ => Ok(None),
        }
    }

    /// Does something where the query at work is not one that is around: its items are not seen, but
    /// their names are taken.
    pub(super) fn beside_names<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if let Some(shown) = &mut self.shown_queries {
            if let Some(own) = shown.names.pop() {
                shown.names.insert(0, own);
            }
        }
        let done = run(self);
        if let Some(shown) = &mut self.shown_queries {
            if !shown.names.is_empty() {
                let own = shown.names.remove(0);
                shown.names.push(own);
            }
        }
        done
    }

    /// A call of a function in FROM.
    fn function_text(
        &mut self,
        function: &RangeFunction,
        item: &ScopeTable,
        name: &str,
        scope: &Scope<'_>,
        at: i32,
    ) -> Result<Option<String>> {
        let [call] = function.functions.as_slice() else {
            return Ok(None);
        };
        let call = match inner(call)? {
            NodeEnum::List(list) => match list.items.as_slice() {
                [call] | [call, Node { node: None }] => call,
                _ => return Ok(None),
            },
            _ => call,
        };
        if !function.coldeflist.is_empty() || function.is_rowsfrom {
            return Ok(None);
        }
        let place = Place {
            sets: Sets::Whole,
            ..Place::plain("functions in FROM")
        };
        let expr = self.node(call, scope, place)?;
        let mut out = if function.lateral { "LATERAL " } else { "" }.to_owned();
        out.push_str(&self.shown_expr(&expr, scope, true, at)?);
        out.push_str(if function.ordinality {
            " WITH ORDINALITY "
        } else {
            " "
        });
        out.push_str(&quote_identifier(name));
        out.push_str(&columns_text(item));
        Ok(Some(out))
    }

    fn join_text(
        &mut self,
        join: &JoinExpr,
        scope: &Scope<'_>,
        next: &mut usize,
        at: i32,
    ) -> Result<Option<String>> {
        if join.alias.is_some() || join.is_natural {
            return Ok(None);
        }
        let (Some(left), Some(right)) = (&join.larg, &join.rarg) else {
            return Ok(None);
        };
        let pretty = self
            .shown_queries
            .as_ref()
            .is_some_and(|shown| shown.pretty);
        let first = *next;
        let left = self.item_text(left, scope, next, at)?;
        let is_join = matches!(inner(right)?, NodeEnum::JoinExpr(_));
        let right = self.item_text(right, scope, next, at)?;
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(None);
        };
        let using = strings(&join.using_clause);
        if !are_called(&using, scope.tables.get(first..*next).unwrap_or_default()) {
            return Ok(None);
        }
        let right = match pretty && is_join {
            true => format!("({right})"),
            false => right,
        };
        let word = match (JoinType::try_from(join.jointype), &join.quals) {
            (Ok(JoinType::JoinInner), None) if using.is_empty() => " CROSS JOIN ",
            (Ok(JoinType::JoinInner), _) => " JOIN ",
            (Ok(JoinType::JoinLeft), _) => " LEFT JOIN ",
            (Ok(JoinType::JoinRight), _) => " RIGHT JOIN ",
            (Ok(JoinType::JoinFull), _) => " FULL JOIN ",
            _ => return Ok(None),
        };
        let mut layout = Layout {
            out: left,
            level: at,
        };
        layout.clause(word, JOIN);
        layout.text(&right);
        if !using.is_empty() {
            let names: Vec<_> = using.iter().map(|name| quote_identifier(name)).collect();
            layout.text(&format!(" USING ({})", names.join(", ")));
            if let Some(alias) = &join.join_using_alias {
                *next += 1;
                layout.text(&format!(" AS {}", quote_identifier(&alias.aliasname)));
            }
        }
        if join.quals.is_some() {
            let condition = self.expr(boxed(&join.quals)?, scope, Place::plain("JOIN/ON"))?;
            let condition = self.condition(condition, "JOIN/ON")?;
            let shown = self.shown_expr(&condition, scope, false, at)?;
            layout.text(&match pretty {
                true => format!(" ON {shown}"),
                false => format!(" ON ({shown})"),
            });
        }
        Ok(Some(match pretty {
            true => layout.out,
            false => format!("({})", layout.out),
        }))
    }
}

/// Whether tables still call their columns by these names where the items do.
fn are_called(names: &[&str], items: &[ScopeTable]) -> bool {
    let is_same = |item: &ScopeTable| {
        let Some(table) = &item.table else {
            return true;
        };
        let mut pairs = item.columns.iter().zip(&table.columns);
        pairs.all(|(shown, own)| !names.contains(&shown.name.as_str()) || shown.name == own.name)
    };
    items.iter().all(is_same)
}

fn has_columns(alias: &Alias) -> bool {
    !alias.colnames.is_empty()
}

/// The names of an item's columns in parentheses.
fn columns_text(item: &ScopeTable) -> String {
    let columns = item.columns.iter();
    let columns: Vec<_> = columns
        .map(|column| quote_identifier(&column.name))
        .collect();
    format!("({})", columns.join(", "))
}
