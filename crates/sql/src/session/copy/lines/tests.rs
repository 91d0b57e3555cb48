//! Lines and fields, whatever pieces the data arrives in.

use super::*;
use crate::session::copy::options::{Chosen, Header};

fn options(layout: Layout) -> Options {
    let csv = layout == Layout::Csv;
    Options {
        layout,
        delimiter: if csv { b',' } else { b'\t' },
        null: if csv { "" } else { "\\N" }.to_owned(),
        header: Header::None,
        quote: b'"',
        escape: b'"',
        force_quote: Chosen::All,
        force_not_null: Chosen::All,
        force_null: Chosen::All,
        encoding: None,
    }
}

/// Reads all lines of data that arrives in pieces of `step` bytes; fields are joined by `|`.
fn read_in(data: &[u8], options: &Options, step: usize) -> Result<Vec<String>> {
    let mut pieces = data.chunks(step);
    let mut more = |buffer: &mut Vec<u8>| {
        let piece = pieces.next();
        buffer.extend_from_slice(piece.unwrap_or_default());
        Ok(piece.is_some())
    };
    let (mut lines, mut fields) = (Lines::new(), Fields::default());
    let mut out = Vec::new();
    while lines.next(options, &mut more)? {
        fields.split(lines.line(), options)?;
        let texts: Result<Vec<_>> = (0..fields.len())
            .map(|field| Ok(fields.get(field)?.unwrap_or("NULL").to_owned()))
            .collect();
        out.push(format!("{}: {}", lines.number, texts?.join("|")));
    }
    Ok(out)
}

/// The same for every size of the pieces.
fn read(data: &[u8], options: &Options) -> Result<Vec<String>, String> {
    let whole = read_in(data, options, data.len().max(1)).map_err(|error| error.to_string());
    for step in 1..data.len() {
        let cut = read_in(data, options, step).map_err(|error| error.to_string());
        assert_eq!(cut, whole, "in pieces of {step}");
    }
    whole
}

fn ok(lines: &[&str]) -> Result<Vec<String>, String> {
    Ok(lines.iter().map(|line| (*line).to_owned()).collect())
}

fn error(message: &str) -> Result<Vec<String>, String> {
    Err(format!("ERROR 22P04: {message}"))
}

#[test]
fn text_ends_lines_as_the_first_one_does() {
    let text = options(Layout::Text);
    for (data, expected) in [
        (&b""[..], ok(&[])),
        (b"a\tb\n", ok(&["1: a|b"])),
        (b"a\nb", ok(&["1: a", "2: b"])),
        (b"a\r\nb\r\n", ok(&["1: a", "2: b"])),
        (b"a\rb\r", ok(&["1: a", "2: b"])),
        (b"a\r", ok(&["1: a"])),
        (b"\n\n", ok(&["1: ", "2: "])),
        (b"a\nb\r\n", error("literal carriage return found in data")),
        (b"a\r\nb\n", error("literal newline found in data")),
        (b"a\r\nb\rc", error("literal carriage return found in data")),
        (b"a\rb\n", error("literal newline found in data")),
        (b"a\\\nb\n", ok(&["1: a\nb"])),
    ] {
        assert_eq!(read(data, &text), expected, "{data:?}");
    }
}

#[test]
fn a_marker_ends_the_data() {
    let (text, csv) = (options(Layout::Text), options(Layout::Csv));
    for (data, expected) in [
        (&b"a\n\\.\nb\n"[..], ok(&["1: a"])),
        (b"a\r\n\\.\r\nb", ok(&["1: a"])),
        (b"\\.\nb\n", ok(&[])),
        (b"a\nb\\.\nc\n", ok(&["1: a", "2: b"])),
        (b"a\n\\.x\n", error("end-of-copy marker corrupt")),
        (
            b"a\n\\.\rb\n",
            error("end-of-copy marker does not match previous newline style"),
        ),
    ] {
        assert_eq!(read(data, &text), expected, "{data:?}");
    }
    assert_eq!(read(b"a\n\\.\nb\n", &csv), ok(&["1: a"]));
    assert_eq!(
        read(b"a\nx\\.\n\\.y\n", &csv),
        ok(&["1: a", "2: x\\.", "3: \\.y"])
    );
}

#[test]
fn backslashes_are_read() {
    let text = options(Layout::Text);
    let data = b"\\N\t\\\\N\t\\t\\n\\x41\\x4g\\101\\7z\\q\\\t\\x\n";
    let expected = ok(&["1: NULL|\\N|\t\nA\u{4}gA\u{7}zq\tx"]);
    assert_eq!(read(data, &text), expected);
    assert_eq!(
        read(b"\\303\\244\n", &text),
        ok(&["1: \u{e4}"]),
        "bytes of a character, escaped"
    );
    assert!(read(b"\\377\n", &text).unwrap_err().contains("22021"));
}

#[test]
fn quotes_hold_what_they_surround() {
    let csv = options(Layout::Csv);
    for (data, expected) in [
        (&b"a,\"b,c\",\"d\"\"e\"\n"[..], ok(&["1: a|b,c|d\"e"])),
        (b"\"a\nb\",c\nd\n", ok(&["1: a\nb|c", "2: d"])),
        (b"x\n\"a\nb\",c\nd\n", ok(&["1: x", "3: a\nb|c", "4: d"])),
        (b",\"\"\n", ok(&["1: NULL|"])),
        (b"a\"b,c\"d\n", ok(&["1: ab,cd"])),
        (b"\"open\nx\n", error("unterminated CSV quoted field")),
    ] {
        assert_eq!(read(data, &csv), expected, "{data:?}");
    }
    let other = Options {
        escape: b'\\',
        ..csv
    };
    let data = b"\"a\\\"b\\\\\",c\n\"\\x\"\n";
    assert_eq!(read(data, &other), ok(&["1: a\"b\\|c", "2: \\x"]));
}
