//! Messages come back as they were sent, and nonsense is an error, never a panic.

use base::error::{Error, ErrorClass, SqlState};

use crate::backend::{Backend, Column, Severity, TransactionStatus};
use crate::frame::{Framer, Message, Side};
use crate::frontend::{put_bind, put_parse, Frontend, Target};
use crate::startup::{self, CancelKey};

/// A small generator of its own: the same bytes on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

#[test]
fn frontend_messages_come_back() {
    let messages = [
        Frontend::Query(b"select 1"),
        Frontend::Describe(Target::Statement(b"s1")),
        Frontend::Describe(Target::Portal(b"")),
        Frontend::Execute {
            portal: b"p",
            rows_max: 10,
        },
        Frontend::Close(Target::Portal(b"p")),
        Frontend::Close(Target::Statement(b"")),
        Frontend::Flush,
        Frontend::Sync,
        Frontend::Terminate,
        Frontend::CopyData(b"1\t2\n"),
        Frontend::CopyDone,
        Frontend::CopyFail(b"no more"),
    ];
    let mut framer = Framer::new(Side::Frontend);
    let mut bytes = Vec::new();
    for message in &messages {
        message.encode(&mut bytes);
    }
    framer.feed(&bytes);
    for message in messages {
        let frame = framer.next().unwrap().unwrap();
        assert_eq!(Frontend::decode(frame.kind, frame.body).unwrap(), message);
    }
}

#[test]
fn parse_and_bind_come_back() {
    let mut bytes = Vec::new();
    put_parse(&mut bytes, "s", "select $1, $2", &[23, 0]);
    put_bind(&mut bytes, "p", "s", &[Some(b"7"), None], true);
    let mut framer = Framer::new(Side::Frontend);
    framer.feed(&bytes);

    let mut message = Message::default();
    assert!(framer.next_into(&mut message).unwrap());
    let Frontend::Parse(parse) = Frontend::decode(message.kind, &message.body).unwrap() else {
        panic!("{message:?}");
    };
    assert_eq!((parse.name, parse.text), (&b"s"[..], &b"select $1, $2"[..]));
    assert_eq!(parse.types.iter().collect::<Vec<_>>(), [23, 0]);
    let mut again = Vec::new();
    Frontend::Parse(parse).encode(&mut again);
    assert_eq!(again[..], bytes[..again.len()]);

    assert!(framer.next_into(&mut message).unwrap());
    let Frontend::Bind(bind) = Frontend::decode(message.kind, &message.body).unwrap() else {
        panic!("{message:?}");
    };
    assert_eq!((bind.portal, bind.statement), (&b"p"[..], &b"s"[..]));
    let values: Vec<_> = bind.values.iter().collect();
    assert_eq!(values, [Some(&b"7"[..]), None]);
    assert!(bind.formats.is_binary(1) && bind.result_formats.is_binary(0));
    assert!(!framer.next_into(&mut message).unwrap());
}

#[test]
fn backend_messages_come_back() {
    let mut error = Error::new(SqlState::UNIQUE_VIOLATION, "duplicate key value")
        .with_detail("Key (id)=(1) already exists.")
        .with_hint("Use another.")
        .at(8);
    error.fields_mut().constraint = Some("t_pkey".into());
    error.fields_mut().table = Some("t".into());
    let fatal = Error::of_class(ErrorClass::Session, SqlState::ADMIN_SHUTDOWN, "bye");
    let messages = [
        Backend::AuthenticationOk,
        Backend::Authentication(10),
        Backend::ParameterStatus(b"TimeZone", b"UTC"),
        Backend::BackendKeyData(CancelKey { pid: 1, secret: -2 }),
        Backend::NegotiateProtocolVersion(0, vec![b"_pq_.x"]),
        Backend::ReadyForQuery(TransactionStatus::Failed),
        Backend::RowDescription(vec![Column {
            name: b"id",
            table: 16_400,
            attribute: 1,
            type_oid: 23,
            type_length: 4,
            modifier: -1,
            binary: true,
        }]),
        Backend::CommandComplete(b"SELECT 1"),
        Backend::EmptyQueryResponse,
        Backend::ErrorResponse(Severity::Error, error.clone()),
        Backend::ErrorResponse(Severity::Fatal, fatal),
        Backend::NoticeResponse(Severity::Warning, error),
        Backend::NotificationResponse(7, b"channel", b""),
        Backend::ParseComplete,
        Backend::BindComplete,
        Backend::CloseComplete,
        Backend::NoData,
        Backend::PortalSuspended,
        Backend::ParameterDescription(vec![23, 25]),
        Backend::CopyInResponse(2, false),
        Backend::CopyOutResponse(3, true),
        Backend::CopyData(b"1\t2\n"),
        Backend::CopyDone,
        Backend::FunctionCallResponse(None),
        Backend::FunctionCallResponse(Some(b"\0\x01")),
    ];
    let mut bytes = Vec::new();
    for message in &messages {
        message.encode(&mut bytes);
    }
    let mut framer = Framer::new(Side::Backend);
    framer.feed(&bytes);
    for message in messages {
        let frame = framer.next().unwrap().unwrap();
        assert_eq!(Backend::decode(frame.kind, frame.body).unwrap(), message);
    }
}

/// Whole nonsense, and good messages with a few bytes changed.
#[test]
fn nonsense_never_panics() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut good = Vec::new();
    Frontend::Query(b"select 1").encode(&mut good);
    put_parse(&mut good, "s", "select $1", &[23]);
    put_bind(&mut good, "", "s", &[Some(b"1"), None], false);
    Frontend::Sync.encode(&mut good);
    for round in 0..20_000 {
        let bytes: Vec<u8> = if round % 2 == 0 {
            (0..random.below(64)).map(|_| random.next() as u8).collect()
        } else {
            let mut bytes = good.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next() as u8;
            }
            bytes
        };
        let _ = startup::decode(&bytes);
        for side in [Side::Frontend, Side::Backend] {
            let mut framer = Framer::new(side);
            framer.feed(&bytes);
            while let Ok(Some(frame)) = framer.next() {
                let _ = Frontend::decode(frame.kind, frame.body);
                let _ = Backend::decode(frame.kind, frame.body);
            }
        }
        if let Some((kind, body)) = bytes.split_first() {
            if let Ok(Frontend::Bind(bind)) = Frontend::decode(*kind, body) {
                assert_eq!(bind.values.iter().count(), bind.values.count());
            }
            let _ = Backend::decode(*kind, body);
        }
    }
}
