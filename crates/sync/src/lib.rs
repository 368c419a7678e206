//! What two ends of Parlor must agree on to share a world.
//!
//! This crate is pure: it has no clock, no source of randomness, no thread, lock, socket or `async`. Time comes in
//! as an [`Instant`](parlor_proto::Instant), bytes come in and go out, and the same calls always give the same
//! results.
//!
//! - [`value`]: self-describing values, and the way to and from Rust types
//! - [`keyed`]: values under string keys that one authority writes and every reader holds as far as it may see them
//! - [`interpolation`]: playing these values out smoothly
//! - [`limits`]: bounds that only this crate needs
//!
//! ```
//! use parlor_proto::{Instant, MemberId, Tick, TickRate};
//! use parlor_sync::interpolation::Playout;
//! use parlor_sync::keyed::{Audience, Hints, Outcome, Publisher, Replica, StateStamp, Store, Viewer};
//! use parlor_sync::value::{from_value, to_value};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Tank {
//!     x: f32,
//!     heading: f32,
//! }
//!
//! // The authority writes and closes the tick's batch.
//! let mut store = Store::new();
//! store.declare("tank/", Hints::none().angle("heading")?)?;
//! store.set("tank/1", &to_value(&Tank { x: 1.0, heading: 3.0 })?, Audience::All)?;
//! store.set("plan", &"flank left".into(), Audience::members([MemberId(2)]))?;
//! store.commit(StateStamp { tick: Tick(1), server_time: Instant::from_millis(33), ..StateStamp::default() })?;
//!
//! // For each member it has a publisher, which learns what became of its updates.
//! let mut publisher = Publisher::new(Viewer::Member(MemberId(1)));
//! let (bytes, sent) = publisher.poll_update(&store).expect("there is news");
//!
//! // The member takes the update in and shows it a little later.
//! let (mut replica, mut playout) = (Replica::new(), Playout::new(TickRate::DEFAULT.interval()));
//! let now = Instant::from_millis(5_000);
//! let Outcome::Taken(applied) = replica.apply(bytes)? else { panic!("the first update is complete") };
//! playout.observe(now, &applied, &replica);
//! publisher.delivered(sent);
//!
//! assert!(replica.get("plan").is_none());
//! assert_eq!(replica.hash(), store.hash(publisher.viewer()));
//! let shown = playout.render_time(now).and_then(|at| playout.value_at("tank/1", at)).expect("it was set");
//! assert_eq!(from_value::<Tank>(&shown)?.x, 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod interpolation;
pub mod keyed;
pub mod limits;
pub mod value;
