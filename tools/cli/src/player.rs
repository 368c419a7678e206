//! A member of a room of Magpies: the host runs the world, the others see its published state.

use crate::args::HeadlessArgs;
use crate::events::Teller;
use crate::find::OpenRoom;
use crate::game::{Badge, Bot, GemState, Input, PlayerState, RoundState, Scene, Script, Source, World};
use crate::report::{Report, Standing};
use crate::talk::Talk;
use crate::view::{Command, Controls};
use parlor::{ClosedReason, Event, Hints, HostStep, LeaveReason, LinkState, MemberId, Room, RoomCode, Step};
use ratatui::crossterm::event::KeyEvent;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The game's name towards the server.
pub(crate) const APP: &str = "magpies";

/// The source of a member's input.
#[derive(Debug)]
pub(crate) enum Pilot {
    /// A bot.
    Bot(Bot),
    /// A script, and the tick at which it began.
    Script { script: Script, began: Option<u32> },
    /// The keyboard.
    Hands(Controls),
}

impl Pilot {
    /// What it wants in a step. A bot at the host looks at the world itself.
    fn steer(&mut self, step: &Step<'_>, world: Option<&World>) -> Input {
        let (me, tick) = (step.local_id().map_or(0, |me| me.0), step.number().0);
        let scene = match (&self, world) {
            (Pilot::Bot(_), Some(world)) => world.scene(),
            (Pilot::Bot(_), None) => Scene::read(&Latest(step), tick),
            _ => Scene::default(),
        };
        self.input(&scene, me, tick)
    }

    fn input(&mut self, scene: &Scene, me: u32, tick: u32) -> Input {
        match self {
            Pilot::Bot(bot) => bot.think(scene, me),
            Pilot::Script { script, began } => {
                let began = *began.get_or_insert(tick);
                script.input_at(tick.wrapping_sub(began), crate::game::HZ)
            }
            Pilot::Hands(controls) => controls.next_input(),
        }
    }
}

/// What a member saw since it joined.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// All players that were ever in the room, by id.
    pub members: BTreeMap<u32, String>,
    /// Steps that were run.
    pub steps: u64,
    /// Something to tell the player, and when it happened.
    pub notice: Option<(String, Instant)>,
    /// How often it was tried to make the connection again that is lost.
    pub attempts: u32,
}

/// A member of a room of Magpies.
#[derive(Debug)]
pub(crate) struct Player {
    room: Room,
    pilot: Pilot,
    world: Option<World>,
    seen: Seen,
    closed: Option<ClosedReason>,
    /// It became the host since the last query.
    is_promoted: bool,
    /// Whether its leaving ends the room, because the server goes with it.
    ends_room: bool,
    /// The file into which the room is to be recorded once it is open.
    record: Option<PathBuf>,
    talk: Talk,
    teller: Option<Teller>,
    gaps: Gaps,
    /// Others wait for this room, until they know its code.
    opened: Option<OpenRoom>,
}

/// How long it took from one update of the state to the next.
#[derive(Debug, Default)]
struct Gaps {
    updates: u64,
    /// When the last came.
    last: Option<Instant>,
    /// The longest since it was asked for.
    longest: Duration,
}

impl Gaps {
    fn note(&mut self, updates: u64) {
        let now = Instant::now();
        if updates != self.updates {
            let since = self.last.replace(now).map_or(Duration::ZERO, |last| now - last);
            (self.updates, self.longest) = (updates, self.longest.max(since));
        }
    }

    /// The longest since the last call, including a running one.
    fn take(&mut self) -> Duration {
        let since = self.last.map_or(Duration::ZERO, |last| last.elapsed());
        core::mem::take(&mut self.longest).max(since)
    }
}

impl Player {
    /// A member that has not done anything yet.
    pub(crate) fn new(room: Room, pilot: Pilot) -> Self {
        let (talk, gaps) = (Talk::new(0), Gaps::default());
        Player {
            room,
            pilot,
            world: None,
            seen: Seen::default(),
            closed: None,
            is_promoted: false,
            ends_room: false,
            record: None,
            talk,
            teller: None,
            gaps,
            opened: None,
        }
    }

    /// Talks and tells as the command line says, under this name.
    pub(crate) fn speak_as(&mut self, name: &str, args: &HeadlessArgs) {
        self.talk = Talk::new(args.talk);
        self.teller = args.events.then(|| Teller::new(name));
    }

    /// Records the room into a file from its opening on.
    pub(crate) fn record(&mut self, path: Option<PathBuf>) {
        self.record = path;
    }

    /// The room.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// What was seen.
    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// How it stands now.
    pub(crate) fn standing(&self) -> Standing {
        Standing::of(&self.room, self.seen.steps, &self.talk)
    }

    /// The report on it.
    pub(crate) fn report(&self, name: &str, hash_at: Option<u64>) -> Report {
        Report::of(name, &self.room, &self.seen.members, self.standing(), self.closed(), hash_at)
    }

