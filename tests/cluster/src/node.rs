//! Nodes, and what is asked of them.

use crate::gate::{Gate, Step};
use crate::postgres::Postgres;
use crate::relay::Relay;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use parlor_server::admission::SigningKey;
use parlor_services::operator_token;
use parlor_services::store::Role;
use parlor_testing::{HANG, Scratch, exchange, postgres, postgres_at, within};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{interval, timeout};
use tokio_postgres::NoTls;

/// How often a node is asked what it sees: each answer takes time from the others.
const ASKED: Duration = Duration::from_millis(20);

/// A cluster on a schema of its own.
pub struct Cluster {
    /// Its schema.
    pub scratch: Scratch,
    key: SigningKey,
    folder: TempDir,
    server: PathBuf,
}

/// A process of `parlor serve --node`. It is killed when this is dropped.
pub struct Node {
    /// Its name.
    pub name: String,
    /// The port of its games and services.
    pub port: u16,
    /// The way to its store.
    pub relay: Relay,
    child: Child,
    /// It would stop at a full pipe.
    _output: Lines<BufReader<ChildStdout>>,
    token: String,
}

impl Cluster {
    /// Makes one, if there is a PostgreSQL server.
    pub async fn new() -> Option<Self> {
        Some(Self::on(&std::env::var("PARLOR_POSTGRES").unwrap_or_default(), postgres().await?))
    }

    /// Makes one on a PostgreSQL server of its own.
    pub async fn at(server: &Postgres) -> Self {
        Self::on(&server.address, postgres_at(&server.address).await)
    }

    fn on(server: &str, scratch: Scratch) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = SigningKey::generate().unwrap();
        key.write_new(&folder.path().join("operator")).unwrap();
        Cluster { scratch, key, folder, server: socket_of(server) }
    }

    /// Connects again, after a restart of the server.
    pub async fn connect_again(&mut self, server: &Postgres) {
        let (operator, connection) = tokio_postgres::connect(&server.address, NoTls).await.unwrap();
        tokio::spawn(connection);
        self.scratch.operator = operator;
    }

    /// Starts a node that ends at once, and waits until it holds its lease.
    pub async fn start(&self, name: &str) -> Node {
        self.start_with(name, &["--drain-time", "0"]).await
    }

    /// Starts a node with more options, and waits until it holds its lease.
    pub async fn start_with(&self, name: &str, options: &[&str]) -> Node {
        self.start_as(name, options, &[]).await
    }

    /// Starts a node that ends at once and whose time of day is wrong, by `+1h` for example.
    pub async fn start_wrong_by(&self, name: &str, wrong_by: &str) -> Node {
        let library = faketime().expect("libfaketime is there: apt-get install faketime");
        let env = [
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME", wrong_by),
            // The time since the machine has started stays right.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ];
        self.start_as(name, &["--drain-time", "0"], &env).await
    }

    async fn start_as(&self, name: &str, options: &[&str], env: &[(&str, &str)]) -> Node {
        let relay = Relay::to_socket(self.server.clone()).await;
        let store = format!(
            "postgres://parlor@{}/postgres?application_name={name}-{schema}&options=-csearch_path%3D{schema}",
            relay.addr,
            schema = self.scratch.schema
        );
        let folder = self.folder.path();
        let mut command = Command::new(program());
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1",
                "--port",
                "0",
                "--log",
                "warn",
                "--node",
                name,
                "--store",
                &store,
            ])
            .args(options)
            .arg("--operator-key")
            .arg(folder.join("operator.pub"))
            .env("PARLOR_REGISTRY", folder.join(name))
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = within(async {
            loop {
                let line = output.next_line().await.unwrap().expect("a server says where it listens");
                if let Some((_, port)) = line.split_once(" listens on port ") {
                    return port.parse().unwrap();
                }
            }
        })
        .await;
        let token = operator_token(&self.key, Role::Admin, "ops", "tanks", "production");
        let node = Node { name: name.to_owned(), port, relay, child, _output: output, token };
        node.until("it holds its lease", |nodes| nodes["standing"] == "held").await;
        node
    }

    /// Lets the other nodes reach the line of a node by a way that the test can cut.
    pub async fn relay_line(&self, node: &str) -> Relay {
        let schema = &self.scratch.schema;
        let read = format!("SELECT line FROM {schema}.nodes WHERE id = $1");
        let line: String = self.scratch.operator.query_one(&read, &[&node]).await.unwrap().get(0);
        let (addr, fingerprint) = line.split_once('#').unwrap();
        let relay = Relay::to_port(addr.parse().unwrap()).await;
        let write = format!("UPDATE {schema}.nodes SET line = $1 WHERE id = $2");
        let line = format!("{}#{fingerprint}", relay.addr);
        assert_eq!(self.scratch.operator.execute(&write, &[&line, &node]).await.unwrap(), 1);
        relay
    }

    /// Keeps the commits of a step of moves waiting.
    pub async fn gate(&self, step: Step) -> Gate {
        Gate::close(&self.scratch, step).await
    }

    /// Says that a node has another build than it has.
    pub async fn change_build(&self, node: &str) {
        let write = format!("UPDATE {}.nodes SET build = 'other' WHERE id = $1", self.scratch.schema);
        assert_eq!(self.scratch.operator.execute(&write, &[&node]).await.unwrap(), 1);
    }

    /// The value of a column of a node's row.
    pub async fn row(&self, node: &str, column: &str) -> i64 {
        let statement = format!("SELECT {column} FROM {}.nodes WHERE id = $1", self.scratch.schema);
        self.scratch.operator.query_one(&statement, &[&node]).await.unwrap().get(0)
    }

    /// For how long the database's server has run.
    pub async fn database_up_ms(&self) -> i64 {
        let statement =
            "SELECT (extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000)::bigint";
        self.scratch.operator.query_one(statement, &[]).await.unwrap().get(0)
    }

    /// Ends the session with a node's lock. Returns how many there were.
    pub async fn end_lock_session(&self, node: &str) -> usize {
        let statement = format!(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN {}.nodes n
                 ON l.objid = ((n.lock_number + 4294967296) % 4294967296)::oid
             WHERE l.locktype = 'advisory' AND l.classid = 7242697 AND n.id = $1",
            self.scratch.schema
        );
        self.scratch.operator.query(&statement, &[&node]).await.unwrap().len()
    }
}

