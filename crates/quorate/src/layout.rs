//! The directory of a cluster on one machine.
//!
//! ```text
//! DIR/cluster.json     the cluster's id and its nodes
//! DIR/n1/node.json     all that node n1 needs to start
//! DIR/n1/node.log      what it has to say
//! DIR/n1/lock          locked while it runs; holds the process id
//! DIR/n1/group1/       its log and its trees
//! DIR/n2/…
//! ```
//!
//! The first `quorate up` draws the cluster's id and writes both kinds of file. Later ones keep the
//! id and the nodes, and write the addresses and settings of their own command line.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use base::NodeId;
use kv::{Keys, Member};
use node::access::RULES_FILE;
use node::config::{NodeConfig, Places};
use node::real::host;
use node::wire::ClusterId;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The version of these files, and of everything below the directory. A directory of another is
/// refused, but for those from [`FORMAT_OLDEST`] on: a node that starts in one of these makes it of
/// this version first, so that an older build refuses it instead of reading wrongly what it does not
/// know (format 3: lengths of promises in the log, keys of members, collations of columns, indexes
/// to which NULLs are equal; format 4: orders of NULLs in indexes, keys of jsonb, types of one's own;
/// format 5: what ANALYZE has found, which goes with its table, and triggers; format 6: domains; format 7: partitions;
/// format 8: types of extensions, unique constraints that are checked later, further groups, prepared
/// transactions; format 9: keys that are arrays, notifications; format 10: exclusion constraints, parts of
/// transactions across groups; format 11: trees that lie in further groups, builds that are prepared;
/// format 12: the types of extensions `vector` and `ltree`, in rows and keys; format 13: collations of ICU and
/// of one's own; format 14: large objects, operators of one's own, and
/// tables that inherit from others; format 15: points and other shapes, amounts of money; format 16: rules; format 17: how columns are kept, indexes
/// that are clustered on, tables of types; format 18: what is told of rows that change, extended statistics).
/// `tests/directories` keeps a directory of an older format for each raise from format 4 on.
pub const FORMAT: u32 = 18;

/// See [`FORMAT`].
const FORMAT_OLDEST: u32 = 2;

/// Nodes of one cluster on one machine.
pub const NODES_MAX: usize = 9;

pub const CLUSTER_FILE: &str = "cluster.json";
pub const NODE_FILE: &str = "node.json";
const LOG_FILE: &str = "node.log";

/// One node's addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAddress {
    /// The node's id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Where it takes clients.
    pub sql_address: SocketAddr,
    /// Where it takes other nodes.
    pub peer_address: SocketAddr,
    /// Where its status page is.
    pub http_address: SocketAddr,
    /// Whether it votes when the cluster is made, or learns.
    pub voter: bool,
    /// Where it stands; may be empty.
    pub zone: String,
    /// Leaders go to the voter with the highest.
    pub priority: u32,
    /// What tells the key of its certificate from others, where it is known from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// `cluster.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// [`FORMAT`], or an older one.
    pub format: u32,
    /// The cluster's id.
    pub cluster: String,
    /// The group's incarnation.
    pub incarnation: u64,
    /// The position after which that began.
    pub begun_after: u64,
    /// The directory and the files in it are their owner's alone; see [`crate::privacy`].
    #[serde(default)]
    pub private: bool,
    /// Its nodes, in order.
    pub nodes: Vec<NodeAddress>,
}

/// `node.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFile {
    /// [`FORMAT`], or an older one.
    pub format: u32,
    /// The cluster's id.
    pub cluster: String,
    /// Which of the nodes this is.
    pub id: u64,
    /// The group's incarnation when this node was added.
    pub incarnation: u64,
    /// The position after which that began.
    pub begun_after: u64,
    /// Whether it has started before: then it must have its data, or it would vote again as if it
    /// had not.
    pub started: bool,
    /// The directory and all in it are their owner's alone; see [`crate::privacy`].
    #[serde(default)]
    pub private: bool,
    /// The operating-system user that first started the cluster.
    pub user: String,
    /// All nodes of the cluster, in order.
    pub nodes: Vec<NodeAddress>,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
    /// Where this node connects to in place of another's address for nodes, by the other's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub routes: BTreeMap<String, SocketAddr>,
    /// What proves the password of that user at the first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// A way from one node to another, past a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The node that connects.
    pub from: String,
    /// The node that it means.
    pub to: String,
    /// Where it connects to.
    pub via: SocketAddr,
}

impl std::str::FromStr for Route {
    type Err = String;