    /// Why it is over, if it is.
    pub(crate) fn closed(&self) -> Option<&ClosedReason> {
        self.closed.as_ref()
    }

    /// The room's code, while the room is open.
    pub(crate) fn open_code(&self) -> Option<RoomCode> {
        self.room.code().filter(|_| self.room.is_connected())
    }

    /// Whether it became the host of a room that another one opened, since this was last asked.
    pub(crate) fn take_promotion(&mut self) -> bool {
        std::mem::take(&mut self.is_promoted)
    }

    /// Updates of the state that were decoded, or on the host published.
    pub(crate) fn updates(&self) -> u64 {
        let diagnostics = self.room.diagnostics();
        diagnostics.updates_decoded + diagnostics.updates_published
    }

    /// Takes a key; one that is the program's comes back as a command.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Option<Command> {
        match &mut self.pilot {
            Pilot::Hands(controls) => controls.press(key),
            Pilot::Bot(_) | Pilot::Script { .. } => Controls::default().press(key),
        }
    }

    /// One round of a loop: takes what came and runs the steps that are due.
    pub(crate) fn turn(&mut self) -> anyhow::Result<()> {
        let done = self.round();
        if done.is_err() {
            // A room that closes during a round refuses the rest of it. Its end is an event, and no fault of the game's.
            self.listen()?;
            if self.closed().is_some() {
                return Ok(());
            }
        }
        done
    }

    fn round(&mut self) -> anyhow::Result<()> {
        self.listen()?;
        if !self.room.is_spectator() {
            self.talk.speak(&self.room)?;
        }
        self.tell()?;
        if let Some(opened) = &mut self.opened {
            let code = self.room.info().code.filter(|_| self.room.is_connected());
            if let Some(note) = opened.tend(code.map(|code| code.to_string()))? {
                self.opened = None;
                self.note(note);
            }
        }
        if let Some(path) = self.record.take_if(|_| self.room.is_connected()) {
            self.room.recording().start(path)?;
        }
        let Player { room, pilot, world, seen, .. } = self;
        while let Some(mut step) = room.step() {
            seen.steps += 1;
            if !step.is_spectator() {
                let input = pilot.steer(&step, world.as_ref());
                step.send_input(&input)?;
            }
            match step.host() {
                Some(mut host) => simulate(&mut host, world)?,
                // Whoever was the host goes on with another's world if it is the host again.
                None => *world = None,
            }
        }
        Ok(())
    }

    /// The room is for others who were found with this player.
    pub(crate) fn opens_for_others(&mut self, opened: Option<OpenRoom>) {
        self.opened = opened;
    }

    /// The room's server is in this process: the room ends when this member leaves.
    pub(crate) fn take_room_along(&mut self) {
        self.ends_room = true;
    }

    /// Leaves the room.
    pub(crate) fn leave(self) {
        if self.ends_room { self.room.stop() } else { self.room.leave() }
    }

    /// Says how it stands, if that is wanted and due.
    fn tell(&mut self) -> anyhow::Result<()> {
        self.gaps.note(self.updates());
        if self.teller.as_mut().is_some_and(Teller::is_due) {
            let (gap, standing) = (self.gaps.take(), self.standing());
            self.teller.iter().try_for_each(|teller| teller.stands(&standing, gap))?;
        }
        Ok(())
    }

    fn listen(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            self.teller.iter().try_for_each(|teller| teller.happened(&event))?;
            match event {
                Event::PlayerJoined(player) => {
                    if !player.is_me {
                        self.note(format!("{} is here", shown(&player.name, player.id)));
                    }
                    self.seen.members.insert(player.id.0, player.name);
                }
                Event::PlayerLeft { id, name, reason } => {
                    let name = shown(&name, id);
                    self.note(match reason {
                        LeaveReason::Left => format!("{name} left"),
                        reason => format!("{name} {reason}"),
                    });
                }
                Event::SpectatorJoined(player) => {
                    self.note(format!("{} watches", shown(&player.name, player.id)));
                }
                Event::SpectatorLeft { id, name, .. } => {
                    self.note(format!("{} watches no more", shown(&name, id)));
                }
                Event::PlayerLost { id, .. } => {
                    self.note(format!("{} lost the connection", self.name_of(id)))
                }
                Event::PlayerBack { id } => self.note(format!("{} is back", self.name_of(id))),
                Event::ConnectionLost { .. } => self.seen.attempts = 0,
                Event::Reconnecting { attempt } => self.seen.attempts = attempt,
                Event::Reconnected { state_resynced: false } => self.note("connected again".into()),
                Event::Reconnected { state_resynced: true } => {
                    self.talk.begin_anew();
                    self.note("connected again, and told everything anew".into());
                }
                Event::Message(message) => self.talk.hear(&message),
                Event::HostChanged { host, .. } => {
                    self.is_promoted = self.room.local_id() == Some(host);
                    let name = self.room.player(host).map(|player| player.name.clone()).unwrap_or_default();
                    self.note(match self.is_promoted {
                        true => "you are the host now".to_owned(),
                        false => format!("{} is the host now", shown(&name, host)),
                    });
                }
                Event::Closed(reason) => self.closed = Some(reason),
                _ => {}
            }
        }
        Ok(())
    }

    /// What is done about a connection that is lost, if it is.
    pub(crate) fn reconnecting(&self) -> Option<String> {
        let what = match self.room.link_state() {
            LinkState::Reconnecting => "reconnecting",
            LinkState::Resyncing => "joining the room again",
            LinkState::Connecting | LinkState::Connected | LinkState::Lost => return None,
        };
        Some(match self.seen.attempts {
            0 => what.into(),
            attempt => format!("{what}, attempt {attempt}"),
        })
    }

    fn name_of(&self, id: MemberId) -> String {
        shown(self.seen.members.get(&id.0).map_or("", String::as_str), id)
    }

    /// Tells the player something, for a few seconds.
    pub(crate) fn note(&mut self, text: String) {
        self.seen.notice = Some((text, Instant::now()));
    }

    /// What is to be drawn now.
    pub(crate) fn scene(&self) -> Scene {
        Scene::read(&Smooth(&self.room), self.room.tick_number().map_or(0, |tick| tick.0))
    }

    /// How long a loop may sleep before the next step is due.
    pub(crate) fn rest(&self) -> Duration {
        self.room.until_next_tick()
    }
}

