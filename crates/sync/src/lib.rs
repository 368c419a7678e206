//! Parlor's state synchronization: everything that two ends must agree on to share a world.
//!
//! This crate is pure: it has no clock, no source of randomness, no thread, lock, socket or `async`. Time
//! comes in as an [`Instant`](parlor_proto::Instant), bytes come in and go out, and the same calls always
//! give the same results.
//!
//! - [`value`]: self-describing values, and their conversion to and from Rust types
//! - [`schema`]: components of entities, with ranges and precision
//! - [`world`]: entities written by one authority and replicated to each reader that may see them
//! - [`keyed`]: values under string keys, as a part of a world
//! - [`replicator`]: own state, which each member publishes of itself
//! - [`interest`]: which entities a member sees
//! - [`interpolation`]: smooth playout of all this
//! - [`prediction`]: own entities simulated ahead of the authority, and their corrections
//! - [`clock`]: the hub's clock, estimated by another process
//! - [`inputs`] and [`lead`]: members' inputs for each step, and the lead with which they arrive in time
//! - [`lateness`]: a loop's own delays, which must not count as others' silence
//! - [`saves`]: rolls an authority back to an earlier step
//! - [`recording`]: a room's world in a file, and its playback
//! - [`audience`]: which members may see a key or an entity
//! - [`delta`] and [`coder`]: coding of packets
//! - [`limits`]: bounds that only this crate needs
//!
//! ```
//! use parlor_proto::{Instant, MemberId, Tick, TickRate};
//! use parlor_sync::audience::{Audience, Viewer};
//! use parlor_sync::interpolation::Playout;
//! use parlor_sync::keyed::{Hints, KeyReader, Keys};
//! use parlor_sync::schema::Schema;
//! use parlor_sync::value::{from_value, to_value};
//! use parlor_sync::world::{Encodings, Outcome, Publisher, PublisherConfig, Replica, World};
//! use serde::{Deserialize, Serialize};
//! use std::sync::Arc;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Tank {
//!     x: f32,
//!     heading: f32,
//! }
//!
//! // The authority writes and closes the tick's batch.
//! let (schema, rate) = (Arc::new(Schema::default()), TickRate::DEFAULT);
//! let (mut world, mut keys) = (World::new(Arc::clone(&schema), rate), Keys::new());
//! keys.declare(&mut world, "tank/", Hints::none().angle("heading")?)?;
//! keys.set(&mut world, "tank/1", &to_value(&Tank { x: 1.0, heading: 3.0 })?, Audience::All)?;
//! keys.set(&mut world, "plan", &"flank left".into(), Audience::members([MemberId(2)]))?;
//! keys.close(&mut world)?;
//! world.commit(Tick(1))?;
//!
//! // It has a publisher for each member, which learns whether its packets were delivered.
//! let mut publisher = Publisher::new(Viewer::Member(MemberId(1)), PublisherConfig::default());
//! let now = Instant::from_millis(5_000);
//! let (bytes, sent) = publisher.poll(&world, &mut Encodings::default(), now).expect("there is news");
//!
//! // The member applies the packet and shows it a little later.
//! let mut replica = Replica::new(schema, rate);
//! let (mut reader, mut playout) = (KeyReader::new(), Playout::new(rate));
//! let Outcome::Taken(applied) = replica.apply(bytes)? else { panic!("it is the first") };
//! let changes = reader.observe(replica.world(), &applied);
//! playout.observe(now, &applied, &changes, &reader);
//! publisher.delivered(sent);
//!
//! assert!(reader.get("plan").is_none());
//! assert_eq!(replica.settled(), Some(Tick(1)));
//! assert_eq!(reader.hash(), keys.hash(publisher.viewer()));
//! let shown = playout.render_time(now).and_then(|at| playout.value_at("tank/1", at)).expect("it was set");
//! assert_eq!(from_value::<Tank>(&shown)?.x, 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audience;
pub mod clock;
pub mod coder;
pub mod delta;
pub mod inputs;
pub mod interest;
pub mod interpolation;
pub mod keyed;
pub mod lateness;
pub mod lead;
pub mod limits;
pub mod prediction;
pub mod recording;
pub mod replicator;
pub mod rollback;
pub mod saves;
pub mod schema;
pub mod value;
pub mod world;
