//! Stores to test, and rooms for them.

use parlor_server::realm::Realm;
use parlor_services::store::{
    Account, AccountId, AccountKind, Effects, NewNotice, NewRoom, Options, Role, RoomId, RoomState, Stage,
    Store,
};
pub(crate) use parlor_testing::postgres;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

/// Runs a test on each store there is, in a realm that nobody else uses.
pub(crate) async fn on_each(test: impl AsyncFn(Store, Realm)) {
    on_each_with(Options::default(), test).await;
}

/// The same, with other options than the default ones.
pub(crate) async fn on_each_with(options: Options, test: impl AsyncFn(Store, Realm)) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open_in(folder.path(), options.clone()).await;
    test(store, fresh_realm()).await;
    if let Some(scratch) = postgres().await {
        let store = Store::open_with(&scratch.address, options).await.expect("a PostgreSQL store");
        test(store, fresh_realm()).await;
        scratch.remove().await;
    }
}

pub(crate) fn address_in(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("parlor.db").display())
}

/// Begins a process. Until it runs its program it has the locks of all files that are open here.
pub(crate) fn begin(command: &mut Command) -> Child {
    let _in_turn = BEGINS.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().expect("a process")
}

/// Waits until no process that has begun has a lock of a store that is closed here.
pub(crate) fn lock_is_free() {
    drop(BEGINS.lock().unwrap_or_else(PoisonError::into_inner));
}

static BEGINS: Mutex<()> = Mutex::new(());

/// Opens the store in a folder, also one that was closed here.
pub(crate) async fn open_in(folder: &Path, options: Options) -> Store {
    lock_is_free();
    Store::open_with(&address_in(folder), options).await.expect("a store")
}

pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("randomness");
    u64::from_le_bytes(bytes)
}

pub(crate) fn fresh_realm() -> Realm {
    Realm::new(&format!("test-{:016x}", random()), "testing").expect("a realm")
}

pub(crate) fn account_id(text: &str) -> AccountId {
    AccountId::new(text).expect("an account's id")
}

pub(crate) fn room_id(text: &str) -> RoomId {
    RoomId::new(text).expect("a room's id")
}

pub(crate) fn account(id: &str) -> Account {
    Account {
        id: account_id(id),
        kind: AccountKind::Guest,
        role: Role::Player,
        display_name: format!("the name of {id}"),
        created_ms: 1_000,
    }
}

pub(crate) fn state(version: u64, document: &str, players: &[&str]) -> RoomState {
    RoomState {
        version,
        document: document.as_bytes().to_vec(),
        joinable: true,
        summary: format!("summary of {version}").into_bytes(),
        stage: Stage::Playing,
        players: players.iter().map(|id| account_id(id)).collect(),
        deadline_ms: None,
    }
}

pub(crate) fn new_room(id: &str, state: RoomState) -> NewRoom {
    NewRoom { id: room_id(id), code: None, game: "draughts".to_owned(), wanted: None, created_ms: 5, state }
}

pub(crate) fn notice(to: &str, body: &str) -> NewNotice {
    NewNotice { to: account_id(to), kind: "your_turn".into(), body: body.as_bytes().into(), at_ms: 9 }
}

pub(crate) fn notices(notices: Vec<NewNotice>) -> Effects {
    Effects { notices, ..Effects::default() }
}
