//! Calls into libpg_query, which the `pg_query` crate builds and links.
//!
//! Its own `parse` drops the position of an error and walks the whole tree for figures that nobody
//! here wants; these declarations, of the same C functions, do neither. Strings in the results are
//! owned by C until freed, so everything is copied out before.

use std::ffi::{c_char, c_int, CStr, CString};

use super::strings::Strings;

#[repr(C)]
struct CError {
    message: *mut c_char,
    funcname: *mut c_char,
    filename: *mut c_char,
    lineno: c_int,
    cursorpos: c_int,
    context: *mut c_char,
}

#[repr(C)]
struct CBytes {
    len: usize,
    data: *mut c_char,
}

#[repr(C)]
struct CParseResult {
    tree: CBytes,
    stderr_buffer: *mut c_char,
    error: *mut CError,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CToken {
    start: c_int,
    end: c_int,
    token: c_int,
    keyword: c_int,
}

#[repr(C)]
struct CTokensResult {
    tokens: *mut CToken,
    count: c_int,
    error: *mut CError,
}

#[repr(C)]
struct CNormalizeResult {
    normalized_query: *mut c_char,
    error: *mut CError,
}

extern "C" {
    fn pg_query_parse_protobuf_opts(input: *const c_char, options: c_int) -> CParseResult;
    fn pg_query_free_protobuf_parse_result(result: CParseResult);
    fn pg_query_scan_tokens(input: *const c_char) -> CTokensResult;
    fn pg_query_free_scan_tokens_result(result: CTokensResult);
    fn pg_query_normalize(input: *const c_char) -> CNormalizeResult;
    fn pg_query_free_normalize_result(result: CNormalizeResult);
}

/// What libpg_query has against a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub message: String,
    /// Character position from 1; 0 when there is none.
    pub position: u32,
}

/// A token: where it lies (bytes), its number in the grammar, its kind of keyword (0: none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawToken {
    pub start: usize,
    pub end: usize,
    pub code: i32,
    pub keyword: i32,
}

/// `PG_QUERY_DISABLE_STANDARD_CONFORMING_STRINGS` and `PG_QUERY_DISABLE_ESCAPE_STRING_WARNING`.
const ESCAPED_STRINGS: c_int = 32 | 64;

/// The parse tree of a text, as protobuf.
pub(super) fn parse(text: &CString, strings: Strings) -> Result<Vec<u8>, SyntaxError> {
    match strings {
        Strings::Conforming => parse_with(text, 0),
        Strings::Escaped => {
            let tree = parse_with(text, ESCAPED_STRINGS);
            if tree.is_err() {
                // After an error the library leaves the options in the thread, where `scan` would
                // meet them; every parsing begins by setting them.
                let _ = parse_with(c"", 0);
            }
            tree
        }
    }
}

fn parse_with(text: &CStr, options: c_int) -> Result<Vec<u8>, SyntaxError> {
    // SAFETY: `text` ends with a zero byte; the result is read before it is freed, once.
    unsafe {
        let result = pg_query_parse_protobuf_opts(text.as_ptr(), options);
        let out = match error_of(result.error) {
            Some(error) => Err(error),
            None => {
                let bytes = result.tree.data.cast::<u8>();
                Ok(std::slice::from_raw_parts(bytes, result.tree.len).to_vec())
            }
        };
        pg_query_free_protobuf_parse_result(result);
        out
    }
}

/// A text with parameters in the places of constants; none if it cannot be parsed.
pub(super) fn normalize(text: &CString) -> Option<String> {
    // SAFETY: as in `parse`.
    unsafe {
        let result = pg_query_normalize(text.as_ptr());
        let is_good = result.error.is_null() && !result.normalized_query.is_null();
        let out = is_good.then(|| {
            let text = CStr::from_ptr(result.normalized_query);
            text.to_string_lossy().into_owned()
        });
        pg_query_free_normalize_result(result);
        out
    }
}

/// The tokens of a text, comments included.
pub(super) fn scan(text: &CString) -> Result<Vec<RawToken>, SyntaxError> {
    // SAFETY: as in `parse`.
    unsafe {
        let result = pg_query_scan_tokens(text.as_ptr());
        let out = match error_of(result.error) {
            Some(error) => Err(error),
            None if result.count <= 0 => Ok(Vec::new()),
            None => {
                let tokens = std::slice::from_raw_parts(result.tokens, result.count as usize);
                Ok(tokens.iter().map(RawToken::of).collect())
            }
        };
        pg_query_free_scan_tokens_result(result);
        out
    }
}

impl RawToken {
    fn of(token: &CToken) -> RawToken {
        RawToken {
            start: token.start.max(0) as usize,
            end: token.end.max(0) as usize,
            code: token.token,
            keyword: token.keyword,
        }
    }
}

unsafe fn error_of(error: *mut CError) -> Option<SyntaxError> {
    // SAFETY: libpg_query gives null or a valid error whose message is a C string.
    let error = unsafe { error.as_ref() }?;
    let message = unsafe { CStr::from_ptr(error.message) };
    Some(SyntaxError {
        message: message.to_string_lossy().into_owned(),
        position: u32::try_from(error.cursorpos).unwrap_or(0),
    })
}