    /// Reads `n1-n2=127.0.0.1:20001`.
    fn from_str(text: &str) -> Result<Route, String> {
        const EXPECTED: &str = "not of the form n1-n2=ip:port";
        let (nodes, via) = text.split_once('=').ok_or(EXPECTED)?;
        let (from, to) = nodes.split_once('-').ok_or(EXPECTED)?;
        Ok(Route {
            from: from.to_owned(),
            to: to.to_owned(),
            via: via.parse().map_err(|_| EXPECTED)?,
        })
    }
}

/// What a directory is.
#[derive(Debug)]
pub enum Found {
    /// A cluster's.
    Cluster(Cluster),
    /// One node's.
    Node(NodeFile),
}

/// The directory of a node of a cluster.
pub fn node_dir(cluster_dir: &Path, node: &NodeAddress) -> PathBuf {
    cluster_dir.join(&node.name)
}

/// The log of the node in `dir`.
pub fn log_file(dir: &Path) -> PathBuf {
    dir.join(LOG_FILE)
}

/// Looks what a directory is.
///
/// # Errors
/// When it is nothing of Quorate, damaged, or of another version.
pub fn find(dir: &Path) -> Result<Found, Failure> {
    if let Some(cluster) = read_cluster(dir)? {
        return Ok(Found::Cluster(cluster));
    }
    match read_file(&dir.join(NODE_FILE))? {
        Some(node) => Ok(Found::Node(node)),
        None => Err(format!(
            "{} is no directory of Quorate: it has neither {CLUSTER_FILE} nor {NODE_FILE}",
            dir.display()
        )),
    }
}

/// The nodes of a directory and where each has its own.
///
/// # Errors
/// As [`find`].
pub fn nodes_of(dir: &Path) -> Result<Vec<(NodeAddress, PathBuf)>, Failure> {
    match find(dir)? {
        Found::Cluster(cluster) => Ok(cluster
            .nodes
            .into_iter()
            .map(|node| {
                let node_dir = node_dir(dir, &node);
                (node, node_dir)
            })
            .collect()),
        Found::Node(file) => Ok(vec![(file.this()?.clone(), dir.to_owned())]),
    }
}

/// The cluster of a directory, if there is one.
///
/// # Errors
/// When the file is damaged or of another version.
pub fn read_cluster(dir: &Path) -> Result<Option<Cluster>, Failure> {
    read_file(&dir.join(CLUSTER_FILE))
}

/// The node of a directory.
///
/// # Errors
/// When there is none, or its file is damaged or of another version.
pub fn read_node(dir: &Path) -> Result<NodeFile, Failure> {
    let path = dir.join(NODE_FILE);
    read_file(&path)?.ok_or_else(|| {
        format!(
            "{} is no node's directory: it has no {NODE_FILE}",
            dir.display()
        )
    })
}

/// Reads a file of ours; none when it is not there.
fn read_file<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, Failure> {
    let text = match host::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("could not read {}: {error}", path.display())),
    };
    let damaged = |error| format!("{} is damaged: {error}", path.display());
    // The version comes first, because the rest may look different in another.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let version: Version = serde_json::from_str(&text).map_err(damaged)?;
    if !(FORMAT_OLDEST..=FORMAT).contains(&version.format) {
        return Err(format!(
            "{} is of format {}, and this version of Quorate knows formats {FORMAT_OLDEST} to {FORMAT}",
            path.display(),
            version.format
        ));
    }
    serde_json::from_str(&text).map(Some).map_err(damaged)
}

fn write_file(path: &Path, content: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(content).map_err(|error| error.to_string())?;
    host::write_text(path, &(text + "\n"))
        .map_err(|error| format!("could not write {}: {error}", path.display()))
}

/// Whether nothing is in a node's directory but what an operator may put there before the node is
/// made: certificates, keys, lists of revoked certificates, and rules of access.
fn is_prepared(node_dir: &Path) -> bool {
    let is_given = |name: &String| {
        let of_tls = [".crt", ".key", ".crl"];
        name == RULES_FILE || of_tls.iter().any(|end| name.ends_with(end))
    };
    host::list(node_dir).is_ok_and(|names| names.iter().all(is_given))
}

