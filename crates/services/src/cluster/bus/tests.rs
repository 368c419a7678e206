//! The contract of all carriers: memory, PostgreSQL and NATS, each where its server is.

use super::address::BusAddress;
use super::envelope::{AGE_MAX, Key, PAYLOAD_MAX, Sender};
use super::memory::Memory;
use super::nats::Nats;
use super::notify::Notify;
use super::run::NowMs;
use super::*;
use crate::store::Options;
use core::sync::atomic::AtomicI64;
use core::time::Duration;
use futures_util::FutureExt;
use parlor_server::embed::unix_ms;
use parlor_testing::{NatsServer, nats_programs, postgres, within};
use serde_json::value::RawValue;

/// A carrier under test, and a switch that cuts its connections.
#[derive(Clone)]
struct Rig {
    carrier: Arc<dyn Carrier>,
    is_cut: watch::Sender<bool>,
}

/// A node's end of the bus.
struct End {
    bus: Bus,
    hints: mpsc::Receiver<Hint>,
    /// Moves its clock.
    skew_ms: Arc<AtomicI64>,
}

/// A session that can be cut.
struct Cuttable(Box<dyn Session>, watch::Receiver<bool>);

fn key() -> Key {
    Key::new(b"the key of the store")
}

fn cut() -> BusError {
    BusError::Away("it is cut".to_owned())
}

impl Carrier for Rig {
    fn open(&self) -> BoxFuture<'_, Result<Box<dyn Session>, BusError>> {
        async {
            let is_cut = self.is_cut.subscribe();
            let session = if *is_cut.borrow() { Err(cut()) } else { self.carrier.open().await };
            Ok(Box::new(Cuttable(session?, is_cut)) as Box<dyn Session>)
        }
        .boxed()
    }

    fn payload_max(&self) -> usize {
        self.carrier.payload_max()
    }
}

impl Session for Cuttable {
    fn send<'a>(&'a mut self, payloads: &'a [String]) -> BoxFuture<'a, Result<(), BusError>> {
        if *self.1.borrow() { core::future::ready(Err(cut())).boxed() } else { self.0.send(payloads) }
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Received, BusError>> {
        async {
            tokio::select! {
                _ = self.1.wait_for(|is_cut| *is_cut) => Err(cut()),
                received = self.0.receive() => received,
            }
        }
        .boxed()
    }

    fn check(&mut self) -> BoxFuture<'_, Result<(), BusError>> {
        self.0.check()
    }
}

impl Rig {
    fn new(carrier: impl Carrier) -> Self {
        Rig { carrier: Arc::new(carrier), is_cut: watch::Sender::new(false) }
    }

    async fn node(&self, node: &str) -> End {
        let skew_ms = Arc::<AtomicI64>::default();
        let moved = Arc::clone(&skew_ms);
        let now_ms: NowMs = Arc::new(move || unix_ms().saturating_add_signed(moved.load(Ordering::Relaxed)));
        let start = u64::from_le_bytes(embed::random().unwrap());
        let ends = (key(), Sender::new(node, start));
        let (bus, hints) = Bus::over(&Handle::current(), Box::new(self.clone()), ends, now_ms);
        let end = End { bus, hints, skew_ms };
        end.is_up(true).await;
        end
    }

    /// Sends a payload as a stranger.
    async fn inject(&self, payload: String) {
        let mut session = self.carrier.open().await.unwrap();
        session.send(&[payload]).await.unwrap();
        // What was sent has left when the answer to this is there.
        session.check().await.unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(50), session.receive()).await;
    }
}

