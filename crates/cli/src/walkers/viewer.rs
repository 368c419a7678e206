//! Anybody but the host of the demo.

use super::crowd::TOTAL;
use super::figures::{Figures, Meter};
use super::{SIGHT_M, Walker};
use crate::game::{Dir, Input};
use crate::party::Member;
use crate::view::{Command, Controls, Ground, Mark};
use parlor::{ClosedReason, Event, MemberId, Room};
use parlor_sim::walkers::SIDE_M;
use ratatui::crossterm::event::KeyEvent;
use serde_json::{Value, json};

/// Steps after which a viewer without hands turns.
const TURN_STEPS: u64 = 90;

/// Who steers a viewer's walker.
#[derive(Debug)]
pub(crate) enum Steering {
    /// Whoever sits at the keyboard.
    Hands(Controls),
    /// Nobody: it walks in squares.
    Squares,
}

/// A member that sees what is around its own walker, and steers that.
#[derive(Debug)]
pub(crate) struct Viewer {
    room: Room,
    steering: Steering,
    steps: u64,
    figures: Figures,
    meter: Meter,
    closed: Option<ClosedReason>,
}

impl Viewer {
    /// A viewer in a room.
    pub(crate) fn new(room: Room, steering: Steering) -> Self {
        let (figures, meter) = (Figures::default(), Meter::new());
        Viewer { room, steering, steps: 0, figures, meter, closed: None }
    }

    /// What it sees, and what that costs.
    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Takes a key; one that is the program's comes back as a command.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Option<Command> {
        match &mut self.steering {
            Steering::Hands(controls) => controls.press(key),
            Steering::Squares => Controls::default().press(key),
        }
    }

    fn steer(&mut self) -> Input {
        self.steps += 1;
        match &mut self.steering {
            Steering::Hands(controls) => controls.next_input(),
            Steering::Squares => {
                let dir = match self.steps / TURN_STEPS % 4 {
                    0 => Dir::Right,
                    1 => Dir::Down,
                    2 => Dir::Left,
                    _ => Dir::Up,
                };
                Input { dir, dash: true }
            }
        }
    }

    fn measure(&mut self) {
        self.figures.visible = self.room.entities().len();
        self.figures.visible_max = self.figures.visible_max.max(self.figures.visible);
        if let Ok(Some(total)) = self.room.get(TOTAL) {
            self.figures.total = total;
        }
        self.meter.measure(&mut self.figures, &self.room);
    }

    /// What is to be drawn now.
    pub(crate) fn ground(&mut self) -> Ground {
        let me = self.room.local_id();
        #[expect(clippy::cast_possible_truncation, reason = "metres")]
        let mut ground = Ground { radius_m: SIGHT_M as f32, side_m: SIDE_M as f32, ..Ground::default() };
        ground.figures = self.figures.rows();
        // Before the room is open there is nothing to draw.
        let _ = self.room.world(|world| {
            for entity in world.entities() {
                let (Ok(Some(walker)), Ok(owner)) =
                    (world.interpolated_component(entity), world.owner(entity))
                else {
                    continue;
                };
                let mark = mark(&walker, owner);
                if owner.is_some() && owner == me {
                    ground.me = Some(mark);
                } else {
                    ground.others.push(mark);
                }
            }
        });
        ground
    }
}

impl Member for Viewer {
    fn room(&self) -> &Room {
        &self.room
    }

    fn closed(&self) -> Option<&ClosedReason> {
        self.closed.as_ref()
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            match event {
                Event::Spawned { .. } => self.figures.came += 1,
                Event::Despawned { .. } => self.figures.went += 1,
                Event::Closed(reason) => self.closed = Some(reason),
                _ => {}
            }
        }
        self.figures.updates += self.room.take_changes().len() as u64;
        while self.room.tick() {
            let input = self.steer();
            self.room.send_input(&input)?;
        }
        self.measure();
        Ok(())
    }

    fn report(&mut self) -> Value {
        json!(self.figures)
    }

    fn leave(self) {
        self.room.leave();
    }
}

fn mark(walker: &Walker, owner: Option<MemberId>) -> Mark {
    let [x, y, _] = walker.position;
    Mark { at: [x, y], heading: walker.heading(), is_steered: owner.is_some() }
}