/// Refuses to make a cluster in a directory where something else is. Directories of `nodes` that
/// are prepared are no hindrance.
///
/// # Errors
/// What is there.
pub fn check_empty(dir: &Path, nodes: &[String]) -> Result<(), Failure> {
    let names = match host::list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("could not read {}: {error}", dir.display())),
    };
    // What a first start leaves that was interrupted while it wrote its first file.
    let is_left_over = |name: &String| *name == host::name_beside(CLUSTER_FILE);
    let is_node = |name: &String| nodes.contains(name) && is_prepared(&dir.join(name));
    if names.iter().all(|name| is_left_over(name) || is_node(name)) {
        return Ok(());
    }
    let dir = dir.display();
    match names.iter().any(|name| name == NODE_FILE) {
        true => Err(format!(
            "{dir} is the directory of one node; start that with: quorate start --data {dir}"
        )),
        false => Err(format!(
            "{dir} is not empty, and no cluster's directory: it has no {CLUSTER_FILE}; choose one \
             that is empty or not there yet with --data"
        )),
    }
}

/// Refuses a cluster in one of whose nodes' directories there is something else than that node.
///
/// # Errors
/// What is there.
pub fn check_nodes(dir: &Path, cluster: &Cluster) -> Result<(), Failure> {
    for node in &cluster.nodes {
        let node_dir = node_dir(dir, node);
        let Some(file) = read_file::<NodeFile>(&node_dir.join(NODE_FILE))? else {
            match host::list(&node_dir) {
                Ok(_) if !is_prepared(&node_dir) => {
                    return Err(format!(
                        "{} is not empty, and not the directory of {}: it has no {NODE_FILE}",
                        node_dir.display(),
                        node.name
                    ));
                }
                _ => continue,
            }
        };
        check_cluster(&node_dir, &file, cluster)?;
        if file.id != node.id {
            let name = file.this().map_or("another node", |this| &this.name);
            return Err(format!(
                "{} is the directory of {name}, not of {}",
                node_dir.display(),
                node.name
            ));
        }
    }
    Ok(())
}

fn check_cluster(node_dir: &Path, file: &NodeFile, cluster: &Cluster) -> Result<(), Failure> {
    match file.cluster == cluster.cluster {
        true => Ok(()),
        false => Err(format!(
            "{} has a node of cluster {}, and is in the directory of cluster {}",
            node_dir.display(),
            file.cluster,
            cluster.cluster
        )),
    }
}

/// Refuses a node that is not where it belongs, or that has an address which another has.
///
/// # Errors
/// What is wrong.
pub fn check_start(dir: &Path, file: &NodeFile) -> Result<(), Failure> {
    let this = file.this()?;
    check_address(this, &file.nodes)?;
    let dir = host::canonical(dir)
        .map_err(|error| format!("could not read {}: {error}", dir.display()))?;
    // A file of that name may be anybody's, where the node's directory stands elsewhere.
    let parent = dir.parent();
    let around = parent.and_then(|parent| Some((parent, read_cluster(parent).ok()??)));
    let Some((parent, cluster)) = around else {
        return Ok(());
    };
    check_cluster(&dir, file, &cluster)?;
    check_address(this, &cluster.nodes)?;
    let known = cluster.nodes.iter().find(|node| node.id == file.id);
    match known.map(|node| node_dir(parent, node)) {
        Some(right) if right != dir => Err(format!(
            "{} has a copy of {}, whose directory is {}; a further node is made with: quorate node \
             add",
            dir.display(),
            this.name,
            right.display()
        )),
        _ => Ok(()),
    }
}

/// Refuses nodes two of which would listen at one address.
///
/// # Errors
/// Which.
pub fn check_addresses(nodes: &[NodeAddress]) -> Result<(), Failure> {
    nodes.iter().try_for_each(|node| check_address(node, nodes))
}

/// Refuses a node that would listen at an address which another has.
///
/// # Errors
/// Which.
pub fn check_address(this: &NodeAddress, nodes: &[NodeAddress]) -> Result<(), Failure> {
    let own = [this.sql_address, this.peer_address, this.http_address];
    for (index, address) in own.iter().enumerate() {
        if own[..index].contains(address) {
            return Err(format!("{} has the address {address} twice", this.name));
        }
    }
    let is_here = |node: &NodeAddress| node.sql_address.ip().is_loopback();
    for other in nodes.iter().filter(|other| other.id != this.id) {
        let mut theirs = vec![other.sql_address, other.peer_address];
        // Status pages are for their own machine, so those of other machines have the same address.
        if is_here(this) && is_here(other) {
            theirs.push(other.http_address);
        }
        if let Some(address) = own.iter().find(|address| theirs.contains(address)) {
            return Err(format!(
                "{} and {} have the same address, {address}",
                this.name, other.name
            ));
        }
    }
    Ok(())
}

