//! `quorate init`: the directories of a cluster on several machines, one for each, to be carried
//! there and started with `quorate start`.
//!
//! ```text
//! DIR/cluster.json, DIR/ca.crt, DIR/ca.key   stay with the operator
//! DIR/n1/node.json                           what the node needs to start
//! DIR/n1/node.crt, node.key, ca.crt          its certificate, for clients and other nodes
//! DIR/n1/pg_hba.conf                         who may come in: whoever has a password, over TLS
//! ```
//!
//! The first role is the superuser with the password given; what is kept of it is a verifier.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use node::config::NodeSettings;
use node::real::host;

use crate::cert::{self, Authority, Files};
use crate::layout::{self, Cluster, NodeAddress};
use crate::up::{new_cluster_id, parse_setting};
use crate::Failure;

/// Days for which the nodes' certificates are good.
const DAYS: u32 = 730;

/// The rules of access that a node begins with.
const RULES: &str = "\
# Who may connect to this node, from where, and what they must show: the first line that fits decides.
# Read anew at pg_reload_conf() and SIGHUP. See docs/THREE-MACHINES.md.
#
# type   database  user  address  method          options
hostssl  all       all   all      scram-sha-256
";

/// Settings of every node; the command line's come on top.
const SETTINGS: [(&str, &str); 5] = [
    ("ssl", "on"),
    ("ssl_cert_file", "node.crt"),
    ("ssl_key_file", "node.key"),
    ("ssl_ca_file", "ca.crt"),
    ("quorate.peer_tls", "on"),
];

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Where the directories go
    #[arg(long, value_name = "DIR", default_value = "./quorate-data")]
    data: PathBuf,
    /// A node: its name, the address of its machine, and other names of that machine
    #[arg(long = "node", value_name = "NAME=IP[,HOST…]", required = true, value_parser = parse_node)]
    nodes: Vec<Machine>,
    /// Where clients connect, on each machine
    #[arg(long, value_name = "PORT", default_value_t = 5433)]
    port: u16,
    /// Where the other nodes connect
    #[arg(long, value_name = "PORT", default_value_t = 6433)]
    peer_port: u16,
    /// Where the status page is, for the machine itself only
    #[arg(long, value_name = "PORT", default_value_t = 7433)]
    http_port: u16,
    /// The first superuser
    #[arg(long, value_name = "NAME", default_value = "postgres")]
    user: String,
    /// The file whose first line is that superuser's password
    #[arg(long, value_name = "FILE")]
    password_file: PathBuf,
    /// A setting of every node, or the default of a setting of every session
    #[arg(short = 'c', value_name = "NAME=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
}

/// A machine that a node runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Machine {
    name: String,
    ip: IpAddr,
    hosts: Vec<String>,
}

fn parse_node(text: &str) -> Result<Machine, String> {
    let (name, hosts) = text.split_once('=').ok_or("not of the form name=ip")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err("a name is made of letters, digits, - and _".to_owned());
    }
    let mut hosts: Vec<_> = hosts.split(',').map(str::to_owned).collect();
    let ip = hosts[0]
        .parse()
        .map_err(|_| format!("{} is no IP address", hosts[0]))?;
    // Whoever is on the machine may say localhost.
    hosts.extend(["localhost".to_owned(), "127.0.0.1".to_owned()]);
    hosts.dedup();
    Ok(Machine {
        name: name.to_owned(),
        ip,
        hosts,
    })
}

