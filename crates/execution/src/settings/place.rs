//! What a server tells of itself: where its files are, where it listens, how large its parts are, which
//! ciphers it takes. No session changes any of them, and most are what they are once a node runs.
//!
//! ```text
//! show data_directory          /srv/quorate/n1        as the node was started
//! show block_size              8192                   what relpages and EXPLAIN's buffers are counted in
//! ```
//! The node that serves the session gives the values ([`Settings::fix`](super::Settings::fix)); the built-in ones
//! are those of no node. PostgreSQL shows paths and ciphers to superusers and members of `pg_read_all_settings`
//! alone ([`is_private`]), and so does this.
//!
//! # What it leaves out
//! Settings of servers about things that there are not here (other files, sockets in a directory, shared memory)
//! stand in `without_effect.txt`.
//!
//! Source: PostgreSQL 15 manual, sections 20.2, 20.3 and 20.17.

use base::{Error, Result, SqlState};
use catalog::Catalog;

use super::{define, Definition, Kind, Settings};

#[rustfmt::skip]
pub(super) const SETTINGS: &[Definition] = &[
    define("block_size", Kind::Fixed, "8192", "Shows the size of a disk block."),
    define("config_file", Kind::Fixed, "", "Sets the server's main configuration file."),
    define("data_directory", Kind::Fixed, "", "Sets the server's data directory."),
    define("data_directory_mode", Kind::Fixed, "0700", "Shows the mode of the data directory."),
    define("hba_file", Kind::Fixed, "", "Sets the server's \"hba\" configuration file."),
    define("listen_addresses", Kind::Fixed, "localhost", "Sets the host name or IP address(es) to listen to."),
    define("log_file_mode", Kind::Fixed, "0600", "Sets the file permissions for log files."),
    define("port", Kind::Fixed, "5432", "Sets the TCP port the server listens on."),
    define("shared_buffers", Kind::Fixed, "128MB", "Sets the number of shared memory buffers used by the server."),
    define("ssl", Kind::Fixed, "off", "Enables SSL connections."),
    define("ssl_ca_file", Kind::Fixed, "", "Location of the SSL certificate authority file."),
    define("ssl_cert_file", Kind::Fixed, "server.crt", "Location of the SSL server certificate file."),
    define("ssl_ciphers", Kind::Fixed, CIPHERS, "Sets the list of allowed SSL ciphers."),
    define("ssl_crl_file", Kind::Fixed, "", "Location of the SSL certificate revocation list file."),
    define("ssl_ecdh_curve", Kind::Fixed, "X25519:prime256v1:secp384r1", "Sets the curve to use for ECDH."),
    define("ssl_key_file", Kind::Fixed, "server.key", "Location of the SSL server private key file."),
    define("ssl_library", Kind::Fixed, "rustls", "Shows the name of the SSL library."),
    define("ssl_prefer_server_ciphers", Kind::Fixed, "off", "Give priority to server ciphersuite order."),
    define("wal_segment_size", Kind::Fixed, "16MB", "Shows the size of write ahead log segments."),
];

/// The ciphers of TLS 1.2 that a node takes, the one that it likes best first, under OpenSSL's names.
const CIPHERS: &str = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256:\
                       ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-AES256-GCM-SHA384:\
                       ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305";

/// The settings that only superusers and members of `pg_read_all_settings` see.
const PRIVATE: [&str; 20] = [
    "config_file",
    "data_directory",
    "dynamic_library_path",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "jit_provider",
    "krb_server_keyfile",
    "log_directory",
    "log_filename",
    "primary_conninfo",
    "session_preload_libraries",
    "shared_preload_libraries",
    "ssl_ciphers",
    "ssl_dh_params_file",
    "ssl_ecdh_curve",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "ssl_passphrase_command",
    "unix_socket_directories",
];

/// Whether a setting is one of these.
pub(super) fn is_listed(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.name == name)
}

/// Whether a setting is not for everybody's eyes.
pub fn is_private(name: &str) -> bool {
    let mut private = PRIVATE.iter();
    private.any(|private| private.eq_ignore_ascii_case(name))
}

/// The least and the greatest value of one of these, where it is not the one that it has.
pub(super) fn range(name: &str) -> Option<(i64, i64)> {
    match name {
        "data_directory_mode" | "log_file_mode" => Some((0, 0o777)),
        "port" => Some((1, 65_535)),
        "wal_segment_size" => Some((1 << 20, 1 << 30)),
        _ => None,
    }
}

/// A value that is written as permissions are, as the number that it is: `0700` is 448.
pub(super) fn without_octal(vartype: &str, value: &str) -> String {
    let digits = value.strip_prefix('0').filter(|_| vartype == "integer");
    let number = digits.and_then(|digits| i64::from_str_radix(digits, 8).ok());
    number.map_or_else(|| value.to_owned(), |number| number.to_string())
}

impl Settings {
    /// Whether who the session is may see a setting of that name.
    pub fn is_visible(&self, catalog: &Catalog, name: &str) -> bool {
        !is_private(name)
            || catalog.has_privileges_of(self.current_role(), catalog::access::READ_ALL_SETTINGS)
    }

    /// [`Settings::show`], for who the session is.
    ///
    /// # Errors
    /// 42704; 42501 for what is not for everybody's eyes.
    pub fn show_to_user(&self, catalog: &Catalog, name: &str) -> Result<(String, String)> {
        let (name, value) = self.show(name)?;
        match self.is_visible(catalog, &name) {
            true => Ok((name, value)),
            false => Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!(
                    "must be superuser or have privileges of pg_read_all_settings to examine \
                     \"{name}\""
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_numbers() {
        assert_eq!(without_octal("integer", "0700"), "448");
        assert_eq!(without_octal("integer", "0"), "0");
        assert_eq!(without_octal("integer", "8192"), "8192");
        assert_eq!(without_octal("string", "0700"), "0700");
    }

    #[test]
    fn what_is_private_is_a_setting() {
        let settings = Settings::of_nobody();
        for name in PRIVATE {
            assert!(settings.show(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn sizes_are_shown_as_postgresql_shows_them() {
        let settings = Settings::of_nobody();
        assert_eq!(settings.show("wal_segment_size").unwrap().1, "16MB");
        let rows = settings.rows();
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
        let segment = row("wal_segment_size");
        assert_eq!(
            (segment.setting.as_str(), segment.unit),
            ("16777216", Some("B"))
        );
        let mode = row("data_directory_mode");
        assert_eq!((mode.setting.as_str(), mode.boot.as_str()), ("0700", "448"));
        assert_eq!(mode.max.as_deref(), Some("511"));
    }
}
