//! What two ends of Parlor must agree on to share a world.
//!
//! This crate is pure: it has no clock, no source of randomness, no thread, lock, socket or `async`. Time
//! comes in as an [`Instant`](parlor_proto::Instant), bytes come in and go out, and the same calls always
//! give the same results.
//!
//! - [`value`]: self-describing values, and the way to and from Rust types
//! - [`schema`]: what entities are made of, and how finely
//! - [`world`]: entities that one authority writes and every reader holds as far as it may see them
//! - [`keyed`]: values under string keys, as a part of a world
//! - [`replicator`]: states that their owners send
//! - [`interest`]: which entities a member sees
//! - [`interpolation`]: playing all this out smoothly
//! - [`prediction`]: own entities ahead of what the authority has told, and corrections of them
//! - [`clock`]: the hub's clock, as another process knows it
//! - [`inputs`] and [`lead`]: what members want in each step, and how it is there in time
//! - [`lateness`]: how late a loop is run, which is no silence of others
//! - [`saves`]: an authority's way back to an earlier step
//! - [`recording`]: a room's world in a file, and playing it again
//! - [`audience`]: who may see something
//! - [`delta`] and [`coder`]: how packets are coded
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
//! // For each member it has a publisher, which learns what became of its packets.
//! let mut publisher = Publisher::new(Viewer::Member(MemberId(1)), PublisherConfig::default());
//! let now = Instant::from_millis(5_000);
//! let (bytes, sent) = publisher.poll(&world, &mut Encodings::default(), now).expect("there is news");
//!
//! // The member takes the packet in and shows it a little later.
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
