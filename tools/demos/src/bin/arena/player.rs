//! A player: at the keyboard, or a bot.

use crate::demo_loop::Member;
use parlor::{ClosedReason, Event, Impairment, Room};
use parlor_demos::arena::{AIM_STEPS, Bot, Game, Order, Seen, Verdict, look};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};
use std::time::Duration;

/// By how much a press of a key turns the gun, in parts of a turn.
const TURN: u16 = 24;
/// For how many steps a pressed trigger is held.
const TRIGGER_STEPS: u8 = 4;
/// For how many steps a shot is seen.
const FLASH_STEPS: u8 = 3;
/// The networks that a key goes through.
const NETWORKS: [Network; 4] = [
    Network { latency_ms: 0, jitter_ms: 0, loss_ppm: 0 },
    Network { latency_ms: 20, jitter_ms: 10, loss_ppm: 10_000 },
    Network { latency_ms: 40, jitter_ms: 20, loss_ppm: 20_000 },
    Network { latency_ms: 75, jitter_ms: 40, loss_ppm: 50_000 },
];

/// What is wrong with a player's network, each way.
struct Network {
    latency_ms: u64,
    jitter_ms: u64,
    loss_ppm: u32,
}

/// What a key asks of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Press {
    /// Leave the room.
    Quit,
}

/// The driver.
#[derive(Debug)]
pub(crate) enum Driver {
    /// Whoever sits at the keyboard. Terminals tell when a key is pressed, not when it is let go, so the last way holds.
    Hands { order: Order, trigger: u8 },
    /// Nobody.
    Bot(Bot),
}

/// A member who plays.
#[derive(Debug)]
pub(crate) struct Player {
    room: Room,
    game: Game,
    driver: Driver,
    is_smooth: bool,
    network: usize,
    steps: u64,
    replays: u64,
    shots: u64,
    hits_seen: u64,
    flashes: Vec<(Verdict, u8)>,
    closed: Option<ClosedReason>,
}

impl Player {
    /// A player in a room that was opened with an impairment, of which there may be none.
    pub(crate) fn new(room: Room, game: Game, driver: Driver, is_smooth: bool) -> Self {
        Player {
            room,
            game,
            driver,
            is_smooth,
            network: 0,
            steps: 0,
            replays: 0,
            shots: 0,
            hits_seen: 0,
            flashes: Vec::new(),
            closed: None,
        }
    }

    /// Whether the own tank is run at once, and whether the others are drawn smoothly.
    pub(crate) fn switches(&self) -> (bool, bool) {
        (self.game.is_foreseeing, self.is_smooth)
    }

    /// Steps that were run, repeated ones left out.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Own shots that are still to be seen.
    pub(crate) fn flashes(&self) -> impl Iterator<Item = &Verdict> {
        self.flashes.iter().map(|(verdict, _)| verdict)
    }

    /// Takes a key.
    ///
    /// # Errors
    /// If the network cannot be changed.
    pub(crate) fn press(&mut self, key: KeyEvent) -> anyhow::Result<Option<Press>> {
        if key.kind == KeyEventKind::Release {
            return Ok(None);
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if is_control => return Ok(Some(Press::Quit)),
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Ok(Some(Press::Quit)),
            KeyCode::Char('p' | 'P') => self.game.is_foreseeing ^= true,
            KeyCode::Char('i' | 'I') => self.is_smooth ^= true,
            KeyCode::Char('n' | 'N') => self.change_network()?,
            code => self.driver.press(code),
        }
        Ok(None)
    }

    /// Everything as it is to be drawn now.
    pub(crate) fn look(&mut self) -> Vec<Seen> {
        // Before the room is open there is nothing to see.
        self.room.look(|world| look(world, self.is_smooth)).unwrap_or_default()
    }

    fn change_network(&mut self) -> anyhow::Result<()> {
        self.network = (self.network + 1) % NETWORKS.len();
        let Network { latency_ms, jitter_ms, loss_ppm } = NETWORKS[self.network];
        let impairment = Impairment::none()
            .latency(Duration::from_millis(latency_ms))
            .jitter(Duration::from_millis(jitter_ms))
            .loss_ppm(loss_ppm);
        Ok(self.room.set_impairment(impairment)?)
    }
}

