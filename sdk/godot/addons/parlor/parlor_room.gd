class_name ParlorRoom
extends Node
## A room of Parlor, hosted or joined. It polls and steps by itself in each frame while it is in the tree.
##
## Values are what JSON has: null, bool, int, float, String, Array and Dictionary. A number that comes back from another
## process may be a float where an int was set: use `int(…)`. An error is printed, and the call gives null or false.
## docs/engines.md in Parlor's repository has the options.

## The room is open. Friends join by the code.
signal opened(code: String)
## The room is over for this process. `code` is a word such as "left", "kicked" or "no_such_room".
signal closed(code: String, message: String)
signal player_joined(player: Dictionary)
signal player_left(id: int, name: String, reason: String)
## `from` is a player, or -1 for the server.
signal message_received(from: int, kind: String, value: Variant)
## Data of a match.
signal data_received(from: int, op: int, bytes: PackedByteArray)
## Bytes on a channel of the game's own.
signal bytes_received(from: int, channel: int, bytes: PackedByteArray)
## The host is asked for an action on an entity.
signal action_requested(from: int, entity: int, name: String, value: Variant)
## A fixed step: send this player's input, and at the host read all inputs and write the state.
signal stepped(step: Step)
## Every event, as the TypeScript API has it: `{"type": "playerJoined", …}`.
signal happened(event: Dictionary)

## What to read of keys and components.
enum View { LATEST, DRAWN, PREDICTED }
## Who gets a message.
enum To { HOST, OTHERS, ALL, PRIMARY, MEMBERS, EXCEPT }
## How a message travels.
enum Lane { DEFAULT, UNRELIABLE, SEQUENCED, RELIABLE, ORDERED }
## Options of a message: add them up.
enum { NUMBERED = 1, TIMED = 2 }
## No member, where one may be absent.
const NOBODY := -2

enum _Flag { OPEN = 1, HOST = 2, MIGRATING = 4, RECONNECTING = 8, CLOSED = 16, REPLAY = 32, SPECTATOR = 64 }
enum _Topic { INFO, DIAGNOSTICS, WORLD_DIAGNOSTICS, PLAYERS, SPECTATORS, COMPONENTS }
enum _Time { SERVER, PING, HOST_PING }

## A fixed step of the game.
class Step:
	## Its number, the same for all members.
	var tick: int
	## Whether it was run before, and is run again after a correction.
	var is_replay: bool
	## Whether this process is the host.
	var is_host: bool

## Whether steps run by the time of this node, which `Engine.time_scale` and pauses change. Otherwise by the room's clock.
@export var use_game_time := false

var _handle := ParlorHandle.new()
var _is_closed := true


## Opens a room of the game `app` with this process as its host.
func host(app: String, options := {}) -> bool:
	return _begin(_handle.host(app, JSON.stringify(options)))


## Joins a room or match by its code, its invite link or its id.
func join(app: String, invite: String, options := {}) -> bool:
	return _begin(_handle.join(app, invite, JSON.stringify(options)))


## Opens a match: a room without a host, whose members are equal and send each other `send_data`.
func create_match(app: String, options := {}) -> bool:
	return _begin(_handle.create_match(app, JSON.stringify(options)))


## Takes the seat that an earlier process had, by what `ticket()` gave it.
func resume(app: String, ticket_of_before: String, options := {}) -> bool:
	return _begin(_handle.resume(app, ticket_of_before, JSON.stringify(options)))


## Leaves the room. Waits at most a second for what is still to be sent.
func leave() -> void:
	_is_closed = true
	_handle.leave()


## Ends the room for all, at the host.
func stop() -> void:
	_is_closed = true
	_handle.stop()


func _begin(done: Variant) -> bool:
	_is_closed = done == null
	return not _is_closed


func _process(delta: float) -> void:
	poll(delta)


## Handles what came, and runs the steps that are due. `_process` calls it.
func poll(delta := 0.0) -> void:
	while not _is_closed and _handle.poll() != null:
		_tell(JSON.parse_string(_handle.event_json()))
	if not _is_closed and use_game_time:
		_handle.advance(delta)
	while not _is_closed:
		var json: Variant = _handle.step()
		if json == null:
			break
		var begun: Dictionary = JSON.parse_string(json)
		var step := Step.new()
		step.tick = int(begun.tick)
		step.is_replay = begun.isReplay
		step.is_host = begun.isHost
		stepped.emit(step)


