//! Tests that need more than one module.

mod codec;
mod output;
mod session;

use crate::backend::Backend;
use crate::frame::{Framer, Side};

/// What a client reads, one word or two for each message.
pub(crate) fn transcript(bytes: &[u8]) -> String {
    let mut framer = Framer::new(Side::Backend);
    framer.feed(bytes);
    let mut shown = Vec::new();
    while let Some(frame) = framer.next().unwrap() {
        let message = Backend::decode(frame.kind, frame.body).unwrap();
        shown.push(show(&message));
    }
    assert!(framer.buffered().is_empty(), "part of a message left");
    shown.join(", ")
}

fn show(message: &Backend<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match message {
        Backend::AuthenticationOk => "trusted".into(),
        Backend::ParameterStatus(name, value) => format!("{}={}", text(name), text(value)),
        Backend::BackendKeyData(key) => format!("key {}", key.pid),
        Backend::NegotiateProtocolVersion(minor, names) => {
            format!("version 3.{minor} and {} unknown", names.len())
        }
        Backend::ReadyForQuery(status) => (status.code() as char).to_string(),
        Backend::RowDescription(columns) => format!("columns {}", columns.len()),
        Backend::DataRow(values) => {
            let value = values.iter().next().flatten().unwrap_or(b"null");
            format!("row {}", text(value))
        }
        Backend::CommandComplete(tag) => text(tag),
        Backend::EmptyQueryResponse => "empty".into(),
        Backend::ErrorResponse(severity, error) | Backend::NoticeResponse(severity, error) => {
            format!("{} {}", severity.name(), error.state())
        }
        Backend::ParseComplete => "parsed".into(),
        Backend::BindComplete => "bound".into(),
        Backend::CloseComplete => "closed".into(),
        Backend::NoData => "no data".into(),
        Backend::PortalSuspended => "suspended".into(),
        Backend::ParameterDescription(types) => format!("parameters {}", types.len()),
        Backend::CopyInResponse(columns, _) => format!("copy in {columns}"),
        Backend::CopyOutResponse(columns, _) => format!("copy out {columns}"),
        Backend::CopyData(data) => format!("data {}", text(data)),
        Backend::CopyDone => "copied".into(),
        Backend::FunctionCallResponse(_) => "called".into(),
        other => panic!("{other:?}"),
    }
}