impl Member for Player {
    fn room(&self) -> &Room {
        &self.room
    }

    fn closed(&self) -> Option<&ClosedReason> {
        self.closed.as_ref()
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
            }
        }
        loop {
            let seen = self.look();
            let Some(mut step) = self.room.step() else { break };
            if step.is_replay() {
                self.replays += 1;
                self.game.play(&mut step, Order::default())?;
                continue;
            }
            self.steps += 1;
            let order = self.driver.order(step.local_id(), &seen);
            self.game.play(&mut step, order)?;
            self.flashes.iter_mut().for_each(|(_, left)| *left -= 1);
            self.flashes.retain(|(_, left)| *left > 0);
            for verdict in self.game.verdicts.drain(..) {
                self.shots += 1;
                self.hits_seen += u64::from(verdict.met.is_some());
                self.flashes.push((verdict, FLASH_STEPS));
            }
        }
        Ok(())
    }

    /// What this player did, and what its link was like.
    fn report(&mut self) -> Value {
        let me = self.room.local_id();
        let life = self.look().into_iter().find(|seen| seen.owner.is_some() && seen.owner == me);
        let net = self.room.diagnostics();
        json!({
            "id": me.map(|id| id.0),
            "steps": self.steps,
            "shots": self.shots,
            "hits_seen": self.hits_seen,
            "hits": life.map(|seen| seen.life.hits),
            "deaths": life.map(|seen| seen.life.deaths),
            "rtt_ms": net.rtt.map(millis),
            "jitter_ms": net.jitter_ms,
            "packets_sent": net.session.packets_sent,
            "packets_lost": net.session.packets_lost,
            "render_delay_ms": net.buffer_delay_ms,
            "lead_ms": net.lead_ms,
            "dilation": net.dilation,
            "input_margin_ms": net.input_margin_ms,
            "inputs_late": net.inputs_late,
            "corrections": net.prediction.corrections,
            "steps_replayed": self.replays,
        })
    }

    fn leave(self) {
        self.room.leave();
    }
}

impl Driver {
    /// Whoever sits at the keyboard, who has not pressed anything yet.
    pub(crate) fn hands() -> Self {
        Driver::Hands { order: Order::default(), trigger: 0 }
    }

    fn press(&mut self, code: KeyCode) {
        let Driver::Hands { order, trigger } = self else { return };
        match code {
            KeyCode::Char('w' | 'W') => (order.east, order.south) = (0, -1),
            KeyCode::Char('s' | 'S') => (order.east, order.south) = (0, 1),
            KeyCode::Char('a' | 'A') => (order.east, order.south) = (-1, 0),
            KeyCode::Char('d' | 'D') => (order.east, order.south) = (1, 0),
            KeyCode::Char('x' | 'X') => (order.east, order.south) = (0, 0),
            KeyCode::Left => order.aim = (order.aim + AIM_STEPS - TURN) % AIM_STEPS,
            KeyCode::Right => order.aim = (order.aim + TURN) % AIM_STEPS,
            KeyCode::Char(' ') => *trigger = TRIGGER_STEPS,
            _ => {}
        }
    }

    fn order(&mut self, me: Option<parlor::MemberId>, seen: &[Seen]) -> Order {
        let is_mine = |it: &&Seen| it.owner.is_some() && it.owner == me;
        match self {
            Driver::Hands { order, trigger } => {
                let fire = *trigger > 0;
                *trigger = trigger.saturating_sub(1);
                Order { fire, ..*order }
            }
            Driver::Bot(bot) => {
                let others: Vec<_> =
                    seen.iter().filter(|it| !is_mine(it)).map(|it| it.tank.position).collect();
                bot.order(seen.iter().find(is_mine).map(|it| it.tank), &others)
            }
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_holds_and_a_trigger_is_let_go() {
        let mut driver = Driver::hands();
        driver.press(KeyCode::Char('a'));
        driver.press(KeyCode::Left);
        driver.press(KeyCode::Char(' '));
        let orders: Vec<Order> = (0..8).map(|_| driver.order(None, &[])).collect();
        assert!(orders.iter().all(|order| (order.east, order.south, order.aim) == (-1, 0, AIM_STEPS - TURN)));
        assert_eq!(orders.iter().filter(|order| order.fire).count(), usize::from(TRIGGER_STEPS));
    }
}
