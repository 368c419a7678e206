//! The memory that store and database take while they read an inbox with large events.
//!
//! The figures count for the whole process, so this file has one test. The database has an allocator of its own, so the resident memory is
//! measured too, which only Linux tells.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_server::realm::Realm;
use parlor_services::store::{
    AccountId, Durability, Effects, INBOX_MAX, NOTICE_BYTES_MAX, NewNotice, NewRoom, Options, PAGE_BYTES_MAX,
    RoomId, RoomState, Stage, Store,
};
use peak_alloc::PeakAlloc;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Notices of each commit, of which the player has one.
const NOTICES: usize = 6;
/// For the store: a few pages of the answer. All events together have 120 MiB.
const STORE_BYTES_MAX: usize = 16 << 20;
/// For the database too, with its caches.
const ALL_BYTES_MAX: usize = 40 << 20;
/// Tells Linux to begin the peak of the resident memory anew.
const RESET_PEAK: &str = "5";

fn account(name: &str) -> AccountId {
    AccountId::new(name).unwrap()
}

/// Large notices for different players. The last one is ada's.
fn told() -> Effects {
    let notice = |number: usize| {
        let body: Arc<[u8]> = vec![b'a' + u8::try_from(number).unwrap(); NOTICE_BYTES_MAX].into();
        let to = if number + 1 == NOTICES { account("ada") } else { account(&format!("p{number}")) };
        NewNotice { to, kind: "moved".into(), body, at_ms: 9 }
    };
    Effects { notices: (0..NOTICES).map(notice).collect(), ..Effects::default() }
}

#[tokio::test]
async fn threat_44_an_inbox_of_large_events_is_read_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parlor.db");
    let address = path.to_str().unwrap();
    let realm = Realm::new("tanks", "production").unwrap();
    let options = || Options { durability: Durability::None, ..Options::default() };
    let store = Store::open_with(address, options()).await.unwrap();
    for number in 0..INBOX_MAX {
        let state = RoomState {
            version: 1,
            document: Vec::new(),
            joinable: false,
            summary: Vec::new(),
            stage: Stage::Playing,
            players: Vec::new(),
            deadline_ms: None,
        };
        let room = NewRoom {
            id: RoomId::new(&format!("r{number}")).unwrap(),
            code: None,
            game: "draughts".to_owned(),
            wanted: None,
            created_ms: 5,
            state,
        };
        store.put_room(&realm, room, told()).await.unwrap();
    }
    // The caches of the connections go with them.
    store.close();
    drop(store);
    let store = Store::open_with(address, options()).await.unwrap();
    let (calm, resident) = (ALLOCATOR.current_usage(), resident("VmRSS"));
    ALLOCATOR.reset_peak_usage();
    std::fs::write("/proc/self/clear_refs", RESET_PEAK).unwrap();
    let (mut seqs, mut after) = (Vec::new(), 0);
    while after < INBOX_MAX {
        let inbox = store.read_inbox(&realm, &account("ada"), after, 1_000).await.unwrap();
        assert_eq!((inbox.newest, inbox.dropped), (INBOX_MAX, 0));
        let bytes: usize = inbox.notices.iter().map(|notice| notice.body.len()).sum();
        assert!(bytes <= PAGE_BYTES_MAX + NOTICE_BYTES_MAX, "{bytes} bytes");
        seqs.extend(inbox.notices.iter().map(|notice| notice.seq));
        after = *seqs.last().unwrap();
    }
    assert_eq!(seqs, (1..=INBOX_MAX).collect::<Vec<_>>());
    let peak = ALLOCATOR.peak_usage().saturating_sub(calm);
    assert!(peak <= STORE_BYTES_MAX, "{peak} bytes of the store");
    let peak = crate::resident("VmHWM").saturating_sub(resident);
    assert!(peak <= ALL_BYTES_MAX, "{peak} bytes in all");
}

/// Bytes of this process that are resident, or were at most.
fn resident(what: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':')).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}
