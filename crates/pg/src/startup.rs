//! The first packet of a connection: who wants what, before any typed message.
//!
//! ```text
//! SSLRequest                   answered 'S', then TLS begins; or 'N' where there is none
//! GSSENCRequest                answered 'N'; another packet follows
//! CancelRequest                pid and secret of another session; the connection ends
//! StartupMessage               user, database, settings; the session begins
//! ```
//!
//! Source: PostgreSQL 15 manual, sections 55.2.1, 55.2.9 to 55.2.11 and 55.7.

use base::error::{Error, ErrorClass, Result, SqlState};

use crate::frame::{put_cstr, put_sized, violation, BodyReader};

/// A first packet may be at most this long; a longer one is FATAL 08P01 (PostgreSQL's limit).
pub const STARTUP_BYTES_MAX: usize = 10_000;

/// Encryption may be asked for this often before the connection is closed.
pub const ENCRYPTION_REQUESTS_MAX: usize = 2;

/// What SSLRequest is answered with where TLS begins.
pub const ENCRYPTION_BEGINS: u8 = b'S';

/// What SSLRequest and GSSENCRequest are answered with otherwise.
pub const ENCRYPTION_REFUSED: u8 = b'N';

const PROTOCOL_MAJOR: u32 = 3;
const CANCEL_REQUEST: u32 = code(1234, 5678);
const SSL_REQUEST: u32 = code(1234, 5679);
const GSSENC_REQUEST: u32 = code(1234, 5680);

const fn code(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// Names a session to whoever wants to cancel its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CancelKey {
    /// What `pg_backend_pid()` shows.
    pub pid: i32,
    /// Known to the client alone.
    pub secret: i32,
}

/// A way to encrypt a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// SSLRequest.
    Tls,
    /// GSSENCRequest.
    Gss,
}

/// A first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstPacket {
    /// SSLRequest or GSSENCRequest.
    Encryption(Encryption),
    /// CancelRequest.
    Cancel(CancelKey),
    /// StartupMessage.
    Startup(StartupParameters),
}

/// What a client asks for when it connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartupParameters {
    /// The protocol's minor version; above 0 it is negotiated down.
    pub minor: u16,
    /// The role.
    pub user: String,
    /// The database; the role's name where none was given.
    pub database: String,
    /// Settings in the order given, those inside `options` last.
    pub settings: Vec<(String, String)>,
    /// Protocol options (`_pq_.…`), none of which is known.
    pub unknown_options: Vec<String>,
}

/// Cuts the first packet off some bytes: the packet and its length, once it is whole.
///
/// # Errors
/// FATAL 08P01 for a malformed packet, 0A000 for another protocol version, 28000 without a role.
pub fn decode(bytes: &[u8]) -> Result<Option<(FirstPacket, usize)>> {
    let Some(length) = bytes.get(..4) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(violation("invalid length of startup packet"));
    }
    let Some(packet) = bytes.get(4..length) else {
        return Ok(None);
    };
    Ok(Some((decode_packet(packet)?, length)))
}

fn decode_packet(packet: &[u8]) -> Result<FirstPacket> {
    let mut reader = BodyReader::new(packet);
    let version = reader.i32()? as u32;
    match version {
        SSL_REQUEST | GSSENC_REQUEST => {
            reader.finish()?;
            Ok(FirstPacket::Encryption(match version {
                SSL_REQUEST => Encryption::Tls,
                _ => Encryption::Gss,
            }))
        }
        CANCEL_REQUEST => {
            let key = CancelKey {
                pid: reader.i32()?,
                secret: reader.i32()?,
            };
            reader.finish()?;
            Ok(FirstPacket::Cancel(key))
        }
        _ if version >> 16 == PROTOCOL_MAJOR => {
            decode_parameters((version & 0xffff) as u16, reader).map(FirstPacket::Startup)
        }
        _ => Err(Error::of_class(
            ErrorClass::Session,
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.0",
                version >> 16,
                version & 0xffff
            ),
        )),
    }
}

fn decode_parameters(minor: u16, mut reader: BodyReader<'_>) -> Result<StartupParameters> {
    let mut startup = StartupParameters {
        minor,
        ..StartupParameters::default()
    };
    let mut options = String::new();
    loop {
        let name = text(reader.cstr()?)?;
        if name.is_empty() {
            break;
        }
        let value = text(reader.cstr()?)?;
        match name.as_str() {
            "user" => startup.user = value,
            "database" => startup.database = value,
            "options" => options = value,
            "replication" => match value.to_ascii_lowercase().as_str() {
                "false" | "off" | "no" | "0" => {}
                _ => return Err(unsupported("a replication connection")),
            },
            _ if name.starts_with("_pq_.") => startup.unknown_options.push(name),
            _ => startup.settings.push((name, value)),
        }
    }
    reader.finish().map_err(|_| {
        violation("invalid startup packet layout: expected terminator as last byte")
    })?;
    startup.settings.extend(parse_options(&options)?);
    if startup.user.is_empty() {
        return Err(Error::of_class(
            ErrorClass::Session,
            SqlState::INVALID_AUTHORIZATION,
            "no PostgreSQL user name specified in startup packet",
        ));
    }
    if startup.database.is_empty() {
        startup.database.clone_from(&startup.user);
    }
    Ok(startup)
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| violation("invalid UTF-8 in the startup packet"))
}