/// The host's part: one step of the world, and its publication.
fn simulate(host: &mut HostStep<'_>, world: &mut Option<World>) -> anyhow::Result<()> {
    let tick = host.number().0;
    if world.is_none() {
        let seed = host.info().session.map_or(0, |session| session.0);
        #[allow(clippy::cast_possible_truncation)] // any 64 of its bits are as good
        let seed = seed as u64;
        let is_first = host.info().epoch.0 == 0;
        let scene = || Scene::read(&Latest(host), tick);
        *world = Some(if is_first { World::new(seed) } else { World::resume(seed, &scene()) });
        // A magpie that is knocked away or comes in anew must not be smeared across the field.
        host.declare("p/", Hints::none().snap("score")?)?;
    }
    let world = world.as_mut().expect("it was just made");
    let players: BTreeMap<u32, String> =
        host.players().iter().map(|player| (player.id.0, player.name.clone())).collect();
    let gone: Vec<u32> = world.ids().filter(|id| !players.contains_key(id)).collect();
    gone.into_iter().for_each(|id| world.leave(id));
    for (id, name) in &players {
        world.join(*id, &shown(name, MemberId(*id)));
    }
    let inputs = host.inputs::<Input>().into_iter().map(|(member, input)| (member.0, input)).collect();
    // `step` counts on by one itself; steps that the room dropped are made up for here.
    world.set_tick(tick.wrapping_sub(1));
    world.step(&inputs);
    let publication = world.publish();
    for key in &publication.gone {
        host.remove(key)?;
    }
    for (key, value) in &publication.set {
        host.set(key, value)?;
    }
    Ok(())
}

/// A name to show for a player that may have given none.
pub(crate) fn shown(name: &str, id: MemberId) -> String {
    if name.trim().is_empty() { format!("player {id}") } else { name.to_owned() }
}

/// Reads the state as it is.
struct Latest<'a>(&'a Room);

/// Reads the state as it shall be drawn.
struct Smooth<'a>(&'a Room);

/// A value that another machine wrote: what is not as the game has it counts as missing.
fn read<T: DeserializeOwned>(room: &Room, key: &str) -> Option<T> {
    room.state().get(key).ok().flatten()
}

impl Source for Latest<'_> {
    fn keys(&self) -> Vec<String> {
        self.0.state().keys()
    }

    fn player(&self, key: &str) -> Option<PlayerState> {
        read(self.0, key)
    }

    fn badge(&self, key: &str) -> Option<Badge> {
        read(self.0, key)
    }

    fn gem(&self, key: &str) -> Option<GemState> {
        read(self.0, key)
    }

    fn round(&self, key: &str) -> Option<RoundState> {
        read(self.0, key)
    }
}

impl Source for Smooth<'_> {
    fn keys(&self) -> Vec<String> {
        self.0.state().keys()
    }

    fn player(&self, key: &str) -> Option<PlayerState> {
        self.0.state().interpolated(key).ok().flatten()
    }

    fn badge(&self, key: &str) -> Option<Badge> {
        read(self.0, key)
    }

    fn gem(&self, key: &str) -> Option<GemState> {
        self.0.state().interpolated(key).ok().flatten()
    }

    fn round(&self, key: &str) -> Option<RoundState> {
        read(self.0, key)
    }
}
