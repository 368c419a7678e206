//! Processes killed at random instants: acknowledged writes are there, and each commit is whole.
//!
//! The process is this test's own program; its environment tells it to write. It prints acknowledgements, and
//! is killed after a random number of them. A kill does not reveal a missing sync, so the second loop runs on
//! a disk that keeps only synced writes. It must find losses when the store does not sync.

use crate::boards::{name as board_name, new_score, sums};
use crate::common::{
    self, account, account_id, fresh_realm, new_room, notice, notices, random, room_id, state,
};
use crate::objects::new_object;
use crate::progress::{ACHIEVED_AT, add_kill};
use crate::saves::new_save;
use parlor_faultdisk::Disk;
use parlor_server::realm::Realm;
use parlor_services::store::{
    BoardNumber, Durability, Effects, Object, Options, SaveOutcome, Store, StoreError,
};
use parlor_social::{FriendState, FriendStep, Name, Relation, Replaces, Season, mark_of};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const WRITERS: u64 = 16;
const ROOMS: u64 = 4;
/// Notices of a room that go into one inbox, fewer than it holds.
const NOTICES_PER_INBOX: u64 = 100;
/// Lines of a process before it is killed, at most.
const LINES_MAX: u64 = 150;
/// What a process writes if nobody kills it: then its parent is gone.
const ROUNDS_MAX: u64 = 100_000;
/// Kills in each loop, unless `PARLOR_KILLS` says otherwise.
const KILLS: u64 = 6;
/// Within so many kills a store that does not sync must have lost something.
const KILLS_WITHOUT_SYNC: u64 = 10;

/// Slots of each player.
const SLOTS: u64 = 3;
/// The board with the sums.
const BOARD: &str = "points";

const ADDRESS: &str = "PARLOR_STORE_WRITER";
const APP: &str = "PARLOR_STORE_WRITER_APP";
const RUN: &str = "PARLOR_STORE_WRITER_RUN";
const DISK: &str = "PARLOR_STORE_WRITER_DISK";

fn kills() -> u64 {
    std::env::var("PARLOR_KILLS").map_or(KILLS, |text| text.parse().expect("PARLOR_KILLS is a number"))
}

/// The inbox that the notice of a version goes into.
fn inbox_of(room: &str, version: u64) -> String {
    format!("{room}/{}", version / NOTICES_PER_INBOX)
}

