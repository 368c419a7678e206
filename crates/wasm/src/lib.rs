//! The core of a room as WebAssembly: what crosses between a page and Rust. (ABI version 1)
//!
//! The module imports nothing and is called only through the functions below. The TypeScript SDK (`sdk/ts`) is its one user.
//!
//! # Rules
//!
//! 1. One instance holds one room. A page compiles the module once and makes an instance for each room; dropping the instance frees the room.
//! 2. Arguments and results are `i32` and `f64`. Instants are `f64` microseconds of one clock of the page that never goes back, such as `performance.now() * 1000`. "None" of an instant is `Infinity`.
//!    `u32` numbers (entities, ticks as i32) pass as the same 32 bits: read `>>> 0`.
//! 3. Bytes go in through one buffer: `in_reserve(len) → address`, write `len` bytes there, then the call with `len`. Bytes come out through one buffer: after a call, `out_ptr()` and `out_len()`; copy them before the next call.
//!    Memory may grow in any call, which detaches `memory.buffer`: make a new view after each call.
//!    Copy with `memory.buffer.slice(ptr, ptr + len)`: addresses are not aligned.
//! 4. A result is ≥ 0. −1 is an error: `out` has the Value `{code, message, path?}` and nothing changed.
//! 5. A panic traps (`unreachable`), and `out` is not to be read. The trap is the defect: texts and places of panics are not in the module, because they are a twentieth of it. The functions and offsets of its stack name the place.
//!    Drop the instance; other instances are untouched.
//!
//! A *Value* is the encoding of PROTOCOL.md, "Values" (that of keyed state). What goes in as several Values stands one behind the other, to the end of the `len` bytes. Each call below names them in order.
//! Events and lists of players nest up to 8 levels deeper than a Value on the wire may (40 instead of 32).
//! Options and fields have the names of the TypeScript API; unknown names are errors (`bad_options`).
//!
//! Kinds of numbers: member `i32` ≥ 0; entity `u32` = slot + 65536 · generation; tick `u32`; component `i32`, its index in `components()`; carrier 1 datagram, 2 stream (record), 3 isolated; link 0 QUIC, 1 WebSocket, 2 memory, 3 WebTransport.
//!
//! # Module
//!
//! | export | meaning |
//! |---|---|
//! | `abi_version() → i32` | 1 |
//! | `in_reserve(len) → address` | makes the in buffer `len` bytes; 0 if `len` is negative or beyond 16 MiB |
//! | `out_ptr() → address`, `out_len() → i32` | the out buffer of the last call |
//! | `value_check(len) → 0` | in: bytes; −1 unless they are the one encoding of a Value (for tests of a codec) |
//! | `schema_hash(len) → 0` | in: Value `schema` (as in options); out: 8 bytes, the hash, little-endian. Needs no open room |
//!
//! # Opening
//!
//! `open(len) → 0`, in: Value map, the options:
//!
//! | option | |
//! |---|---|
//! | `app: text` | required |
//! | `intent: "host" \| "join" \| "match" \| "resume"` | required |
//! | `code: text` | join: required; host: chosen code |
//! | `ticket: text` | resume: required; what `ticket()` gave |
//! | `environment`, `name`, `secret`, `token`: text | |
//! | `maxPlayers`, `tickHz`: int | host, match |
//! | `dedicated: bool` | host |
//! | `label: text`, `keep: bool` | match |
//! | `hostMigration: false \| { silenceMs }` | default false |
//! | `migrationGraceMs: int`, `migrationPause: bool` | |
//! | `presenceMs`, `graceMs`: int | terms of the new room |
//! | `spectators: int` | host, match: seats for spectators |
//! | `spectate: bool` (false) | join: to watch only |
//! | `simulationDelay`, `resimulate`: int (ticks); `rewindMaxMs`: int | |
//! | `reconnect: bool` (true), `lead: bool` (false), `hashEvery: int` | |
//! | `protocol: "reliable" \| "unreliable" \| "both"` | default both |
//! | `reals: bool` | default true here: all numbers of keyed state move smoothly, whole ones too; `snap` says which do not |
//! | `channels: { "32": lane, … }` | channels of the game's own, 16 to 63 |
//! | `schema: { components: [component], interest?: { component, field, radius, leave? } }` | |
//! | `predict: [component name]` | |
//! | `actions: [name]` | predicted actions, whose functions the page has; any brings lead along |
//! | `own: component & { tolerance?: { field: { offBy?, turnedBy?, lateByMs?, jump?, priority? } }, radius?: { field, within } }` | type of this player's own state |
//! | `smoothing: { fadeMs?, leap? }`, `renderDelay: { minMs?, maxMs? }` | |
//!
//! lane: `"unreliable"`, `"sequenced"` (= unreliable_sequenced), `"reliable"` (unordered), `"ordered"` (reliable, ordered).
//!
//! component: `{ name, fields: [ { name, kind, …, interpolate?, threshold? } ], priority?: int, condition?: "everyone" | "owner" | "not-owner" }`.
//! Fields are a list, because a map has no order.
//! kind and its parameters: `bool` · `int {min, max}` · `float {min, max, step}` · `floatBits {min, max, bits}` · `angle {steps}` · `vec2 {min, max, step}` · `vec3 {min, max, step}` · `unitVector {bits}` · `rotation {bits}` ·
//! `transform {position: range, rotationBits}` · `body {position: range, rotationBits, velocity: range, spin: range}` with range `{min, max, step}` · `oneOf {names: [text]}` · `text {bytesMax}` · `bytes {bytesMax}` · `any {bytesMax}`.
//! interpolate: `"none" | "linear" | "spherical" | "hermite"`.
//!
//! # Driver: the server, its links, packets and time
//!
//! | export | meaning |
//! |---|---|
//! | `found(len, has_more) → 0` | in: map `{server, asked?, scope?: "local"\|"internet", joinPath?: "local"\|"internet_fallback"\|"internet_explicit"\|"direct"}`; before each dial. `has_more` 1: another server remains if this one has no such room |
//! | `admission() → 0 none, 1 create, 2 join` | what the next connection asks for (0: resumes); out: Value code (text or null). Then `token` if the game has a service |
//! | `token(len) → 0` | in: text |
//! | `connected(link, now) → 0` | a link stands |
//! | `packet(carrier, len, now) → 0` | in: the packet's bytes |
//! | `next_packet(now) → 0 none, 1…3 carrier` | out: the packet's bytes. Call while the link has credit |
//! | `timeout(now) → 0`, `next_timeout() → f64` | time passes; when it is due, `Infinity` for never |
//! | `disconnected(len, now) → 0` | in: text, the cause. The link broke |
//! | `failed(len) → 0` | in: map `{kind, detail}`: no connection could be made, the room closes. kind: `no_server`, `bad_address`, `unknown_host`, `unreachable`, `untrusted`, `not_parlor`, `no_room`, `several_rooms` |
//! | `next_attempt() → f64` | when to dial again; `Infinity` for not |
//! | `attempt_begins(now)`, `attempt_failed(len, now)` in: text, `attempt_put_off(len, after_ms, now)` in: text, `attempt_refused(len, now)` in: map `{code, message}`; all → 0 | attempts to reconnect. `attempt_begins` may come earlier than `next_attempt` |
//! | `redirect() → 0, 1` | out: text, the server to go to instead; told once |
//! | `next_claim() → f64` | when to ask another server to reopen the room, once the link is lost; `Infinity` for not |
//! | `claim_begins() → 0, 1` | out: text, the server to dial, empty for the present one. The next link is for this claim; `attempt_failed` if it is not reached |
//! | `claimed() → 0, 1` | the claim was granted: its link is the room's, and its server the room's server; told once |
//! | `passed_over() → 0, 1` | the server has no such room: try the next; told once |
//! | `path_carries(bytes_per_second: f64) → 0` | what the path carries, if the page knows it |
//! | `wrote(bytes: f64, began: f64, now: f64, waits) → 0` | else: the socket took `bytes` from `began` to `now`, `waits` 1 if more was queued. The core limits state by it |
//! | `is_finished() → 0, 1` | nothing is left to send: close the link |
//! | `is_coming_back() → 0, 1` | go on dialling |
//! | `wants_driver() → 0, 1` | something waits for `next_packet`; reading clears it |
//! | `ticket() → 0, 1` | out: text; with `intent: "resume"` it gets the seat back. It changes with each connection. A secret |
//!
//! # Game: events and steps
//!
//! | export | meaning |
//! |---|---|
//! | `poll(now) → 0, 1` | out: the next event (below). Until 0; reads change only in here |
//! | `tick(now) → 0, 1` | a step is due and begins. Until 0 |
//! | `tick_number() → f64` | −1 before the room is open |
//! | `tick_hz() → i32` | 0 before the room is open |
//! | `until_next_tick(now) → f64` | µs; `Infinity` before the room is open |
//! | `is_replay() → 0, 1` | the running step is a replay |
//! | `once(len, number: f64) → 0, 1` | in: text, an effect |
//! | `flags() → i32` | bits: 1 open (connected to the room), 2 host, 4 migrating, 8 link lost (reconnecting), 16 closed, 32 match, 64 replay, 128 spectator |
//! | `version() → f64` | counts events given by `poll` and writes of this process: equal means nothing to read changed |
//! | `server_time(now) → f64` | µs since the room opened; −1 before |
//! | `ping() → f64`, `host_ping() → f64` | µs, to the server and to the host (0 at the host); −1 if not measured |
//! | `me() → i32`, `host() → i32` | member id, −2 for none |
//! | `next_due(now) → f64` | µs: the earliest of the next tick, `next_timeout` and `next_attempt`: when to call next if no packet comes |
//! | `hand_over(member, now) → 0` | at the host: another player goes on as the host; member −2: the one that the server names |
//! | `leave(now)`, `stop(now)` → 0 | then drain `next_packet` until `is_finished` |
//!
//! # Game: keyed state
//!
//! | export | meaning |
//! |---|---|
//! | `set(len) → 0` | in: text key, Value |
//! | `set_for(len) → 0` | in: list of member ids, text key, Value |
//! | `remove(len) → 0, 1` | in: text key |
//! | `declare(len) → 0` | in: text prefix, map `{angle?: [path], snap?: [path], linear?: [path], period?: {path: number}}` |
//! | `get(len) → 0, 1` | in: text key; out: Value |
//! | `interpolated(len, now) → 0, 1` | the same for display |
//! | `predicted(len) → 0, 1`, `set_predicted(len) → 0` | in: text key; and text key, Value |
//! | `entries(len, what, now) → count` | in: text prefix; out: key, Value, key, Value … in ascending order (by bytes). what: 0 as written, 1 for display, 2 predicted, 3 keys only (out: key, key …) |
//! | `state_hash() → 0, 1` | out: 8 bytes sequence, 8 bytes hash, both u64 little-endian |
//!
//! # Game: inputs and messages
//!
//! | export | meaning |
//! |---|---|
//! | `send_input(len) → 0` | in: Value. In a replay it does nothing |
//! | `input(member) → 0, 1` | out: Value. Its use is acknowledged to its player |
//! | `inputs() → count` | out: Int member, Value, Int member, Value … |
//! | `input_ack(member) → f64` | tick of the newest input that the host used; −1 for none |
//! | `send(lane, flags, len, now) → 0` | in: to, text kind, Value. lane: 0 as `protocol` says, 1 unreliable, 2 sequenced, 3 reliable, 4 ordered. flags: 1 all receivers see the same order, 2 it carries the room's time |
//! | `send_bytes(channel, stamp, len, now) → 0` | in: to, Value bytes |
//! | `send_data(op: f64, reliably, len, now) → 0` | in a match; in: to, Value bytes |
//! | `act(entity, len) → 0` | in: text name, Value. The host gets event `action` |
//! | `act_predicted(entity, len, now) → 0, 1` | in a step; in: text name of option `actions`, Value. 1: apply it now: `action_request`, then `action_done`. 0: nothing to do, the step is a replay |
//! | `action_request() → 0 none, 1 first time, 2 again` | out: map `{from, number, tick, entity, name, value}`: apply it, then `action_done`. Until 0 after each `tick` that gave 1, before the step's own code, and after `act_predicted`. One that is left is refused by the next `tick` |
//! | `action_done(len, now) → 0, 1` | in: nothing if it was applied; else, after its writes were undone, text, the game's reason, or null if its value cannot be read. 1: this player's own, made in this step, is refused |
//!
//! to: `"host"`, `"others"`, `"all"`, `"primary"`, an Int member, a list of members, or map `{except: [members]}`.
//!
//! # Game: players
//!
//! | export | meaning |
//! |---|---|
//! | `players() → count`, `spectators() → count` | out: player, player … by id |
//! | `set_player_data(member, len) → 0` | in: text key, Value; the key alone removes it |
//! | `kick(member, len) → 0` | in: text reason |
//!
//! player: `{id, name, user?, isHost, isMe, isSpectator, connected, slow, direct, rttMs?, link, transport, data: {…}}`. link: `"quic"`, `"websocket"`, `"memory"`, `"webtransport"`.
//!
//! # Events
//!
//! A map with `type`; absent fields are left out, as in the TypeScript API:
//!
//! `open {code}` · `playerJoined {player}` · `playerLeft {id, name, reason}` · `spectatorJoined {spectator}` · `spectatorLeft {id, name, reason}` · `playerLost {id, reason}` · `playerBack {id}` · `playerData {id, key, value?}` · `connectionLost {reason, detail}` · `reconnecting {attempt}` ·
//! `reconnected {stateResynced}` · `reopened {gap}` · `hostMigration {previous?, next, isMe}` · `hostChanged {host, previous?}` · `handOverRefused {why}` · `message {from, kind, order?, value}` · `bytes {from, channel, order?, bytes}` · `data {from, op, order?, bytes}` ·
//! `slow {id, slow}` · `throttled` · `state {sequence, serverTick, serverTimeMs, tickIntervalMs, inputAckTick?, source, jitterMs, bufferDelayMs, historyDepth, bufferedMs, changed: [key]}` · `spawned {entity}` · `despawned {entity}` ·
//! `action {from, entity, name, value}` · `actionRefused {entity, name, why, reason?}` · `primary {player?}` · `closed {code, message, retryAfterMs?, reason?}`.
//!
//! from: an Int member, or `"hub"`. `closed.code` is the word of the Rust side (`left`, `kicked`, `host_left`, `no_such_room`, `room_full`, `unreachable`, …).
//!
//! # Worlds
//!
//! | export | meaning |
//! |---|---|
//! | `components() → count` | once the room is open; out: map `{name, fields: [{name, kind, numbers, blob}]}` each, in order of their numbers. The first two or so are the room's own (names that begin with a point); look a component up by name |
//! | `component(len) → i32` | in: text name; its number, −1 (`no_such_component`) |
//! | `entities() → count` | out: count × u32 |
//! | `has_entity(entity) → 0, 1` | |
//! | `owner(entity) → i32` | member, −2 without an owner |
//! | `spawn(owner) → f64` | the entity; owner −2 for none |
//! | `despawn(entity)`, `transfer(entity, owner)`, `zone(entity, zone: f64)`, `audience(entity, len)` → 0 | audience in: `"all"` or a list of members |
//! | `row(entity, component, which, now) → 0, 1` | which: 0 as written (or predicted), 1 for display. out: a row |
//! | `write_row(entity, component, len, now) → 0` | in: a row |
//! | `remove_row(entity, component) → 0, 1` | |
//! | `columns(component, which, now) → count` | all entities that have it; out: columns |
//! | `write_columns(component, len, now) → count` | in: columns. At the host; all or, on an error, none beyond the one that it names |
//! | `changes() → count` | out: count × (u32 entity, u32 low bits, u32 high bits) of components that changed since the last call; 0 at the host |
//! | `rewind(member, component, now) → count` | at the host: columns as that player saw them; out: f64 µs back, f64 1 if cut to the maximum, columns |
//! | `room_schema_hash() → 0` | out: 8 bytes, the hash of the room's schema, as `schema_hash` gives that of a description |
//! | `world_update() → 0, 1` | out: as event `state` |
//!
//! A row: its numbers as f64, little-endian, in the order of the fields (bool 0 or 1, names by index, vectors x y z, rotations x y z w, transform position + rotation, body position, rotation, velocity, spin), then for each field of text, bytes or any: u32 length, bytes (any: the encoding of a Value).
//! Columns: u32 count · u32 0 · count × u32 entity · count × i32 owner (−2 for none) · for each number: count × f64 · for each blob: count × (u32 length, bytes). `columns` and `write_columns` are the same form; owners are not written.
//!
//! # Own state (replicator)
//!
//! | export | meaning |
//! |---|---|
//! | `set_own(len) → 0` | in: a row of the component of option `own`, without what the replicator adds |
//! | `teleport_own() → 0` | |
//! | `remote_state(member, at: f64, now) → 0, 1` | at: µs of room time, −1 for now. out: a row |
//! | `own_primary() → i32` | the primary, −2 for none |
//!
//! # Rollback
//!
//! | export | meaning |
//! |---|---|
//! | `lane_begin(len) → 0` | in: map `{players: [member], begin: tick, session?, inputDelay?, window?, patience?, spectatorDelay?}` |
//! | `lane_step(len, now) → 0, 1` | in: Value, this player's input. 1: a step begins: serve `lane_request` until 0, then call again |
//! | `lane_request() → 0 none, 1 save, 2 load, 3 advance, 4 advance again (replay)`, `lane_tick() → f64` | and its tick |
//! | `lane_input(member) → 0 none, 1 known, 2 predicted, 3 missed` | out: Value |
//! | `lane_saved(tick: f64, low, high) → 0` | checksum of the game's own state, if it keeps any beside the lane's keys |
//! | `lane_set(len) → 0`, `lane_remove(len) → 0, 1`, `lane_get(len) → 0, 1`, `lane_states() → count` | keys of the lane, in and out as for keyed state. They are saved, restored and compared by themselves |
//! | `lane_settled(len) → 0, 1` | in: text key; out: Int tick, Value |
//! | `lane_event() → 0, 1` | out: map `{type: "desync", player?, tick, isExact}`, player by its place in `players`, or `{type: "lost", oldest}` |
//! | `lane_diagnostics() → 0, 1` | out: map |
//! | `lane_end() → 0` | |
//!
//! # Recording (at the host)
//!
//! `recording_start() → 0` · `recording_take() → len` (out: the next bytes of the file) · `recording_stop() → 0` · `recording_figures() → 0, 1` (out: map).
//!
//! # Figures
//!
//! `info() → 1`, `diagnostics() → 1`, `world_diagnostics(now) → 0, 1`: out: map, fields in camelCase, times in ms.

mod boundary;
pub mod exports;
mod options;
mod room;
mod ticket;

#[cfg(not(target_arch = "wasm32"))]
pub use boundary::memory;
