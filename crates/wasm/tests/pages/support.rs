//! Pages and their server on virtual time. Each page's instance has a thread, because an instance's state is that of a
//! thread here; only one of them runs at a time.

use bytes::Bytes;
use parlor_hub::{Config, Hub, Origin, Output};
use parlor_proto::{Carrier, ConnectionId, Instant, LinkKind, Packet};
use parlor_sync::value::{Map, Value};
use parlor_wasm::exports::{driver, module, play};
use parlor_wasm::memory;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval of a page's frames.
const FRAME_US: u64 = 5_000;

/// A map of these fields.
pub(crate) fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Value::Map(Map::from_pairs(fields).expect("each name stands once"))
}

/// A list of these values.
pub(crate) fn list<const N: usize>(values: [Value; N]) -> Value {
    Value::List(values.into())
}

/// Writes values into the in buffer of this thread's instance, and returns their length.
pub(crate) fn give<const N: usize>(values: [Value; N]) -> i32 {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| value.encode_wrapped(&mut bytes).expect("it is a value"));
    give_bytes(&bytes)
}

/// Writes bytes into the in buffer of this thread's instance, and returns their length.
pub(crate) fn give_bytes(bytes: &[u8]) -> i32 {
    let len = i32::try_from(bytes.len()).expect("tests pass little");
    assert_ne!(module::in_reserve(len), 0);
    memory::write(bytes);
    len
}

/// The values in the out buffer of this thread's instance.
pub(crate) fn taken() -> Vec<Value> {
    let mut bytes = Bytes::from(memory::read());
    let mut values = Vec::new();
    while !bytes.is_empty() {
        values.push(Value::decode_next(&mut bytes).expect("values go out"));
    }
    values
}

/// The one value in the out buffer of this thread's instance.
pub(crate) fn taken_one() -> Value {
    let [value] = <[Value; 1]>::try_from(taken()).expect("one value goes out");
    value
}

/// The code of the fault in the out buffer of this thread's instance.
pub(crate) fn fault() -> String {
    let fault = taken_one();
    assert!(matches!(fault.field("message"), Some(Value::Text(text)) if !text.is_empty()), "{fault}");
    text(&fault, "code").to_owned()
}

/// A text field of a map.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    match value.field(name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name} of {value} is {other:?}"),
    }
}

/// Checks the result of a call that cannot fail here.
pub(crate) fn ok(result: i32) -> i32 {
    assert_ne!(result, -1, "{:?}", taken());
    result
}

type Job = Box<dyn FnOnce() + Send>;
type Step = Arc<dyn Fn() + Send + Sync>;

/// An instance with a room, and its link.
pub(crate) struct Page {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// All events, oldest first.
    pub(crate) events: Vec<Value>,
    /// Whether it has a link.
    pub(crate) is_linked: bool,
    link: LinkKind,
    step: Option<Step>,
    connection: ConnectionId,
}

impl Page {
    fn new(link: LinkKind) -> Self {
        let (jobs, waiting) = sync_channel::<Job>(0);
        let thread = std::thread::spawn(move || waiting.into_iter().for_each(|job| job()));
        Page {
            jobs: Some(jobs),
            thread: Some(thread),
            events: Vec::new(),
            is_linked: false,
            link,
            step: None,
            connection: ConnectionId(0),
        }
    }

    /// Runs code in the thread of this page's instance.
    pub(crate) fn run<R: Send + 'static>(&self, act: impl FnOnce() -> R + Send + 'static) -> R {
        let (answer, answered) = sync_channel(1);
        let job: Job = Box::new(move || answer.send(act()).expect("the test waits"));
        self.jobs.as_ref().expect("it is open").send(job).expect("the thread waits for jobs");
        answered.recv().expect("no call panics")
    }

    /// What happened, by types, in order.
    pub(crate) fn types(&self) -> Vec<&str> {
        self.events.iter().map(|event| text(event, "type")).collect()
    }

    /// The last event of a type.
    pub(crate) fn last(&self, kind: &str) -> Option<&Value> {
        self.events.iter().rev().find(|event| text(event, "type") == kind)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a call panicked");
        }
    }
}

/// A hub, and pages with links to it.
pub(crate) struct Net {
    now_us: u64,
    hub: Hub,
    pub(crate) pages: Vec<Page>,
    connections: u64,
    by_connection: BTreeMap<ConnectionId, usize>,
}

impl Net {
    /// A hub that keeps seats.
    pub(crate) fn new() -> Self {
        Net {
            now_us: 1_000_000,
            hub: Hub::new(Config { dedicated: true, keeps: true, ..Config::new([7; 32]) }),
            pages: Vec::new(),
            connections: 0,
            by_connection: BTreeMap::new(),
        }
    }

    /// Opens a page with these options and links it to the hub.
    pub(crate) fn open(&mut self, options: Value, link: LinkKind) -> usize {
        let page = Page::new(link);
        page.run(move || {
            ok(module::open(give([options])));
            ok(driver::found(give([map([("server", "test".into())])]), 0));
        });
        self.pages.push(page);
        let index = self.pages.len() - 1;
        self.connect(index);
        index
    }

    /// Opens a room of the game "dots" with these further options, and waits until it is open.
    pub(crate) fn host<const N: usize>(&mut self, more: [(&str, Value); N]) -> usize {
        let host =
            self.open(with([("app", "dots".into()), ("intent", "host".into())], more), LinkKind::WebSocket);
        self.until("it hosts", |net| net.pages[host].last("open").is_some());
        host
    }