/// The process that is killed. Without its environment it is a writer of nothing.
#[tokio::test]
async fn writer_process() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let run = std::env::var(RUN).expect("a run");
    let realm = Realm::new(&std::env::var(APP).expect("an app"), "testing").expect("a realm");
    let mut options = Options::default();
    let _disk = std::env::var(DISK).ok().map(|durability| {
        if durability == "none" {
            options.durability = Durability::None;
        }
        let folder = PathBuf::from(address.trim_start_matches("sqlite://"));
        Disk::over(folder.parent().expect("a folder"), random()).expect("a disk")
    });
    say("started");
    let store = Store::open_with(&address, options).await.expect("a store");
    for room in 0..ROOMS {
        let room = new_room(&format!("room-{room}"), state(1, "", &[]));
        match store.put_room(&realm, room, Effects::default()).await {
            Ok(_) | Err(StoreError::Taken { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let board = store
        .put_board(&realm, &board_name(BOARD), b"{}".to_vec(), None, (1, Season(0), None))
        .await
        .expect("a board");
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            tokio::spawn(write_on(
                store.clone(),
                realm.clone(),
                board.number,
                format!("{run}-{writer}"),
                writer,
            ))
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer that does not fail");
    }
}

/// A line for the parent. Without one there is nobody to write for.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "\n{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

async fn write_on(store: Store, realm: Realm, board: BoardNumber, name: String, writer: u64) {
    store.create_account(&realm, &account(&name), None).await.expect("an account");
    for round in 0..ROUNDS_MAX {
        add_point(&store, &realm, board, &name, round + 1).await;
        say(&format!("sum {name} {}", round + 1));
        let slot = format!("slot-{}", round % SLOTS);
        let body = format!("{name}.{round}");
        match store
            .put_save(&realm, &account_id(&name), new_save(&slot, body.as_bytes()), Replaces::Any, 1)
            .await
        {
            Ok(SaveOutcome::Done(save)) => say(&format!("save {name} {slot} {} {body}", save.version)),
            other => panic!("{other:?}"),
        }
        add_kill(&store, &realm, &name, round + 1).await;
        say(&format!("kills {name} {}", round + 1));
        let object = new_object(Some(&name), "bag", body.as_bytes());
        let versions = store.put_objects(&realm, None, vec![object], 1).await.expect("a write");
        say(&format!("object {name} {} {body}", versions.expect("an object")[0]));
        // Its partner may have no account yet. Both ask, so that they become friends, and part again.
        let partner = format!("{}-{}", name.rsplit_once('-').expect("a run").0, writer ^ 1);
        let step = if round % 4 == 3 { FriendStep::Remove } else { FriendStep::Ask };
        let both = (&account_id(&name), &account_id(&partner));
        store.befriend(&realm, both, step, 1).await.expect("a write").ok();
        say(&format!("pair {name} {partner}"));
        let room = format!("room-{}", (writer + round) % ROOMS);
        let loaded = store.load_room(&realm, &room_id(&room)).await.expect("a read").expect("a room");
        let version = loaded.state.version + 1;
        let document = format!("{name}.{round}");
        let effects = notices(vec![notice(&inbox_of(&room, version), &document)]);
        let next = state(version, &document, &["ada"]);
        match store.commit_room(&realm, &room_id(&room), version - 1, next, effects).await {
            Ok(_) => say(&format!("room {room} {version} {document}")),
            Err(StoreError::Stale { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if round % 8 == 0 {
            store.create_account(&realm, &account(&document), None).await.expect("an account");
            say(&format!("account {document}"));
        }
    }
}

/// Adds one point to the sum of a player: its submission of this number, which counts once.
async fn add_point(store: &Store, realm: &Realm, board: BoardNumber, player: &str, number: u64) {
    let mut score = new_score(board, &sums(), player, 1);
    score.submission.id = Some(mark_of(&number.to_string()));
    store.submit_scores(realm, vec![score]).await.expect("a write").expect("a score");
}

/// What was acknowledged.
#[derive(Default)]
struct History {
    /// By room and version.
    commits: BTreeMap<(String, u64), String>,
    accounts: BTreeSet<String>,
    /// Points of each player.
    sums: BTreeMap<String, u64>,
    /// Kills of each player.
    kills: BTreeMap<String, u64>,
    /// The newest object of each player: its version and body.
    objects: BTreeMap<String, (u64, String)>,
    /// Players who have asked one another.
    pairs: BTreeSet<(String, String)>,
    /// The newest of each player and slot: its version and body.
    saves: BTreeMap<(String, String), (u64, String)>,
}

impl History {
    /// Takes what a process said. What is acknowledged twice with different words is a fault.
    fn add(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["room", room, version, document] => {
                let version: u64 = version.parse().map_err(|error| format!("`{line}`: {error}"))?;
                let before = self.commits.insert((room.to_owned(), version), document.to_owned());
                match before {
                    Some(before) => Err(format!("{room} {version} was won by {before} and by {document}")),
                    None => Ok(()),
                }
            }
            ["sum", player, points] => {
                let points = points.parse().map_err(|error| format!("`{line}`: {error}"))?;
                self.sums.insert(player.to_owned(), points);
                Ok(())
            }
            ["save", player, slot, version, body] => {
                let version = version.parse().map_err(|error| format!("`{line}`: {error}"))?;
                self.saves.insert((player.to_owned(), slot.to_owned()), (version, body.to_owned()));
                Ok(())
            }
            ["kills", player, kills] => {
                let kills = kills.parse().map_err(|error| format!("`{line}`: {error}"))?;
                self.kills.insert(player.to_owned(), kills);
                Ok(())
            }
            ["object", player, version, body] => {
                let version = version.parse().map_err(|error| format!("`{line}`: {error}"))?;
                self.objects.insert(player.to_owned(), (version, body.to_owned()));
                Ok(())
            }
            ["pair", one, other] => {
                self.pairs.insert((one.to_owned(), other.to_owned()));
                Ok(())
            }
            ["account", id] => {
                self.accounts.insert(id.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Holds a store against this: all that was acknowledged is there, and each version with its notice.
    async fn check(&self, store: &Store, realm: &Realm) -> Result<(), String> {
        let fault = |error: StoreError| error.to_string();
        for id in &self.accounts {
            if store.account(realm, &account_id(id)).await.map_err(fault)?.is_none() {
                return Err(format!("account {id} is lost"));
            }
        }
        for ((player, slot), (version, body)) in &self.saves {
            let name = Name::new(slot).expect("a name");
            // One more may have been under way: then this is the version before.
            let kept = store.save(realm, &account_id(player), &name, Some(*version)).await.map_err(fault)?;
            if kept.is_none_or(|(_, kept)| kept != body.as_bytes()) {
                return Err(format!("version {version} in {slot} of {player} is lost"));
            }
            let current = store.save(realm, &account_id(player), &name, None).await.map_err(fault)?;
            if current.is_none_or(|(save, _)| save.version < *version) {
                return Err(format!("{slot} of {player} went back behind version {version}"));
            }
        }
        for (player, (version, body)) in &self.objects {
            let key = new_object(Some(player), "bag", b"").key;
            let found = store.objects(realm, None, vec![key]).await.map_err(fault)?;
            let is_kept = |object: &Object| object.version > *version || object.body == body.as_bytes();
            if !found.first().is_some_and(is_kept) {
                return Err(format!("version {version} of the object of {player} is lost"));
            }
        }
        for (one, other) in &self.pairs {
            let state = async |one: &str, other: &str| {
                let page = store.friends_of(realm, &account_id(one), None, None, 100).await.map_err(fault)?;
                let friend = page.items.into_iter().find(|friend| friend.account.as_str() == other);
                Ok::<_, String>(friend.map(|friend| friend.state))
            };
            let relation = Relation { mine: state(one, other).await?, theirs: state(other, one).await? };
            let is_whole = matches!(
                (relation.mine, relation.theirs),
                (None, None)
                    | (Some(FriendState::Friend), Some(FriendState::Friend))
                    | (Some(FriendState::Asked), Some(FriendState::Asks))
                    | (Some(FriendState::Asks), Some(FriendState::Asked))
            );
            if !is_whole {
                return Err(format!("{one} and {other} are {relation:?}"));
            }
        }
        let rooms: BTreeSet<&String> = self.commits.keys().map(|(room, _)| room).collect();
        for room in rooms {
            self.check_room(store, realm, room).await?;
        }
        Ok(())
    }

    /// Each sum is what was acknowledged, or one more that was under way. That one is sent again, as a game
    /// would: it counts once, whether or not it was stored before the kill.
    async fn check_sums(&mut self, store: &Store, realm: &Realm) -> Result<(), String> {
        let fault = |error: StoreError| error.to_string();
        let Some(board) = store.board(realm, &board_name(BOARD)).await.map_err(fault)? else {
            return if self.sums.is_empty() { Ok(()) } else { Err("the board is lost".to_owned()) };
        };
        let seasons = store.board_seasons(board.number).await.map_err(fault)?;
        let stored = store.load_entries(board.number, Season(0), "").await.map_err(fault)?;
        let counted = seasons.first().map_or(0, |season| season.entries);
        if counted != stored.len() as u64 {
            return Err(format!("{} entries are counted as {counted}", stored.len()));
        }
        let stored: BTreeMap<String, i64> =
            stored.into_iter().map(|(player, key)| (player, key.score)).collect();
        for (player, points) in &mut self.sums {
            let held = stored.get(player).copied().unwrap_or_default().unsigned_abs();
            if !(*points..=*points + 1).contains(&held) {
                return Err(format!("the sum of {player} is {held}, and {points} were acknowledged"));
            }
            *points += 1;
            add_point(store, realm, board.number, player, *points).await;
            let entry = store.entry(board.number, Season(0), &account_id(player)).await.map_err(fault)?;
            if entry.map(|entry| entry.key.score.unsigned_abs()) != Some(*points) {
                return Err(format!("point {points} of {player} counted twice or not at all"));
            }
        }
        Ok(())
    }

    /// The same for kills, and an achievement is unlocked with the kill that reaches its goal.
    async fn check_kills(&mut self, store: &Store, realm: &Realm) -> Result<(), String> {
        let fault = |error: StoreError| error.to_string();
        let mut unlocked = 0;
        for (player, kills) in &mut self.kills {
            let id = account_id(player);
            let held = async || {
                let page = store.statistics_of(realm, &id, None, 10).await.map_err(fault)?;
                Ok::<_, String>(page.items.first().map_or(0, |own| own.value.unsigned_abs()))
            };
            let stored = held().await?;
            if !(*kills..=*kills + 1).contains(&stored) {
                return Err(format!("the kills of {player} are {stored}, and {kills} were acknowledged"));
            }
            *kills += 1;
            add_kill(store, realm, player, *kills).await;
            if held().await? != *kills {
                return Err(format!("kill {kills} of {player} counted twice or not at all"));
            }
            let progress = store.progress_of(realm, &id, None, 10).await.map_err(fault)?.items;
            let is_unlocked = progress.iter().any(|(_, progress)| progress.unlocked_ms.is_some());
            if is_unlocked != (*kills >= ACHIEVED_AT) {
                return Err(format!(
                    "{player} has {kills} kills, and its achievement is unlocked: {is_unlocked}"
                ));
            }
            unlocked += u64::from(is_unlocked);
        }
        let totals = store.achievement_totals(realm).await.map_err(fault)?;
        // A player whose first kill was not acknowledged may be counted, too.
        let players = totals.get("").copied().unwrap_or(0);
        if totals.get("killer").copied().unwrap_or(0) != unlocked || players < self.kills.len() as u64 {
            return Err(format!("{unlocked} have unlocked it, and it is counted as {totals:?}"));
        }
        Ok(())
    }

    async fn check_room(&self, store: &Store, realm: &Realm, room: &str) -> Result<(), String> {
        let fault = |error: StoreError| error.to_string();
        let found = store.load_room(realm, &room_id(room)).await.map_err(fault)?;
        let state = found.ok_or_else(|| format!("{room} is lost"))?.state;
        let mut told = BTreeMap::new();
        for first in (0..=state.version).step_by(usize::try_from(NOTICES_PER_INBOX).expect("small")) {
            let player = account_id(&inbox_of(room, first));
            let inbox = store.read_inbox(realm, &player, 0, 1000).await.map_err(fault)?;
            // The first inbox has no notices of versions 0 and 1, which nobody commits.
            let beginning = first.max(2);
            told.extend((beginning..).zip(inbox.notices.into_iter().map(|notice| notice.body)));
        }
        let versions: Vec<u64> = told.keys().copied().collect();
        if versions != (2..=state.version).collect::<Vec<_>>() {
            return Err(format!("{room} is at {} and has {} notices", state.version, versions.len()));
        }
        if told.get(&state.version).is_some_and(|body| *body != state.document) {
            return Err(format!("the document of {room} is not that of its version {}", state.version));
        }
        for ((_, version), document) in self.commits.iter().filter(|((of, _), _)| of == room) {
            if told.get(version).is_none_or(|body| body != document.as_bytes()) {
                return Err(format!("{room} {version}, acknowledged as {document}, is lost"));
            }
        }
        Ok(())
    }
}

struct Writer {
    address: String,
    realm: Realm,
    /// `full` or `none`: what the store promises on a disk that keeps only what was synced.
    disk: Option<&'static str>,
}

impl Writer {
    fn spawn(&self, run: u64) -> Child {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["kill::writer_process", "--exact", "--nocapture"]);
        command.env(ADDRESS, &self.address).env(APP, self.realm.app()).env(RUN, run.to_string());
        if let Some(disk) = self.disk {
            command.env(DISK, disk);
        }
        common::begin(command.stdout(Stdio::piped()).stderr(Stdio::null()))
    }

    /// Lets a process write, kills it after so many lines, and takes what it said.
    fn run(&self, run: u64, lines: u64, history: &mut History) -> Result<(), String> {
        let mut child = self.spawn(run);
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut acknowledged = 0;
        let mut is_killed = false;
        let mut result = Ok(());
        let mut line = String::new();
        while out.read_line(&mut line).expect("text") > 0 {
            // A line that was cut off by the kill was not said.
            let Some(said) = line.strip_suffix('\n') else { break };
            result = result.and_then(|()| history.add(said));
            let counts = ["room ", "account ", "sum ", "save ", "kills ", "object ", "pair "]
                .iter()
                .any(|kind| said.starts_with(kind));
            acknowledged += u64::from(counts);
            if !is_killed && acknowledged >= lines && (counts || said == "started") {
                child.kill().expect("a process to kill");
                is_killed = true;
            }
            line.clear();
        }
        child.wait().expect("an end");
        if is_killed { result } else { Err(format!("run {run} ended by itself")) }
    }

    /// Kills so many processes, and looks after each.
    async fn kill_loop(&self, kills: u64) -> Result<u64, String> {
        let seed = random();
        println!("kill loop with seed {seed}");
        let mut history = History::default();
        let mut state = seed;
        for run in 0..kills {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Some are killed while they open the store.
            let lines = if (state >> 60) < 4 { 0 } else { (state >> 33) % LINES_MAX };
            self.run(run, lines, &mut history)?;
            let store = Store::open(&self.address).await.map_err(|error| error.to_string())?;
            let mut checked = history.check(&store, &self.realm).await;
            if checked.is_ok() {
                checked = history.check_sums(&store, &self.realm).await;
            }
            if checked.is_ok() {
                checked = history.check_kills(&store, &self.realm).await;
            }
            // The next process takes the file's lock.
            store.close();
            checked.map_err(|fault| format!("after kill {run}: {fault}"))?;
        }
        let points: u64 = history.sums.values().chain(history.kills.values()).sum();
        let others = history.saves.len() + history.objects.len() + history.pairs.len();
        Ok((history.commits.len() + history.accounts.len() + others) as u64 + points)
    }
}

#[tokio::test]
async fn threat_28_a_kill_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer { address: common::address_in(folder.path()), realm: fresh_realm(), disk: None };
    let acknowledged = writer.kill_loop(kills()).await.unwrap();
    println!("SQLite: {} kills, {acknowledged} acknowledged, none lost", kills());
    assert!(acknowledged > 0);
    if let Some(scratch) = common::postgres().await {
        writer = Writer { address: scratch.address.clone(), realm: fresh_realm(), disk: None };
        let acknowledged = writer.kill_loop(kills()).await.unwrap();
        println!("PostgreSQL: {} kills, {acknowledged} acknowledged, none lost", kills());
        assert!(acknowledged > 0);
        scratch.remove().await;
    }
}

#[tokio::test]
async fn threat_28_on_a_disk_that_keeps_only_what_was_synced_nothing_is_lost_either() {
    let folder = tempfile::tempdir().unwrap();
    let address = common::address_in(folder.path());
    let writer = Writer { address, realm: fresh_realm(), disk: Some("full") };
    let acknowledged = writer.kill_loop(kills()).await.unwrap();
    println!("synced disk: {} kills, {acknowledged} acknowledged, none lost", kills());
    assert!(acknowledged > 0);
}

#[tokio::test]
async fn threat_28_without_syncs_that_disk_loses_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let address = common::address_in(folder.path());
    let writer = Writer { address, realm: fresh_realm(), disk: Some("none") };
    let fault = writer.kill_loop(KILLS_WITHOUT_SYNC).await.expect_err("it cannot have kept all");
    println!("found: {fault}");
    assert!(!fault.contains("ended by itself"), "{fault}");
}