/// Makes the directories.
pub fn run(options: &Options) -> Result<(), Failure> {
    if layout::read_cluster(&options.data)?.is_some() {
        let dir = options.data.display();
        return Err(format!(
            "there is a cluster in {dir} already; choose another directory"
        ));
    }
    layout::check_empty(&options.data, &[])?;
    let nodes = addresses(options)?;
    layout::check_addresses(&nodes)?;
    let mut settings: BTreeMap<String, String> = SETTINGS
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    settings.extend(options.settings.iter().cloned());
    NodeSettings::read(&settings).map_err(|error| crate::explain(&error))?;
    let password = verifier(options)?;
    let made = host::create_dir(&options.data).and_then(|()| host::narrow(&options.data));
    made.map_err(|error| format!("could not make {}: {error}", options.data.display()))?;
    let (authority, own) = Authority::make(&options.data, "Quorate CA")?;
    let mut cluster = Cluster {
        incarnation: 1,
        begun_after: 0,
        private: true,
        format: layout::FORMAT,
        cluster: new_cluster_id()?.to_string(),
        nodes,
    };
    let ca = host::read_text(&own.certificate).map_err(|error| error.to_string())?;
    for (node, machine) in cluster.nodes.iter_mut().zip(&options.nodes) {
        let dir = layout::node_dir(&options.data, node);
        let failed = |error| format!("could not write into {}: {error}", dir.display());
        host::create_dir(&dir).map_err(failed)?;
        let files = Files::of(&dir, "node");
        authority.node(&machine.name, &machine.hosts, DAYS, &files, None)?;
        node.key = Some(cert::key_of(&files.certificate)?.to_string());
        host::write_text(&dir.join("ca.crt"), &ca).map_err(failed)?;
        host::write_text(&dir.join(node::access::RULES_FILE), RULES).map_err(failed)?;
    }
    layout::write(
        &options.data,
        &cluster,
        &options.user,
        &settings,
        &[],
        Some(&password),
    )?;
    println!(
        "{} nodes in {}:",
        cluster.nodes.len(),
        options.data.display()
    );
    for node in &cluster.nodes {
        let dir = layout::node_dir(&options.data, node);
        println!(
            "  carry {0} to {1} and run: quorate start --data {2}",
            dir.display(),
            node.sql_address.ip(),
            node.name
        );
    }
    println!(
        "Clients need {}, and to connect with sslmode=verify-full.",
        own.certificate.display()
    );
    Ok(())
}

/// The first superuser's verifier.
fn verifier(options: &Options) -> Result<String, Failure> {
    let path = options.password_file.display();
    let text = host::read_text(&options.password_file)
        .map_err(|error| format!("could not read {path}: {error}"))?;
    let password = text.lines().next().unwrap_or_default();
    if password.is_empty() {
        return Err(format!("the first line of {path} is empty"));
    }
    let salt = host::seed().map_err(|error| format!("no randomness: {error}"))?;
    Ok(node::password_verifier(password, &salt))
}

fn addresses(options: &Options) -> Result<Vec<NodeAddress>, Failure> {
    let most = layout::NODES_MAX;
    let count = options.nodes.len();
    if count > most {
        return Err(format!("a cluster has at most {most} nodes, not {count}"));
    }
    let mut nodes: Vec<NodeAddress> = Vec::new();
    for (machine, id) in options.nodes.iter().zip(1..) {
        let at = |port: u16| SocketAddr::from((machine.ip, port));
        if nodes.iter().any(|known| known.name == machine.name) {
            return Err(format!("there are two nodes {}", machine.name));
        }
        if nodes
            .iter()
            .any(|known| known.sql_address == at(options.port))
        {
            return Err(format!("there are two nodes at {}", at(options.port)));
        }
        nodes.push(NodeAddress {
            id,
            name: machine.name.clone(),
            sql_address: at(options.port),
            peer_address: at(options.peer_port),
            http_address: (Ipv4Addr::LOCALHOST, options.http_port).into(),
            voter: true,
            zone: String::new(),
            priority: 0,
            key: None,
        });
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_read() {
        let machine = parse_node("n1=10.0.0.1,db1.example.com").unwrap();
        assert_eq!(
            (&machine.name[..], machine.ip.to_string()),
            ("n1", "10.0.0.1".to_owned())
        );
        let hosts = ["10.0.0.1", "db1.example.com", "localhost", "127.0.0.1"];
        assert_eq!(machine.hosts, hosts);
        for wrong in [
            "n1",
            "=10.0.0.1",
            "n 1=10.0.0.1",
            "n1=db1",
            "n/1=10.0.0.1",
            "n1=",
        ] {
            assert!(parse_node(wrong).is_err(), "{wrong}");
        }
    }
}