/// Writes the files of a cluster and of its nodes. The cluster's comes first: by it a directory is
/// known again if that is interrupted, and the next `up` writes all of them.
///
/// # Errors
/// Whatever the system refuses.
pub fn write(
    dir: &Path,
    cluster: &Cluster,
    user: &str,
    settings: &BTreeMap<String, String>,
    routes: &[Route],
    password: Option<&str>,
) -> Result<(), Failure> {
    host::create_dir(dir).map_err(|error| format!("could not make {}: {error}", dir.display()))?;
    write_cluster(dir, cluster)?;
    for node in &cluster.nodes {
        let node_dir = node_dir(dir, node);
        let old = match read_file::<NodeFile>(&node_dir.join(NODE_FILE))? {
            Some(old) => Some(old),
            None => make_private_dir(&node_dir).map(|()| None)?,
        };
        let file = NodeFile {
            format: FORMAT,
            cluster: cluster.cluster.clone(),
            id: node.id,
            incarnation: cluster.incarnation,
            begun_after: cluster.begun_after,
            private: old.as_ref().is_none_or(|old| old.private),
            started: old.is_some_and(|old| old.id == node.id && old.started),
            user: user.to_owned(),
            nodes: cluster.nodes.clone(),
            settings: settings.clone(),
            routes: routes
                .iter()
                .filter(|route| route.from == node.name)
                .map(|route| (route.to.clone(), route.via))
                .collect(),
            password: password.map(str::to_owned),
        };
        write_file(&node_dir.join(NODE_FILE), &file)?;
    }
    Ok(())
}

/// Writes the file of a cluster alone.
///
/// # Errors
/// Whatever the system refuses.
pub fn write_cluster(dir: &Path, cluster: &Cluster) -> Result<(), Failure> {
    write_file(&dir.join(CLUSTER_FILE), cluster)
}

/// Whether a directory is a node's.
pub fn is_node(dir: &Path) -> bool {
    host::read_text(&dir.join(NODE_FILE)).is_ok()
}

/// Makes the directory of a node, or takes one that an operator has made for it.
///
/// # Errors
/// Whatever the system refuses.
pub fn make_private_dir(dir: &Path) -> Result<(), Failure> {
    let made = host::create_dir(dir).and_then(|()| host::narrow_all(dir));
    made.map(drop)
        .map_err(|error| format!("could not make {}: {error}", dir.display()))
}

/// Writes the file of a node into its directory.
///
/// # Errors
/// Whatever the system refuses.
pub fn write_node(dir: &Path, file: &NodeFile) -> Result<(), Failure> {
    write_file(&dir.join(NODE_FILE), file)
}

impl NodeFile {
    /// This node's addresses.
    ///
    /// # Errors
    /// When the file does not list the node itself.
    pub fn this(&self) -> Result<&NodeAddress, Failure> {
        let this = self.nodes.iter().find(|node| node.id == self.id);
        this.ok_or_else(|| format!("{NODE_FILE} is damaged: it does not list node {}", self.id))
    }

    /// Addresses of other nodes, and where this one connects to in their place.
    ///
    /// # Errors
    /// When a route leads to a node that is not there.
    pub fn routes(&self) -> Result<Vec<(SocketAddr, SocketAddr)>, Failure> {
        let address_of = |name: &str| -> Result<SocketAddr, Failure> {
            let node = self.nodes.iter().find(|node| node.name == name);
            let node = node.ok_or_else(|| format!("a route leads to {name}, which is no node"))?;
            Ok(node.peer_address)
        };
        let routes = self.routes.iter();
        routes
            .map(|(name, via)| Ok((address_of(name)?, *via)))
            .collect()
    }

    /// What the node is started with.
    ///
    /// # Errors
    /// When the cluster's id is none.
    pub fn config(&self) -> Result<NodeConfig, Failure> {
        let cluster: ClusterId = self
            .cluster
            .parse()
            .map_err(|error: base::Error| format!("{NODE_FILE} is damaged: {}", error.message()))?;
        let member = |node: &NodeAddress| -> Result<Member, base::Error> {
            let key = node.key.as_deref().map(str::parse).transpose()?;
            Ok(Member {
                keys: Keys {
                    noted: key,
                    next: None,
                },
                node: NodeId(node.id),
                name: node.name.as_str().into(),
                peer_address: node.peer_address.to_string().into(),
                sql_address: node.sql_address.to_string().into(),
                voter: node.voter,
                zone: node.zone.as_str().into(),
                priority: node.priority,
                leaves: None,
            })
        };
        let members: Result<_, base::Error> = self.nodes.iter().map(member).collect();
        Ok(NodeConfig {
            cluster,
            node: NodeId(self.id),
            members: members
                .map_err(|error| format!("{NODE_FILE} is damaged: {}", error.message()))?,
            incarnation: self.incarnation,
            begun_after: base::Lsn(self.begun_after),
            user: self.user.clone(),
            settings: self.settings.clone(),
            password: self.password.clone(),
            secure: None,
            places: Places::default(),
        })
    }
}

