//! The options of COPY, in both of their syntaxes (the grammar makes one list of them).

use base::{Error, Result, SqlState};
use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{DefElem, Node};

use crate::session::utility::{node_of, option_text};
use syntax::parser::{char_position, NodeEnum};
use types::encoding::Encoding;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Columns between delimiters, with backslashes.
    Text,
    /// Columns between delimiters, with quotes.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
}

/// What the first line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A row.
    None,
    /// The columns' names.
    Names,
    /// The columns' names, which must be those of the columns read.
    Match,
}

/// Some of the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// Those of these names.
    Named(Vec<String>),
    /// All.
    All,
}

impl Chosen {
    /// No column.
    const NONE: Chosen = Chosen::Named(Vec::new());

    fn is_given(&self) -> bool {
        *self != Chosen::NONE
    }
}

/// The options, checked against one another.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub layout: Layout,
    pub delimiter: u8,
    pub null: String,
    pub header: Header,
    pub quote: u8,
    pub escape: u8,
    pub force_quote: Chosen,
    pub force_not_null: Chosen,
    pub force_null: Chosen,
    /// That of the data; none: the client's.
    pub encoding: Option<Encoding>,
}

/// The options as they were given.
#[derive(Default)]
struct Given<'a> {
    layout: Option<Layout>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
    lists: [Option<Chosen>; 3],
    encoding: Option<Encoding>,
    seen: Vec<&'a str>,
}

const FORCE_QUOTE: usize = 0;
const FORCE_NOT_NULL: usize = 1;
const FORCE_NULL: usize = 2;

