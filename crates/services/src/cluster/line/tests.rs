use super::*;
use crate::cluster::nodes::Nodes;
use crate::store::{NodeFacts, NodeLoad, NodeRow, NodeState};
use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicUsize, Ordering};
use parlor_transport::Fingerprint;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

const LOOPBACK: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// A limit that only a hang reaches.
const HANG: Duration = Duration::from_secs(60);

/// The table of nodes, and the nodes that answer.
struct Table {
    rows: Vec<NodeRow>,
    tell: watch::Sender<Arc<Nodes>>,
    view: NodesView,
    tasks: JoinSet<()>,
}

fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

impl Table {
    fn new() -> Self {
        let (tell, view) = NodesView::new();
        Table { rows: Vec::new(), tell, view, tasks: JoinSet::new() }
    }

    /// Starts a node, which others reach at `at`, if not where it listens.
    async fn start(&mut self, id: &str, handlers: Handlers) -> Line {
        let open = OpenLine::open(LOOPBACK, self.view.clone()).await.unwrap();
        let line = open.line().clone();
        self.enter(id, line.address());
        self.tasks.spawn(open.serve(handlers));
        line
    }

    fn enter(&mut self, id: &str, at: LineAddress) {
        let facts = NodeFacts { address: String::new(), shards: 1, line: at.to_text(), build: String::new() };
        self.rows.retain(|row| row.id != name(id));
        self.rows.push(NodeRow {
            id: name(id),
            incarnation: 1,
            state: NodeState::Serving,
            lease_until_us: 0,
            has_lock: true,
            facts,
            load: NodeLoad::default(),
        });
        self.tell();
    }

    fn address(&self, id: &str) -> LineAddress {
        let nodes = self.view.get();
        nodes.serving_as(id).and_then(|node| node.line).unwrap()
    }

    fn declare_gone(&mut self, id: &str) {
        self.rows.iter_mut().filter(|row| row.id == name(id)).for_each(|row| row.state = NodeState::Gone);
        self.tell();
    }

    fn tell(&mut self) {
        self.rows.sort_by(|a, b| a.id.cmp(&b.id));
        self.tell.send_replace(Arc::new(Nodes::of(self.rows.clone(), 0)));
    }
}

/// Answers who asks, and what.
fn echo() -> Handlers {
    let mut handlers = Handlers::default();
    handlers.on("echo", async |from, body: Bytes| {
        Ok([from.as_str().as_bytes(), b": ", &body[..]].concat().into())
    });
    handlers.on("no", async |_, _| Err(Refusal::new(409, "not today")));
    handlers.on("large", async |_, _| Ok(vec![7; BODY_BYTES_MAX + 1].into()));
    handlers
}

/// Forwards connections to `to` and counts them. Ends them all when it is dropped.
async fn relay(to: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>, JoinSet<()>) {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let (addr, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let (counted, mut task) = (Arc::clone(&count), JoinSet::new());
    task.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut inner, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            connections.spawn(async move {
                let Ok(mut outer) = TcpStream::connect(to).await else { return };
                let _ = copy_bidirectional(&mut inner, &mut outer).await;
            });
        }
    });
    (addr, count, task)
}

impl Line {
    /// As [`Line::ask`], with a limit that does not depend on the machine's speed.
    async fn ask_within(
        &self,
        limit: Duration,
        node: &NodeName,
        kind: &'static str,
        question: Bytes,
    ) -> Result<Bytes, AskError> {
        self.0.connections.ask(limit, node, kind, question).await
    }
}

#[tokio::test]
async fn nodes_ask_each_other_and_know_who_asks() {
    let mut table = Table::new();
    let a = table.start("a", echo()).await;
    let b = table.start("b", echo()).await;
    let ask = async |line: &Line, node, kind| line.ask_within(HANG, &name(node), kind, "hello".into()).await;
    assert_eq!(ask(&a, "b", "echo").await, Ok("a: hello".into()));
    assert_eq!(ask(&b, "a", "echo").await, Ok("b: hello".into()));
    assert_eq!(ask(&a, "b", "no").await, Err(AskError::Refused(Refusal::new(409, "not today"))));
    let unknown = ask(&a, "b", "other").await;
    assert!(matches!(&unknown, Err(AskError::Refused(Refusal { status: 404, .. }))), "{unknown:?}");
    assert_eq!(ask(&a, "c", "echo").await, Err(AskError::NoSuchNode(name("c"))));
}