func _tell(event: Dictionary) -> void:
	happened.emit(event)
	match event.type:
		"open":
			opened.emit(event.code)
		"closed":
			_is_closed = true
			closed.emit(event.code, event.message)
		"playerJoined":
			event.player.id = int(event.player.id)
			player_joined.emit(event.player)
		"playerLeft":
			player_left.emit(int(event.id), event.name, event.reason)
		"message":
			message_received.emit(_member(event.from), event.kind, event.value)
		"data":
			data_received.emit(_member(event.from), int(event.op), _handle.event_bytes())
		"bytes":
			bytes_received.emit(_member(event.from), int(event.channel), _handle.event_bytes())
		"action":
			action_requested.emit(_member(event.from), int(event.entity), event.name, event.value)


func _member(from: Variant) -> int:
	return -1 if from is String else int(from)


# How the room is.

func is_open() -> bool:
	return _has(_Flag.OPEN)


func is_host() -> bool:
	return _has(_Flag.HOST)


func is_migrating() -> bool:
	return _has(_Flag.MIGRATING)


func _has(flag: _Flag) -> bool:
	return not _is_closed and _handle.flags() & flag != 0


## This player; NOBODY before the room is open.
func me() -> int:
	return NOBODY if _is_closed else _handle.me()


## The host; NOBODY if there is none.
func host_id() -> int:
	return NOBODY if _is_closed else _handle.host_id()


## Steps per second.
func tick_hz() -> int:
	return 0 if _is_closed else _handle.tick_hz()


## Seconds since the room opened, the same for all members; null if unknown.
func server_time() -> Variant:
	return _handle.time(_Time.SERVER)


## Round trip to the server in seconds; null if unknown.
func ping() -> Variant:
	return _handle.time(_Time.PING)


## The code to share; null before it is known.
func code() -> Variant:
	return _handle.code()


func invite_link() -> Variant:
	return _handle.invite_link()


## With which another process takes this seat. It is a secret.
func ticket() -> Variant:
	return _handle.ticket()


## Path, server, host and so on.
func info() -> Dictionary:
	return JSON.parse_string(_handle.describe(_Topic.INFO))


func diagnostics() -> Dictionary:
	return JSON.parse_string(_handle.describe(_Topic.DIAGNOSTICS))


## All players by id: `{id, name, isHost, isMe, connected, data, …}`.
func players() -> Array:
	return _listed(_Topic.PLAYERS)


func spectators() -> Array:
	return _listed(_Topic.SPECTATORS)


func _listed(topic: _Topic) -> Array:
	if _is_closed:
		return []
	var all: Array = JSON.parse_string(_handle.describe(topic))
	for player: Dictionary in all:
		player.id = int(player.id)
	return all


## Sets a value of player data, which all members see.
func set_player_data(player: int, key: String, value: Variant) -> bool:
	return _handle.set_player_data(player, key, JSON.stringify(value)) != null


func remove_player_data(player: int, key: String) -> bool:
	return _handle.set_player_data(player, key, null) != null


func kick(player: int, reason := "") -> bool:
	return _handle.kick(player, reason) != null


## Hands the host's part over; NOBODY: to whom the server names.
func hand_over(player := NOBODY) -> bool:
	return _handle.hand_over(player) != null


# Steps.

## Says what this player wants in this step.
func send_input(wish: Variant) -> bool:
	return _handle.send_input(JSON.stringify(wish)) != null


## What a player wants in this step; null before its first input.
func input(player: int) -> Variant:
	return _parsed(_handle.input(player))


## Whether to show an effect such as a sound: false where the step that brings it is run again.
func once(effect: String, number: int) -> bool:
	return _handle.once(effect, number) != null


# Keyed state.

## Sets a key, at the host.
func set_value(key: String, value: Variant) -> bool:
	return _handle.set_value(key, JSON.stringify(value)) != null