fn refused(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn misplaced(message: &str) -> Error {
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn syntax(message: impl Into<String>) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

impl Options {
    /// Reads the options of a COPY; `text` is what locations refer to.
    ///
    /// # Errors
    /// 42601, 22023 and 0A000 as PostgreSQL raises them.
    pub fn read(options: &[Node], is_from: bool, text: &str) -> Result<Options> {
        let mut given = Given::default();
        for node in options {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            given.take(option, is_from).map_err(|(error, placed)| {
                match char_position(text, option.location).filter(|_| placed) {
                    Some(position) => error.at(position),
                    None => error,
                }
            })?;
        }
        given.check(is_from)
    }

    /// What asks the client for binary or text.
    pub fn is_binary(&self) -> bool {
        self.layout == Layout::Binary
    }
}

/// An error, and whether it says where the option stands.
type Placed = (Error, bool);

impl<'a> Given<'a> {
    fn take(&mut self, option: &'a DefElem, is_from: bool) -> Result<(), Placed> {
        let name = option.defname.as_str();
        if self.seen.contains(&name) {
            return Err((syntax("conflicting or redundant options"), true));
        }
        self.seen.push(name);
        match name {
            "format" => {
                self.layout = Some(match text_of(option)?.as_str() {
                    "text" => Layout::Text,
                    "csv" => Layout::Csv,
                    "binary" => Layout::Binary,
                    other => {
                        let message = format!("COPY format \"{other}\" not recognized");
                        return Err((refused(message), true));
                    }
                });
            }
            // Rows that a transaction has just made are seen at once here.
            "freeze" => {
                flag_of(option)?;
            }
            "delimiter" => self.delimiter = Some(text_of(option)?),
            "null" => self.null = Some(text_of(option)?),
            "header" => self.header = Some(header_of(option, is_from)?),
            "quote" => self.quote = Some(text_of(option)?),
            "escape" => self.escape = Some(text_of(option)?),
            "force_quote" => self.lists[FORCE_QUOTE] = Some(chosen(option, true)?),
            "force_not_null" => self.lists[FORCE_NOT_NULL] = Some(chosen(option, false)?),
            "force_null" => self.lists[FORCE_NULL] = Some(chosen(option, false)?),
            "encoding" => self.encoding = Some(encoding_of(&text_of(option)?, is_from)?),
            _ => {
                let message = format!("option \"{name}\" not recognized");
                return Err((syntax(message), true));
            }
        }
        Ok(())
    }

    fn check(mut self, is_from: bool) -> Result<Options> {
        let layout = self.layout.unwrap_or(Layout::Text);
        let csv = layout == Layout::Csv;
        if layout == Layout::Binary {
            if self.delimiter.is_some() {
                return Err(syntax("cannot specify DELIMITER in BINARY mode"));
            }
            if self.null.is_some() {
                return Err(syntax("cannot specify NULL in BINARY mode"));
            }
        }
        let delimiter = self.delimiter.take();
        let delimiter = delimiter.unwrap_or_else(|| if csv { "," } else { "\t" }.to_owned());
        let null = self.null.take();
        let null = null.unwrap_or_else(|| if csv { "" } else { "\\N" }.to_owned());
        let header = self.header.unwrap_or(Header::None);
        let delimiter = check_delimiter(&delimiter, &null, csv)?;
        if layout == Layout::Binary && header != Header::None {
            return Err(misplaced("cannot specify HEADER in BINARY mode"));
        }
        let (quote, escape) = self.quotes(csv, delimiter)?;
        let [force_quote, force_not_null, force_null] =
            self.lists.map(|chosen| chosen.unwrap_or(Chosen::NONE));
        for (list, name, wants_from) in [
            (&force_quote, "quote", false),
            (&force_not_null, "not null", true),
            (&force_null, "null", true),
        ] {
            check_force(list, name, csv, is_from == wants_from, wants_from)?;
        }
        if null.as_bytes().contains(&delimiter) {
            let message = "COPY delimiter must not appear in the NULL specification";
            return Err(misplaced(message));
        }
        if csv && null.as_bytes().contains(&quote) {
            let message = "CSV quote character must not appear in the NULL specification";
            return Err(misplaced(message));
        }
        Ok(Options {
            layout,
            delimiter,
            null,
            header,
            quote,
            escape,
            force_quote,
            force_not_null,
            force_null,
            encoding: self.encoding,
        })
    }

    /// The quote and the character that escapes it.
    fn quotes(&self, csv: bool, delimiter: u8) -> Result<(u8, u8)> {
        if !csv && self.quote.is_some() {
            return Err(misplaced("COPY quote available only in CSV mode"));
        }
        let quote = single(self.quote.as_deref().unwrap_or("\""), "COPY quote")?;
        if csv && quote == delimiter {
            return Err(refused("COPY delimiter and quote must be different"));
        }
        if !csv && self.escape.is_some() {
            return Err(misplaced("COPY escape available only in CSV mode"));
        }
        let escape = match &self.escape {
            Some(escape) => single(escape, "COPY escape")?,
            None => quote,
        };
        Ok((quote, escape))
    }
}

fn single(text: &str, what: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(misplaced(&format!(
            "{what} must be a single one-byte character"
        ))),
    }
}

fn check_delimiter(delimiter: &str, null: &str, csv: bool) -> Result<u8> {
    let byte = single(delimiter, "COPY delimiter")?;
    if matches!(byte, b'\r' | b'\n') {
        return Err(refused(
            "COPY delimiter cannot be newline or carriage return",
        ));
    }
    if null.contains(['\r', '\n']) {
        return Err(refused(
            "COPY null representation cannot use newline or carriage return",
        ));
    }
    let taken = matches!(byte, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9');
    if !csv && taken {
        let message = format!("COPY delimiter cannot be \"{delimiter}\"");
        return Err(refused(message));
    }
    Ok(byte)
}

fn check_force(
    list: &Chosen,
    name: &str,
    csv: bool,
    right_way: bool,
    wants_from: bool,
) -> Result<()> {
    if !list.is_given() {
        return Ok(());
    }
    if !csv {
        let message = format!("COPY force {name} available only in CSV mode");
        return Err(misplaced(&message));
    }
    if !right_way {
        let way = if wants_from { "FROM" } else { "TO" };
        let message = format!("COPY force {name} only available using COPY {way}");
        return Err(misplaced(&message));
    }
    Ok(())
}

fn text_of(option: &DefElem) -> Result<String, Placed> {
    match option.arg {
        Some(_) => Ok(option_text(option)),
        None => {
            let message = format!("{} requires a parameter", option.defname);
            Err((syntax(message), false))
        }
    }
}

/// The truth value of an option, if it is one.
pub(in super::super) fn truth_of(option: &DefElem) -> Option<bool> {
    let number = match node_of(&option.arg) {
        None => return Some(true),
        Some(NodeEnum::Integer(number)) => Some(number.ival),
        Some(NodeEnum::AConst(constant)) => match &constant.val {
            Some(Val::Ival(number)) => Some(number.ival),
            _ => None,
        },
        Some(_) => None,
    };
    match number {
        Some(0) => return Some(false),
        Some(1) => return Some(true),
        Some(_) => return None,
        None => {}
    }
    match option_text(option).to_ascii_lowercase().as_str() {
        "true" | "on" => Some(true),
        "false" | "off" => Some(false),
        _ => None,
    }
}

fn flag_of(option: &DefElem) -> Result<bool, Placed> {
    truth_of(option).ok_or_else(|| {
        let message = format!("{} requires a Boolean value", option.defname);
        (syntax(message), false)
    })
}

fn header_of(option: &DefElem, is_from: bool) -> Result<Header, Placed> {
    match truth_of(option) {
        Some(true) => return Ok(Header::Names),
        Some(false) => return Ok(Header::None),
        None => {}
    }
    let text = option_text(option);
    if !text.eq_ignore_ascii_case("match") {
        let message = format!("{} requires a Boolean value or \"match\"", option.defname);
        return Err((syntax(message), false));
    }
    if !is_from {
        let message = format!("cannot use \"{text}\" with HEADER in COPY TO");
        return Err((misplaced(&message), false));
    }
    Ok(Header::Match)
}

fn chosen(option: &DefElem, star: bool) -> Result<Chosen, Placed> {
    let named = match node_of(&option.arg) {
        Some(NodeEnum::AStar(_)) if star => return Ok(Chosen::All),
        Some(NodeEnum::List(list)) => list
            .items
            .iter()
            .map(|item| match &item.node {
                Some(NodeEnum::String(name)) => Some(name.sval.clone()),
                _ => None,
            })
            .collect::<Option<Vec<_>>>(),
        _ => None,
    };
    named.map(Chosen::Named).ok_or_else(|| {
        let message = format!(
            "argument to option \"{}\" must be a list of column names",
            option.defname
        );
        (refused(message), true)
    })
}

fn encoding_of(name: &str, is_from: bool) -> Result<Encoding, Placed> {
    let Some(found) = Encoding::by_name(name) else {
        let message = "argument to option \"encoding\" must be a valid encoding name";
        return Err((refused(message), true));
    };
    if found.is_convertible() {
        return Ok(found);
    }
    let (from, to) = match is_from {
        true => (found.name(), "UTF8"),
        false => ("UTF8", found.name()),
    };
    let message =
        format!("default conversion function for encoding \"{from}\" to \"{to}\" does not exist");
    Err((Error::new(SqlState::UNDEFINED_FUNCTION, message), false))
}