    /// Joins the room of another page with these further options, and waits until it is open.
    pub(crate) fn join<const N: usize>(&mut self, host: usize, more: [(&str, Value); N]) -> usize {
        let code = text(self.pages[host].last("open").expect("it is open"), "code").to_owned();
        let fixed = [("app", "dots".into()), ("intent", "join".into()), ("code", code.into())];
        let guest = self.open(with(fixed, more), LinkKind::Quic);
        self.until("it joins", |net| net.pages[guest].last("open").is_some());
        guest
    }

    /// Makes a link for a page.
    pub(crate) fn connect(&mut self, page: usize) {
        self.connections += 1;
        let connection = ConnectionId(self.connections);
        self.by_connection.insert(connection, page);
        let (now, link) = (self.now(), self.pages[page].link);
        self.hub.handle_connected(connection, link, Origin((page as u64 + 1) << 16), now);
        let it = &mut self.pages[page];
        (it.connection, it.is_linked) = (connection, true);
        let now_us = self.now_us();
        self.pages[page].run(move || ok(driver::connected(link.to_wire().into(), now_us)));
    }

    /// Breaks a page's link; both ends notice.
    pub(crate) fn cut(&mut self, page: usize) {
        let now = self.now();
        self.pages[page].is_linked = false;
        self.hub.handle_disconnected(self.pages[page].connection, now);
        let now_us = self.now_us();
        self.pages[page].run(move || ok(driver::disconnected(give(["the test cut it".into()]), now_us)));
    }

    /// Runs this in each step of a page.
    pub(crate) fn each_step(&mut self, page: usize, step: impl Fn() + Send + Sync + 'static) {
        self.pages[page].step = Some(Arc::new(step));
    }

    /// Runs code in a page.
    pub(crate) fn at<R: Send + 'static>(&self, page: usize, act: impl FnOnce() -> R + Send + 'static) -> R {
        self.pages[page].run(act)
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    /// The present instant, as pages pass it.
    #[allow(clippy::cast_precision_loss)] // it is small
    pub(crate) fn now_us(&self) -> f64 {
        self.now_us as f64
    }

    /// Lets time pass until this holds.
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&Net) -> bool) {
        for _ in 0..4_000 {
            if holds(self) {
                return;
            }
            self.frame();
        }
        let seen: Vec<_> = self.pages.iter().map(Page::types).collect();
        panic!("not within 20 s: {what}; the pages saw {seen:?}");
    }

    /// Lets this much time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.now() < until {
            self.frame();
        }
    }

    /// One frame of all pages, and what the hub does then.
    fn frame(&mut self) {
        self.now_us += FRAME_US;
        let now_us = self.now_us();
        for index in 0..self.pages.len() {
            let (step, is_linked) = (self.pages[index].step.clone(), self.pages[index].is_linked);
            let (events, packets) = self.pages[index].run(move || page_frame(now_us, step, is_linked));
            self.pages[index].events.extend(events);
            let (connection, now) = (self.pages[index].connection, self.now());
            packets.into_iter().for_each(|packet| self.hub.handle_packet(connection, packet, now));
        }
        let now = self.now();
        self.hub.handle_timeout(now);
        self.hub.flush(now);
        while let Some(output) = self.hub.poll_output() {
            self.obey(output);
        }
    }

    fn obey(&mut self, output: Output) {
        let now_us = self.now_us();
        match output {
            Output::Packet { connection, packet } => {
                let Some(page) = self.by_connection.get(&connection).copied() else { return };
                if self.pages[page].connection == connection && self.pages[page].is_linked {
                    self.pages[page].run(move || {
                        let len = give_bytes(&packet.bytes);
                        ok(driver::packet(carrier_number(packet.carrier), len, now_us));
                    });
                }
            }
            Output::Close { connection, .. } => {
                let Some(page) = self.by_connection.remove(&connection) else { return };
                if self.pages[page].connection == connection && self.pages[page].is_linked {
                    self.pages[page].is_linked = false;
                    self.pages[page].run(move || ok(driver::disconnected(give(["closed".into()]), now_us)));
                }
            }
            _ => {}
        }
    }
}

fn with<const N: usize, const M: usize>(fixed: [(&str, Value); N], more: [(&str, Value); M]) -> Value {
    let fields = fixed.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect();
    Value::Map(Map::from_pairs(fields).expect("each option stands once"))
}

/// What a page does in a frame: time, events, steps, packets.
fn page_frame(now_us: f64, step: Option<Step>, is_linked: bool) -> (Vec<Value>, Vec<Packet>) {
    if driver::next_timeout() <= now_us {
        ok(driver::timeout(now_us));
    }
    let mut events = Vec::new();
    while ok(play::poll(now_us)) == 1 {
        events.push(taken_one());
    }
    while ok(play::tick(now_us)) == 1 {
        step.iter().for_each(|step| step());
    }
    let mut packets = Vec::new();
    if !is_linked {
        return (events, packets);
    }
    loop {
        let carrier = match ok(driver::next_packet(now_us)) {
            0 => break,
            1 => Carrier::Datagram,
            2 => Carrier::Stream,
            _ => Carrier::Isolated,
        };
        packets.push(Packet { carrier, bytes: memory::read().into() });
    }
    (events, packets)
}

const fn carrier_number(carrier: Carrier) -> i32 {
    match carrier {
        Carrier::Datagram => 1,
        Carrier::Stream => 2,
        Carrier::Isolated => 3,
    }
}