## Sets a key that only these members see.
func set_value_for(members: PackedInt32Array, key: String, value: Variant) -> bool:
	return _handle.set_value_for(members.to_byte_array(), key, JSON.stringify(value)) != null


## Removes a key; false if there was none.
func remove_value(key: String) -> bool:
	return _handle.remove_value(key) != null


## The value of a key; null if there is none.
func value(key: String, view := View.LATEST) -> Variant:
	return _parsed(_handle.get_value(key, view))


## All keys that begin so.
func keys(prefix := "") -> PackedStringArray:
	var found := PackedStringArray()
	var bytes: PackedByteArray = _handle.keys(prefix)
	var begin := 0
	while begin < bytes.size():
		var end := bytes.find(0, begin)
		found.append(bytes.slice(begin, end).get_string_from_utf8())
		begin = end + 1
	return found


## How values of keys move between updates: `{"angle": ["turret"], "snap": ["gear"]}`.
func declare(prefix: String, hints: Dictionary) -> bool:
	return _handle.declare(prefix, JSON.stringify(hints)) != null


## Predicts a key: what it will be once the host has used this step's input.
func set_predicted(key: String, foreseen: Variant) -> bool:
	return _handle.set_predicted(key, JSON.stringify(foreseen)) != null


func _parsed(json: Variant) -> Variant:
	return null if json == null else JSON.parse_string(json)


# Messages.

## Sends a message. `members` are those of MEMBERS and EXCEPT.
func send(to: To, kind: String, content: Variant = null, lane := Lane.DEFAULT, flags := 0, members := PackedInt32Array()) -> bool:
	return _handle.send(to, members.to_byte_array(), lane, flags, kind, JSON.stringify(content)) != null


## Sends bytes on a channel of the game's own (option `channels`).
func send_bytes(to: To, channel: int, bytes: PackedByteArray, members := PackedInt32Array()) -> bool:
	return _handle.send_bytes(to, members.to_byte_array(), channel, bytes) != null


## Sends data to players of a match.
func send_data(to: To, op: int, bytes: PackedByteArray, is_reliable := true, members := PackedInt32Array()) -> bool:
	return _handle.send_data(to, members.to_byte_array(), op, is_reliable, bytes) != null


# Entities. A row has the numbers of a component's fields; texts and bytes are read with `row_bytes`.

## Asks the host for an action on an entity of one's own.
func act(entity: int, action: String, content: Variant = null) -> bool:
	return _handle.act(entity, action, JSON.stringify(content)) != null


## The number of a component of the room's schema; null if there is none.
func component(of: String) -> Variant:
	return _handle.component(of)


func entities() -> PackedInt64Array:
	var bytes: PackedByteArray = _handle.entities()
	var found := PackedInt64Array()
	for at in range(0, bytes.size(), 4):
		found.append(bytes.decode_u32(at))
	return found


## The owner of an entity; NOBODY if it has none, null if there is no such entity.
func owner_of(entity: int) -> Variant:
	return _handle.owner(entity)


## Spawns an entity, at the host; null if that is refused.
func spawn(owned_by := NOBODY) -> Variant:
	return _handle.spawn(owned_by)


func despawn(entity: int) -> bool:
	return _handle.despawn(entity) != null


func transfer(entity: int, to: int) -> bool:
	return _handle.transfer(entity, to) != null


func set_zone(entity: int, zone: int) -> bool:
	return _handle.set_zone(entity, zone) != null


## A component of numbers alone; empty if the entity has none.
func row(entity: int, number: int, view := View.LATEST) -> PackedFloat64Array:
	return row_bytes(entity, number, view).to_float64_array()


## A component as bytes; empty if the entity has none.
func row_bytes(entity: int, number: int, view := View.LATEST) -> PackedByteArray:
	var bytes: Variant = _handle.read_component(entity, number, view)
	return PackedByteArray() if bytes == null else bytes


func set_row(entity: int, number: int, numbers: PackedFloat64Array) -> bool:
	return set_row_bytes(entity, number, numbers.to_byte_array())


func set_row_bytes(entity: int, number: int, bytes: PackedByteArray) -> bool:
	return _handle.write_component(entity, number, bytes) != null


func remove_row(entity: int, number: int) -> bool:
	return _handle.remove_component(entity, number) != null
