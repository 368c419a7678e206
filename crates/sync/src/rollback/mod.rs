//! Rollback: players run ahead with predicted inputs of each other. If a prediction was wrong, the game goes
//! back and runs the same steps again with the real inputs. The requests are those of GGPO (Tony Cannon,
//! 2006): *save* a state, *load* one, *advance* by one step.
//!
//! Unlike in GGPO, one end decides: the *arbiter* (the room's host) settles each tick in order. It does so
//! once it has the inputs of all players, or when half of the window is run and its patience is over. An
//! input that has not arrived by then is *missed*, and every end uses the predictor's guess instead. So a
//! player that stalls, or whose clock is wrong, delays the others for a bounded time only. It can never force
//! a rollback beyond the window.
//!
//! - [`Rollback`]: one end of a session
//! - [`Config`]: what all ends must agree on, and what each end may choose
//! - [`Request`]: what the game must do
//! - [`States`]: a ring of saved states that allocates nothing once it is full
//! - [`Diagnostics`], [`Event`]: what happened
//!
//! ```
//! use parlor_proto::Tick;
//! use parlor_sync::rollback::{Config, Request, Rollback, States};
//!
//! // All players at one keyboard, and every step is checked by running the last four again.
//! let config = Config::sync_test(2, Tick(1), 4);
//! let (mut session, mut states) = (Rollback::new(config)?, States::new(&config));
//! let mut places = [0i32; 2];
//! for target in 1..60 {
//!     session.add_input(0, &[1])?;
//!     session.add_input(1, &[2])?;
//!     while session.step(Tick(target)) {
//!         while let Some(request) = session.poll_request() {
//!             match request {
//!                 Request::Save { tick } => {
//!                     states.save(tick, &places);
//!                     session.saved(tick, u64::from(places[0].unsigned_abs()));
//!                 }
//!                 Request::Load { tick } => places = *states.load(tick).expect("it was saved"),
//!                 Request::Advance { inputs, .. } => {
//!                     for (place, input) in places.iter_mut().zip(inputs) {
//!                         *place += i32::from(input.bytes().first().copied().unwrap_or(0));
//!                     }
//!                 }
//!             }
//!         }
//!     }
//! }
//! // The first step has the number 1, and a target is the step that is due.
//! assert_eq!(places, [59, 118]);
//! assert_eq!(session.poll_event(), None, "running the same steps again gave the same states");
//! # Ok::<(), parlor_sync::rollback::RollbackError>(())
//! ```

mod arbiter;
mod config;
mod input;
mod log;
mod messages;
mod queue;
mod report;
mod session;
mod states;
mod sums;
#[cfg(test)]
mod tests;
mod wire;

pub use config::{Config, Predictor, Role, RollbackError, no_input, repeat_last};
pub use input::{Input, InputStatus, PlayerInput};
pub use messages::{From, To};
pub use report::{Correction, Diagnostics, Event};
pub use session::{Request, Rollback};
pub use states::States;