fn unsupported(what: &str) -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("{what} is not supported"),
    )
}

/// The settings in a startup packet's `options`, in the syntax of a command line: `-c name=value`
/// and `--name=value`, words parted by spaces, `\` takes the next character as it is.
fn parse_options(options: &str) -> Result<Vec<(String, String)>> {
    let mut words = split_words(options).into_iter();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = if let Some(rest) = word.strip_prefix("--") {
            Some(rest.to_owned())
        } else if word == "-c" {
            words.next()
        } else {
            word.strip_prefix("-c").map(str::to_owned)
        };
        let parts = setting
            .as_deref()
            .and_then(|setting| setting.split_once('='));
        let Some((name, value)) = parts else {
            return Err(Error::of_class(
                ErrorClass::Session,
                SqlState::SYNTAX_ERROR,
                format!("invalid command-line argument for server process: {word}"),
            ));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut inside = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character.is_ascii_whitespace() {
            if std::mem::take(&mut inside) {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        inside = true;
        match character {
            '\\' => word.extend(characters.next()),
            _ => word.push(character),
        }
    }
    if inside {
        words.push(word);
    }
    words
}

/// Appends a StartupMessage.
pub fn put_startup(out: &mut Vec<u8>, startup: &StartupParameters) {
    put_sized(out, |out| {
        let version = code(PROTOCOL_MAJOR, u32::from(startup.minor));
        out.extend_from_slice(&version.to_be_bytes());
        let named = [("user", &startup.user), ("database", &startup.database)];
        let settings = startup
            .settings
            .iter()
            .map(|(name, value)| (&name[..], value));
        for (name, value) in named.into_iter().chain(settings) {
            put_cstr(out, name.as_bytes());
            put_cstr(out, value.as_bytes());
        }
        out.push(0);
    });
}

/// Appends a CancelRequest.
pub fn put_cancel(out: &mut Vec<u8>, key: CancelKey) {
    put_sized(out, |out| {
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&key.pid.to_be_bytes());
        out.extend_from_slice(&key.secret.to_be_bytes());
    });
}

/// Appends an SSLRequest.
pub fn put_ssl_request(out: &mut Vec<u8>) {
    put_sized(out, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back() {
        let startup = StartupParameters {
            user: "ann".into(),
            database: "bank".into(),
            settings: vec![("application_name".into(), "psql".into())],
            ..StartupParameters::default()
        };
        let mut bytes = Vec::new();
        put_startup(&mut bytes, &startup);
        let length = bytes.len();
        bytes.extend_from_slice(b"rest");
        for cut in 0..length {
            assert_eq!(decode(&bytes[..cut]).unwrap(), None);
        }
        let decoded = decode(&bytes).unwrap();
        assert_eq!(decoded, Some((FirstPacket::Startup(startup), length)));

        let key = CancelKey { pid: 7, secret: -9 };
        let mut bytes = Vec::new();
        put_cancel(&mut bytes, key);
        assert_eq!(
            decode(&bytes).unwrap(),
            Some((FirstPacket::Cancel(key), 16))
        );
        let mut bytes = Vec::new();
        put_ssl_request(&mut bytes);
        let packet = FirstPacket::Encryption(Encryption::Tls);
        assert_eq!(decode(&bytes).unwrap(), Some((packet, 8)));
    }

    #[test]
    fn options_are_read_like_a_command_line() {
        let settings = parse_options(r"-c a=1 --lock-timeout=5s -cb=x\ y  ").unwrap();
        let settings: Vec<_> = settings
            .iter()
            .map(|(name, value)| (&name[..], &value[..]))
            .collect();
        assert_eq!(settings, [("a", "1"), ("lock_timeout", "5s"), ("b", "x y")]);
        assert!(parse_options("-z").is_err());
    }

    #[test]
    fn malformed_packets_are_errors() {
        let cases: [(&[u8], &str); 6] = [
            (b"\0\0\0\x04", "08P01"),
            (b"\xff\xff\xff\xff", "08P01"),
            (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
            (b"\0\0\0\x08\0\x02\0\0", "0A000"),
            (b"\0\0\0\x09\0\x03\0\0\0", "28000"),
            (b"\0\0\0\x0a\0\x03\0\0ab", "08P01"),
        ];
        for (bytes, state) in cases {
            let error = decode(bytes).unwrap_err();
            assert_eq!(error.state().as_str(), state, "{bytes:?}: {error}");
        }
    }
}