impl Node {
    /// Where it is.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The status and the answer to a request of an operator.
    pub async fn ask(&self, method: &str, path: &str) -> (u16, Value) {
        let body = if method == "POST" { "{}" } else { "" };
        self.asking(method, path, body).await
    }

    /// Moves a room to another node. To wait for elsewhere.
    pub fn moving(&self, code: &str, to: &str) -> impl Future<Output = (u16, Value)> + Send + use<> {
        self.asking("POST", &format!("/admin/live/{code}/move"), &format!(r#"{{"to":"{to}"}}"#))
    }

    fn asking(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> impl Future<Output = (u16, Value)> + Send + use<> {
        let (token, host) = (&self.token, "Host: localhost\r\nConnection: close");
        let head = format!("{method} /v1{path} HTTP/1.1\r\n{host}\r\nAuthorization: Bearer {token}\r\n");
        let (addr, request) = (self.addr(), format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
        async move {
            let answer = exchange(addr, &request).await;
            (answer.status(), answer.json())
        }
    }

    /// Waits until no room has this code.
    pub async fn until_free(&self, code: &str) {
        let path = format!("/admin/where/{code}");
        within(async { while self.ask("GET", &path).await.0 == 200 {} }).await;
    }

    /// The nodes, as it sees them.
    pub async fn nodes(&self) -> Value {
        let (status, answer) = self.ask("GET", "/admin/nodes").await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Waits until the nodes are so, as it sees them.
    pub async fn until(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let mut asked = interval(ASKED);
        let waiting = async {
            loop {
                asked.tick().await;
                last = self.nodes().await;
                if is_it(&last) {
                    return last.clone();
                }
            }
        };
        match timeout(HANG, waiting).await {
            Ok(nodes) => nodes,
            Err(_) => panic!("{what} did not come true at {}: {last}", self.name),
        }
    }

    /// Waits until it sees another node in this state.
    pub async fn until_sees(&self, node: &str, state: &str) {
        self.until(&format!("{node} is {state}"), |nodes| state_of(nodes, node) == Some(state)).await;
    }

    /// Sends it a signal.
    pub async fn signal(&self, signal: &str) {
        let pid = self.child.id().expect("it runs").to_string();
        let status = Command::new("kill").args([&format!("-{signal}"), &pid]).status().await.unwrap();
        assert!(status.success());
    }

    /// Kills it, and waits for its end.
    pub async fn kill(&mut self) {
        within(self.child.kill()).await.unwrap();
    }

    /// Asks it to end, and waits for that.
    pub async fn end(mut self) {
        self.signal("TERM").await;
        self.ended().await;
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) {
        within(self.child.wait()).await.unwrap();
    }

    /// The status of its answer to a load balancer, and the answer.
    pub async fn ready(&self) -> (u16, Value) {
        let answer =
            exchange(self.addr(), "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .await;
        (answer.status(), answer.json())
    }
}

/// The state of a node in a list of them.
fn state_of<'a>(nodes: &'a Value, id: &str) -> Option<&'a str> {
    nodes["nodes"].as_array()?.iter().find(|node| node["id"] == id)?["state"].as_str()
}

/// The socket of the server of scratch-postgres.sh: `postgres://parlor@FOLDER:PORT/postgres`, the folder's slashes as %2F.
fn socket_of(server: &str) -> PathBuf {
    let place = server.split_once('@').unwrap().1.split('/').next().unwrap();
    let (folder, port) = place.rsplit_once(':').unwrap();
    PathBuf::from(folder.replace("%2F", "/")).join(format!(".s.PGSQL.{port}"))
}

/// The library that gives a process another time of day: `/usr/lib/MACHINE/faketime/libfaketimeMT.so.1`.
fn faketime() -> Option<PathBuf> {
    let machines = std::fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok);
    let mut libraries = machines.map(|machine| machine.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.exists())
}

/// The program that is tested.
fn program() -> PathBuf {
    let built = std::env::current_exe().unwrap();
    let built = built.ancestors().nth(2).unwrap().join("parlor");
    let program = std::env::var_os("PARLOR_BIN").map_or(built, PathBuf::from);
    assert!(program.exists(), "{} is missing: cargo build -p parlor-cli", program.display());
    program
}
