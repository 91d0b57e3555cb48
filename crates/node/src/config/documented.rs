//! The settings that a node is given when it starts, as `docs/SETTINGS.md` lists them.
//!
//! [`NodeSettings::read`](super::NodeSettings::read) takes only what is listed here, so that no
//! setting of a node is without its lines.

/// What a setting is while nobody gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value, as an operator would write it.
    Value(&'static str),
    /// What the node works out when it starts, in words.
    Chosen(&'static str),
}

/// What is said of a setting of a node.
#[derive(Clone, Copy, Debug)]
pub struct DocumentedSetting {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in sentences.
    pub meaning: &'static str,
    /// What a number without a unit counts; none where a unit must be given, or there is none.
    pub unit: Option<&'static str>,
    /// What it is while nobody gives it.
    pub default: DefaultValue,
    /// The values that it takes.
    pub values: &'static str,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    values: &'static str,
    meaning: &'static str,
) -> DocumentedSetting {
    DocumentedSetting {
        name,
        meaning,
        unit: None,
        default: DefaultValue::Value(default),
        values,
    }
}

const fn chosen(
    name: &'static str,
    default: &'static str,
    values: &'static str,
    meaning: &'static str,
) -> DocumentedSetting {
    DocumentedSetting {
        default: DefaultValue::Chosen(default),
        ..setting(name, "", values, meaning)
    }
}

const SIZE: &str = "a size above 0, with its unit";
const TIME: &str = "a time above 0, with its unit";

/// All settings of a node, by name.
#[rustfmt::skip]
pub const SETTINGS: &[DocumentedSetting] = &[
    DocumentedSetting {
        unit: Some("s"),
        ..setting("authentication_timeout", "1min", "1s to 10min", "A client that has not shown who it is within this time is sent away, and so is a node.")
    },
    setting("checkpoint_timeout", "5min", TIME, "The longest time between two checkpoints of a node on which anything changes."),
    DocumentedSetting {
        unit: Some("kB"),
        ..setting("log_rotation_size", "10MB", "0, or a size with its unit", "A file of the node's log that has grown to this size is put aside and another begun; at 0 none is. See quorate.log_files.")
    },
    setting("max_connections", "1000", "a number from 1", "Clients that the node serves at once; one more gets 53300."),
    setting("quorate.absent_log_size", "1GB", SIZE, "Log that the leader keeps for members that are away or behind. One that needs more is sent a checkpoint instead."),
    setting("quorate.checkpoint_log_records", "100000", "a number from 2", "A restart replays about so many records of the log at most, whatever their size: a checkpoint begins when the log has grown by half as many since the last one, and is written before it has grown by the rest."),
    setting("quorate.checkpoint_log_size", "256MB", SIZE, "A restart replays about so much of the log at most: a checkpoint begins when the log has grown by half as much since the last one, and is written before it has grown by the rest."),
    setting("quorate.checkpoint_space", "25%", "5% to 100%", "A checkpoint begins when so many of a hundred pages have changed since the last one. The trees' file is longer than its content by about as much."),
    setting("quorate.chunk_size", "64kB", SIZE, "A transaction with more to log is logged in chunks of this size, between which others commit."),
    setting("quorate.consistency_check", "1h", "off, 0, or a time with its unit", "How often the leader compares what the replicas hold, range by range, with rests in between: at most 50,000 rows a second and a twentieth of one core. See quorate.inconsistencies and quorate.check_consistency()."),
    setting("quorate.election_timeout", "300ms", TIME, "A voter that hears nothing from the leader for so long, and up to half as long again, stands for election. Also how long a leader may serve reads on the word of a majority, less a tenth."),
    setting("quorate.heartbeat_interval", "50ms", TIME, "How often a leader shows that it lives."),
    setting("quorate.leaders", "together", "together, spread", "Where further groups are led: by the node that leads the first, or by as many voters as there are, each of as many groups as the others. The same on all nodes."),
    setting("quorate.log_files", "10", "0 to 1000", "Files of the node's log, of each form, that are kept after log_rotation_size has put them aside: node.log.1 is the newest. Older ones are removed."),
    setting("quorate.log_segment_size", "16MB", SIZE, "The size of one file of the log; it is allocated before it is needed."),
    setting("quorate.max_inflight", "64MB", SIZE, "Given to a node: bytes of log that are appended and not yet committed, at which every commit waits. Not the setting of sessions of the same name."),
    chosen("quorate.memory_budget", "60% of the machine's memory, divided by the nodes of the cluster on it, or more where `shared_buffers` leaves less than an eighth for sessions", SIZE, "The memory that pages, old versions, the log and everything that sessions keep may take together. Beyond it the session with the most gets 53200. No session can change it."),
    setting("quorate.peer_ca_file", "ca.crt", "a file in the node's directory, or a path", "The authority whose certificates other nodes must show."),
    setting("quorate.peer_cert_file", "node.crt", "a file in the node's directory, or a path", "The certificate that the node shows to other nodes."),
    chosen("quorate.peer_crl_file", "that of `ssl_crl_file`", "a file in the node's directory, or a path", "The list of nodes' certificates that are revoked."),
    setting("quorate.peer_key_file", "node.key", "a file in the node's directory, or a path", "The key of that certificate."),
    setting("quorate.peer_tls", "off", "on, off", "Whether nodes talk encrypted, and only so. Beyond loopback it must be on. The same on all nodes."),
    chosen("quorate.spin", "50us; off where the machine has more nodes than cores", "off, or a time above 0 with its unit", "How long a thread of sessions looks for input before it sleeps: faster answers for few clients, for some processor time."),
    setting("quorate.standby_timeout", "0", "off, 0, or a time with its unit", "A standby that is named and keeps replies waiting for longer is given up until it has caught up."),
    setting("quorate.txn_mem", "64MB", SIZE, "The memory that the changes of one transaction may take before they go to a scratch file."),
    DocumentedSetting {
        unit: Some("8kB"),
        ..setting("shared_buffers", "128MB", "from 128kB", "Memory for pages of the trees. An eighth as much again, at most, holds old versions of rows.")
    },
    setting("ssl", "off", "on, off", "Whether clients may have their connections encrypted. Certificates are read anew at pg_reload_conf(). Beyond loopback it must be on."),
    setting("ssl_ca_file", "", "a file in the node's directory, or a path", "The authority whose certificates of clients are taken; empty for nobody's."),
    setting("ssl_cert_file", "server.crt", "a file in the node's directory, or a path", "The certificate that the node shows to clients."),
    setting("ssl_crl_file", "", "a file in the node's directory, or a path", "The list of clients' certificates that are revoked; empty for none."),
    setting("ssl_key_file", "server.key", "a file in the node's directory, or a path", "The key of that certificate."),
    chosen("superuser_reserved_connections", "3, but fewer than `max_connections`", "from 0, below `max_connections`", "The last places for clients, which only superusers get."),
    setting("synchronous_standby_names", "", "FIRST n (names), ANY n (names), or names; * for any", "Standbys that replies wait for beside the majority."),
];

/// Whether a node has a setting of that name.
pub(super) fn is_listed(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::NodeSettings;
    use super::*;

    fn read(settings: BTreeMap<String, String>) -> String {
        format!("{:?}", NodeSettings::read(&settings).unwrap())
    }

    #[test]
    fn defaults_are_what_a_node_does_without_them() {
        let plain = read(BTreeMap::new());
        for setting in SETTINGS {
            if let DefaultValue::Value(value) = setting.default {
                let given = read([(setting.name.to_owned(), value.to_owned())].into());
                assert_eq!(given, plain, "{} at {value}", setting.name);
            }
        }
    }

    #[test]
    fn settings_stand_in_order() {
        assert!(SETTINGS.windows(2).all(|two| two[0].name < two[1].name));
    }
}