/// The first ports of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// For clients.
    pub sql: u16,
    /// For other nodes.
    pub peer: u16,
    /// For the status page.
    pub http: u16,
}

/// The addresses of a cluster's nodes: as on as many hosts, 127.0.0.1, .2, .3, all with the same
/// ports; where this machine has only 127.0.0.1, successive ports of it.
///
/// # Errors
/// When the ports do not reach.
pub fn addresses(count: usize, ports: Ports) -> Result<Vec<NodeAddress>, Failure> {
    let has_hosts = (1..count).all(|index| host::try_bind((loopback(index), 0).into()).is_ok());
    place(count, ports, has_hosts)
}

/// The name of a node of one machine, counted from 1.
pub fn node_name(number: usize) -> String {
    format!("n{number}")
}

/// 127.0.0.1, 127.0.0.2, …
fn loopback(index: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, index as u8 + 1))
}

fn place(count: usize, ports: Ports, has_hosts: bool) -> Result<Vec<NodeAddress>, Failure> {
    let address = |port: u16, index: usize| -> Result<SocketAddr, Failure> {
        if has_hosts {
            return Ok((loopback(index), port).into());
        }
        let port = port.checked_add(index as u16);
        let port = port.ok_or("there are not enough ports for all nodes")?;
        Ok((loopback(0), port).into())
    };
    (0..count)
        .map(|index| {
            Ok(NodeAddress {
                id: index as u64 + 1,
                name: node_name(index + 1),
                sql_address: address(ports.sql, index)?,
                peer_address: address(ports.peer, index)?,
                http_address: address(ports.http, index)?,
                voter: true,
                zone: String::new(),
                priority: kv::PRIORITY_USUAL,
                key: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports {
        sql: 5433,
        peer: 6433,
        http: 7433,
    };

    fn sql_addresses(count: usize, ports: Ports, has_hosts: bool) -> Vec<String> {
        let nodes = place(count, ports, has_hosts).unwrap();
        nodes
            .iter()
            .map(|node| node.sql_address.to_string())
            .collect()
    }

    #[test]
    fn nodes_stand_as_on_hosts_or_on_successive_ports() {
        assert_eq!(
            sql_addresses(3, PORTS, true),
            ["127.0.0.1:5433", "127.0.0.2:5433", "127.0.0.3:5433"]
        );
        assert_eq!(
            sql_addresses(3, PORTS, false),
            ["127.0.0.1:5433", "127.0.0.1:5434", "127.0.0.1:5435"]
        );
        let last = Ports {
            sql: u16::MAX,
            ..PORTS
        };
        assert!(place(2, last, false).is_err());
    }

    #[test]
    fn files_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let cluster = Cluster {
            format: FORMAT,
            cluster: ClusterId(7).to_string(),
            incarnation: 1,
            begun_after: 0,
            private: true,
            nodes: place(3, PORTS, true).unwrap(),
        };
        let settings = [("synchronous_commit".to_owned(), "local".to_owned())].into();
        let route: Route = "n2-n3=127.0.0.1:9".parse().unwrap();
        write(dir.path(), &cluster, "ann", &settings, &[route], None).unwrap();
        assert_eq!(read_cluster(dir.path()).unwrap(), Some(cluster.clone()));
        let second = read_node(&node_dir(dir.path(), &cluster.nodes[1])).unwrap();
        assert_eq!(second.this().unwrap(), &cluster.nodes[1]);
        let via = "127.0.0.1:9".parse().unwrap();
        let expected = [(cluster.nodes[2].peer_address, via)];
        assert_eq!(second.routes().unwrap(), expected);
        let config = second.config().unwrap();
        assert_eq!((config.cluster, config.node), (ClusterId(7), NodeId(2)));
        assert_eq!((config.user.as_str(), config.settings), ("ann", settings));
        assert_eq!(config.members.len(), 3);
    }
}