#[tokio::test]
async fn questions_one_after_the_other_need_one_connection() {
    let mut table = Table::new();
    let a = table.start("a", echo()).await;
    let b = table.start("b", echo()).await;
    let (addr, connections, relay_task) = relay(b.address().addr).await;
    table.enter("b", LineAddress { addr, ..b.address() });
    let ask = async || a.ask_within(HANG, &name("b"), "echo", "x".into()).await;
    for _ in 0..20 {
        assert_eq!(ask().await, Ok("a: x".into()));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    drop(relay_task);
    let cut = ask().await;
    assert!(matches!(cut, Err(AskError::Away { .. } | AskError::NoAnswer { .. })), "{cut:?}");
    // Another way to it.
    table.enter("b", b.address());
    assert_eq!(ask().await, Ok("a: x".into()));
}

#[tokio::test]
async fn a_question_that_waits_holds_no_other_up_and_ends_in_time() {
    let mut table = Table::new();
    let (heard, mut handlers) = (Arc::new(Notify::new()), echo());
    let hears = Arc::clone(&heard);
    handlers.on("wait", move |_, _| {
        hears.notify_one();
        core::future::pending()
    });
    let a = table.start("a", echo()).await;
    table.start("b", handlers).await;
    let waiting = tokio::spawn({
        let a = a.clone();
        async move { a.ask_within(Duration::from_millis(300), &name("b"), "wait", Bytes::new()).await }
    });
    heard.notified().await;
    assert_eq!(a.ask_within(HANG, &name("b"), "echo", "x".into()).await, Ok("a: x".into()));
    let waited = waiting.await.unwrap();
    assert!(matches!(waited, Err(AskError::NoAnswer { .. })), "{waited:?}");
}

#[tokio::test]
async fn threat_36_questions_and_answers_have_a_bound() {
    let mut table = Table::new();
    let a = table.start("a", echo()).await;
    table.start("b", echo()).await;
    let long = Bytes::from(vec![1; BODY_BYTES_MAX + 1]);
    let asked = a.ask_within(HANG, &name("b"), "echo", long).await;
    assert!(matches!(asked, Err(AskError::Away { .. })), "{asked:?}");
    let answered = a.ask_within(HANG, &name("b"), "large", Bytes::new()).await;
    assert!(matches!(answered, Err(AskError::Refused(Refusal { status: 507, .. }))), "{answered:?}");
    // From a node that keeps no bound of its own.
    let careless = Identity::generate(&["parlor-node"]).unwrap();
    let addr = SocketAddr::from(([127, 0, 0, 1], 9));
    table.enter("c", LineAddress { addr, fingerprint: careless.fingerprint() });
    let head =
        format!("POST /line/v1/echo HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", BODY_BYTES_MAX + 1);
    let b = table.address("b");
    let stream = TcpStream::connect(b.addr).await.unwrap();
    let tls = MutualTls::new(&careless, |_| false);
    let mut stream = tls.connect(stream, b.addr, b.fingerprint).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // The answer may come before the whole question.
    let _ = stream.write_all(&vec![1; BODY_BYTES_MAX + 1]).await;
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 413");
}

/// Sends a request of HTTP to a line with this certificate, and reads until the end.
async fn read_as(identity: &Identity, to: LineAddress) -> Result<Vec<u8>, String> {
    let tls = MutualTls::new(identity, |_| false);
    let stream = TcpStream::connect(to.addr).await.unwrap();
    let connected = tls.connect(stream, to.addr, to.fingerprint).await;
    let mut stream = connected.map_err(|error| error.to_string())?;
    let request = b"POST /line/v1/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    let mut got = Vec::new();
    stream.write_all(request).await.map_err(|error| error.to_string())?;
    stream.read_to_end(&mut got).await.map_err(|error| error.to_string())?;
    Ok(got)
}

#[tokio::test]
async fn threat_36_who_is_no_node_is_refused_before_a_byte_of_http_is_read() {
    let mut table = Table::new();
    let (asked, mut handlers) = (Arc::new(AtomicUsize::new(0)), Handlers::default());
    let counts = Arc::clone(&asked);
    handlers.on("echo", move |_, _| {
        counts.fetch_add(1, Ordering::SeqCst);
        core::future::ready(Ok(Bytes::new()))
    });
    let b = table.start("b", handlers).await;
    let stranger = Identity::generate(&["parlor-node"]).unwrap();
    assert!(read_as(&stranger, b.address()).await.is_err());
    // By the handshake: it has said nothing yet.
    let stream = TcpStream::connect(b.address().addr).await.unwrap();
    let tls = MutualTls::new(&stranger, |_| false);
    let mut stream = tls.connect(stream, b.address().addr, b.address().fingerprint).await.unwrap();
    let refused = stream.read_u8().await.unwrap_err().to_string();
    assert!(refused.contains("alert"), "{refused}");
    // Without TLS.
    let mut plain = TcpStream::connect(b.address().addr).await.unwrap();
    plain.write_all(b"POST /line/v1/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let mut got = Vec::new();
    let _ = plain.read_to_end(&mut got).await;
    assert!(!got.starts_with(b"HTTP"), "{got:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    // The same certificate, once the table has it.
    let address = LineAddress { addr: LOOPBACK, fingerprint: stranger.fingerprint() };
    table.enter("c", LineAddress { addr: SocketAddr::from(([127, 0, 0, 1], 9)), ..address });
    let tls = MutualTls::new(&stranger, |_| false);
    let stream = TcpStream::connect(b.address().addr).await.unwrap();
    let mut known = tls.connect(stream, b.address().addr, b.address().fingerprint).await.unwrap();
    let request = b"POST /line/v1/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    known.write_all(request).await.unwrap();
    let mut first = [0; 12];
    known.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // A node that is declared gone is cut off, and is a stranger from then on.
    table.declare_gone("c");
    let _ = timeout(HANG, known.read_to_end(&mut Vec::new())).await.expect("the node is cut off");
    assert!(read_as(&stranger, b.address()).await.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_node_that_started_anew_is_asked_by_its_present_certificate_alone() {
    let mut table = Table::new();
    let a = table.start("a", echo()).await;
    let old = table.start("b", echo()).await;
    let ask = async || a.ask_within(HANG, &name("b"), "echo", "x".into()).await;
    assert_eq!(ask().await, Ok("a: x".into()));
    // Another program has its port.
    let other = Fingerprint([9; 32]);
    table.enter("b", LineAddress { fingerprint: other, ..old.address() });
    let asked = ask().await;
    assert!(matches!(asked, Err(AskError::Away { .. })), "{asked:?}");
    table.start("b", echo()).await;
    assert_eq!(ask().await, Ok("a: x".into()));
}

#[tokio::test]
async fn a_line_without_an_address_is_refused() {
    let (_tell, view) = NodesView::new();
    let refused = OpenLine::open("0.0.0.0:0".parse().unwrap(), view).await;
    assert!(matches!(refused.err(), Some(LineError::Unspecified(_))));
}
