// The functions of parlor.wasm that the SDK calls. crates/wasm has their meaning.

type Num = number;

/** What `parlor.wasm` exports. Instants are microseconds; a result of −1 is an error whose words are in the out buffer. */
export interface Exports {
  readonly memory: WebAssembly.Memory;
  abi_version(): Num;
  in_reserve(length: Num): Num;
  out_ptr(): Num;
  out_len(): Num;

  value_check(length: Num): Num;

  open(length: Num): Num;

  found(length: Num, hasMore: Num): Num;
  admission(): Num;
  token(length: Num): Num;
  connected(link: Num, now: Num): Num;
  packet(carrier: Num, length: Num, now: Num): Num;
  next_packet(now: Num): Num;
  timeout(now: Num): Num;
  next_timeout(): Num;
  disconnected(length: Num, now: Num): Num;
  failed(length: Num): Num;
  next_attempt(): Num;
  attempt_begins(now: Num): Num;
  attempt_failed(length: Num, now: Num): Num;
  attempt_put_off(length: Num, afterMs: Num, now: Num): Num;
  attempt_refused(length: Num, now: Num): Num;
  redirect(): Num;
  next_claim(): Num;
  claim_begins(): Num;
  claimed(): Num;
  path_carries(bytesPerSecond: Num): Num;
  wrote(bytes: Num, began: Num, now: Num, waits: Num): Num;
  is_finished(): Num;
  is_coming_back(): Num;
  ticket(): Num;

  poll(now: Num): Num;
  tick(now: Num): Num;
  tick_number(): Num;
  tick_hz(): Num;
  until_next_tick(now: Num): Num;
  once(length: Num, number: Num): Num;
  flags(): Num;
  version(): Num;
  server_time(now: Num): Num;
  ping(): Num;
  me(): Num;
  host(): Num;
  hand_over(member: Num, now: Num): Num;
  leave(now: Num): Num;
  stop(now: Num): Num;

  set(length: Num): Num;
  set_for(length: Num): Num;
  remove(length: Num): Num;
  declare(length: Num): Num;
  get(length: Num): Num;
  interpolated(length: Num, now: Num): Num;
  predicted(length: Num): Num;
  set_predicted(length: Num): Num;
  entries(length: Num, what: Num, now: Num): Num;
  state_hash(): Num;

  send_input(length: Num): Num;
  input(member: Num): Num;
  inputs(): Num;
  send(lane: Num, stamp: Num, length: Num, now: Num): Num;
  send_bytes(channel: Num, stamp: Num, length: Num, now: Num): Num;
  send_data(op: Num, reliably: Num, length: Num, now: Num): Num;

  players(): Num;
  spectators(): Num;
  set_player_data(member: Num, length: Num): Num;
  kick(member: Num, length: Num): Num;

  component(length: Num): Num;
  entities(): Num;
  has_entity(entity: Num): Num;
  owner(entity: Num): Num;
  spawn(owner: Num): Num;
  despawn(entity: Num): Num;
  transfer(entity: Num, owner: Num): Num;
  zone(entity: Num, zone: Num): Num;
  audience(entity: Num, length: Num): Num;
  row(entity: Num, component: Num, which: Num, now: Num): Num;
  write_row(entity: Num, component: Num, length: Num, now: Num): Num;
  remove_row(entity: Num, component: Num): Num;
  columns(component: Num, which: Num, now: Num): Num;
  write_columns(component: Num, length: Num, now: Num): Num;
  act(entity: Num, length: Num): Num;
  act_predicted(entity: Num, length: Num, now: Num): Num;
  action_request(): Num;
  action_done(length: Num, now: Num): Num;
  changes(): Num;
  rewind(member: Num, component: Num, now: Num): Num;
  schema_hash(length: Num): Num;

  set_own(length: Num): Num;
  teleport_own(): Num;
  remote_state(member: Num, at: Num, now: Num): Num;
  own_primary(): Num;

  lane_begin(length: Num): Num;
  lane_step(length: Num, now: Num): Num;
  lane_request(): Num;
  lane_tick(): Num;
  lane_input(member: Num): Num;
  lane_saved(tick: Num, low: Num, high: Num): Num;
  lane_set(length: Num): Num;
  lane_remove(length: Num): Num;
  lane_get(length: Num): Num;
  lane_states(): Num;
  lane_settled(length: Num): Num;
  lane_event(): Num;
  lane_diagnostics(): Num;
  lane_end(): Num;

  recording_start(): Num;
  recording_take(): Num;
  recording_stop(): Num;
  recording_figures(): Num;

  info(): Num;
  diagnostics(): Num;
}

/** The version of the functions above. */
export const ABI_VERSION = 1;