impl End {
    async fn counts(&self, what: impl Fn(BusCounts) -> bool) {
        within(async {
            while !what(self.bus.counts()) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn is_up(&self, is_up: bool) {
        self.counts(|counts| counts.is_up == is_up).await;
    }

    fn tell(&self, seq: u64) {
        self.bus.tell(notices(seq, 1, Some("\"short\"")));
    }

    /// The number of the next notice, and whether it has a text.
    async fn hears(&mut self) -> (u64, bool) {
        match within(self.hints.recv()).await {
            Some(Hint::Notices(Notices { to, notice, .. })) => (to[0].1, notice.is_some()),
            other => panic!("{other:?}"),
        }
    }
}

fn notices(seq: u64, receivers: usize, notice: Option<&str>) -> Hint {
    let to = (0..receivers).map(|of| Receiver(format!("{of:064}"), seq)).collect();
    let notice = notice.map(|text| RawValue::from_string(text.to_owned()).unwrap());
    Hint::Notices(Notices { realm: "tanks/production".to_owned(), to, notice })
}

async fn what_one_node_tells_the_others_hear_in_order_and_not_itself(rig: &Rig) {
    let (mut a, mut b, mut c) = (rig.node("a").await, rig.node("b").await, rig.node("c").await);
    for seq in 1..=300 {
        a.tell(seq);
        if seq % 100 == 0 {
            // More than wait at once is not promised.
            a.counts(|counts| counts.told == seq).await;
        }
    }
    for end in [&mut b, &mut c] {
        for seq in 1..=300 {
            assert_eq!(end.hears().await, (seq, true));
        }
    }
    b.tell(301);
    assert_eq!(a.hears().await, (301, true));
    assert_eq!(c.hears().await, (301, true));
    assert!(b.hints.try_recv().is_err() && a.hints.try_recv().is_err());
    let told = BusCounts { is_up: true, told: 300, heard: 1, ..BusCounts::default() };
    assert_eq!(a.bus.counts(), told);
}

async fn what_is_too_large_says_that_there_is_something_to_read(rig: &Rig) {
    let (a, mut b) = (rig.node("a").await, rig.node("b").await);
    let payload_max = rig.payload_max().min(PAYLOAD_MAX);
    let text = |len: usize| format!("\"{}\"", "x".repeat(len));
    a.bus.tell(notices(1, hint::RECEIVERS_MAX, Some(&text(payload_max))));
    assert_eq!(b.hears().await, (1, false));
    a.bus.tell(notices(2, 1, Some(&text(payload_max - 500))));
    assert_eq!(b.hears().await, (2, true));
}

async fn telling_never_waits_and_what_is_dropped_makes_sweeps_due(rig: &Rig) {
    let (a, mut b) = (rig.node("a").await, rig.node("b").await);
    a.tell(1);
    assert_eq!(b.hears().await, (1, true));
    let mut missed = b.bus.missed();
    missed.mark_unchanged();
    // No other task runs meanwhile: the queue overflows.
    let drops = 50;
    for seq in 2..=1 + WAITING_MAX as u64 + drops {
        a.tell(seq);
    }
    assert!(a.bus.counts().untold >= 1);
    for seq in 2..=1 + WAITING_MAX as u64 {
        assert_eq!(b.hears().await, (seq, true));
    }
    a.tell(5_000);
    assert_eq!(b.hears().await, (5_000, true));
    within(missed.changed()).await.unwrap();
    assert_eq!(b.bus.counts().unheard, a.bus.counts().untold);
}

async fn an_outage_is_over_by_itself_and_makes_sweeps_due(rig: &Rig) {
    let (a, mut b) = (rig.node("a").await, rig.node("b").await);
    a.tell(1);
    assert_eq!(b.hears().await, (1, true));
    let mut missed = b.bus.missed();
    missed.mark_unchanged();
    rig.is_cut.send_replace(true);
    a.is_up(false).await;
    b.is_up(false).await;
    a.tell(2);
    a.counts(|counts| counts.untold == 1).await;
    rig.is_cut.send_replace(false);
    a.is_up(true).await;
    b.is_up(true).await;
    within(missed.changed()).await.unwrap();
    a.tell(3);
    assert_eq!(b.hears().await, (3, true), "what was told during the outage does not come later");
}

async fn hints_of_strangers_change_nothing(rig: &Rig) {
    let (a, mut b) = (rig.node("a").await, rig.node("b").await);
    let stranger = Sender::new("a", 7);
    let seal = |key: &Key, hint: &Hint| key.seal(&stranger, (1, unix_ms()), hint).unwrap();
    let hint = notices(9, 1, Some("\"forged\""));
    let largest = rig.payload_max().min(PAYLOAD_MAX);
    for payload in [
        "{}".to_owned(),
        "x".repeat(largest),
        seal(&Key::new(b"another cluster's"), &hint),
        seal(&key(), &hint).replace("forged", "f0rged"),
        "ä".to_owned(),
    ] {
        let before = b.bus.counts().ignored;
        rig.inject(payload).await;
        b.counts(|counts| counts.ignored == before + 1).await;
    }
    a.tell(1);
    assert_eq!(b.hears().await, (1, true), "it is the first that is heard");
    assert_eq!(b.bus.counts().unheard, 0);
}

async fn what_arrives_late_is_ignored_and_makes_sweeps_due(rig: &Rig) {
    let (a, mut b) = (rig.node("a").await, rig.node("b").await);
    let mut missed = b.bus.missed();
    missed.mark_unchanged();
    a.skew_ms.store(-i64::try_from(AGE_MAX.as_millis()).unwrap() - 1, Ordering::Relaxed);
    a.tell(1);
    within(missed.changed()).await.unwrap();
    b.counts(|counts| counts.ignored == 1).await;
    a.skew_ms.store(0, Ordering::Relaxed);
    a.tell(2);
    assert_eq!(b.hears().await, (2, true));
}

/// What every carrier keeps.
async fn keeps_the_contract(carrier: impl Carrier) {
    let rig = Rig::new(carrier);
    what_one_node_tells_the_others_hear_in_order_and_not_itself(&rig).await;
    what_is_too_large_says_that_there_is_something_to_read(&rig).await;
    telling_never_waits_and_what_is_dropped_makes_sweeps_due(&rig).await;
    an_outage_is_over_by_itself_and_makes_sweeps_due(&rig).await;
    hints_of_strangers_change_nothing(&rig).await;
    what_arrives_late_is_ignored_and_makes_sweeps_due(&rig).await;
}

#[tokio::test]
async fn threat_40_memory_keeps_the_contract() {
    keeps_the_contract(Memory::new()).await;
}

#[tokio::test]
async fn threat_40_postgresql_keeps_the_contract() {
    let Some(scratch) = postgres().await else { return };
    let options = Options { node: Some("a".parse().unwrap()), ..Options::default() };
    let store = Store::open_with(&scratch.address, options).await.unwrap();
    keeps_the_contract(Notify::checked(&store).await.unwrap()).await;
    store.close();
    scratch.remove().await;
}

#[tokio::test]
async fn threat_40_each_nats_keeps_the_contract() {
    for program in nats_programs() {
        let server = NatsServer::start(&program, &[]);
        let address = server.address().parse::<BusAddress>().unwrap();
        keeps_the_contract(Nats::new(&address, &key()).unwrap()).await;
    }
}

#[tokio::test]
async fn connections_that_postgresql_ends_are_opened_again() {
    let Some(scratch) = postgres().await else { return };
    let options = Options { node: Some("a".parse().unwrap()), ..Options::default() };
    let store = Store::open_with(&scratch.address, options).await.unwrap();
    let rig = Rig::new(Notify::checked(&store).await.unwrap());
    let (a, mut b) = (rig.node("a").await, rig.node("b").await);
    let (mut of_a, mut of_b) = (a.bus.missed(), b.bus.missed());
    of_a.mark_unchanged();
    of_b.mark_unchanged();
    assert!(scratch.end_connections().await >= 2);
    within(of_a.changed()).await.unwrap();
    within(of_b.changed()).await.unwrap();
    a.tell(1);
    assert_eq!(b.hears().await, (1, true));
    store.close();
    scratch.remove().await;
}

#[tokio::test]
async fn a_nats_that_is_started_again_is_found_again() {
    for program in nats_programs() {
        let server = NatsServer::start(&program, &[]);
        let address = server.address().parse::<BusAddress>().unwrap();
        let rig = Rig::new(Nats::new(&address, &key()).unwrap());
        let (a, mut b) = (rig.node("a").await, rig.node("b").await);
        let (mut of_a, mut of_b) = (a.bus.missed(), b.bus.missed());
        of_a.mark_unchanged();
        of_b.mark_unchanged();
        let _server = server.restart();
        within(of_a.changed()).await.unwrap();
        within(of_b.changed()).await.unwrap();
        a.tell(1);
        assert_eq!(b.hears().await, (1, true));
    }
}

#[tokio::test]
async fn nats_with_tls_is_trusted_by_its_certificate_alone() {
    let Ok(folder) = std::env::var("PARLOR_NATS_TLS") else { return };
    for program in nats_programs() {
        let (certificate, key_file) = (format!("{folder}/certificate"), format!("{folder}/key"));
        let tls = ["--tls", "--tlscert", &certificate, "--tlskey", &key_file];
        let server = NatsServer::start(&program, &tls);
        let port = server.place.rsplit_once(':').unwrap().1;
        let open = async |address: String| {
            let nats = Nats::new(&address.parse().unwrap(), &key()).unwrap();
            within(nats.open()).await.map(drop).map_err(|error| error.to_string())
        };
        let user = "ada:s3cret%3A";
        open(format!("tls://{user}@localhost:{port}?sslrootcert={certificate}")).await.unwrap();
        let refused = [
            (format!("tls://{user}@localhost:{port}"), "certificate"),
            (format!("tls://{user}@127.0.0.1:{port}?sslrootcert={certificate}"), "certificate"),
            (format!("nats://{user}@localhost:{port}"), "tls://"),
            (format!("tls://ada:wrong@localhost:{port}?sslrootcert={certificate}"), "Authorization"),
        ];
        for (address, why) in refused {
            let error = open(address.clone()).await.unwrap_err();
            assert!(error.contains(why), "{program}, {address}: {error}");
        }
    }
}
