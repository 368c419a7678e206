extends SceneTree
## A host and a guest in one process: `godot --headless --path sdk/godot --script res://test/play.gd`. PARLOR_SERVER names
## the server. Ends with 0 if all is as it should be.

const PATIENCE_MS := 30_000
const SCHEMA := {"components": [{"name": "tank", "fields": [
	{"name": "at", "kind": "vec2", "min": -256, "max": 256, "step": 0.125},
	{"name": "label", "kind": "text", "bytesMax": 16}]}, {"name": "speed", "fields": [{"name": "metres", "kind": "float", "min": 0, "max": 9, "step": 0.5}]}]}

var host := ParlorRoom.new()
var guest := ParlorRoom.new()
## What came, by its name.
var came := {}
var has_failed := false


func _initialize() -> void:
	root.add_child(host)
	root.add_child(guest)
	_play()


## Ends the test with what is not so.
func _check(is_so: bool, what: String) -> void:
	if not is_so and not has_failed:
		has_failed = true
		printerr("not so: ", what)
		quit(1)


## Waits until something is so.
func _until(is_so: Callable, what: String) -> void:
	var due := Time.get_ticks_msec() + PATIENCE_MS
	while not is_so.call():
		_check(Time.get_ticks_msec() < due, what)
		if has_failed:
			return
		await process_frame


func _play() -> void:
	host.stepped.connect(_on_step.bind(host))
	guest.stepped.connect(_on_step.bind(guest))
	host.message_received.connect(func(from: int, kind: String, value: Variant) -> void: came["message"] = [from, kind, value])
	guest.bytes_received.connect(func(from: int, channel: int, bytes: PackedByteArray) -> void: came["bytes"] = [from, channel, bytes])
	host.action_requested.connect(func(from: int, entity: int, name: String, value: Variant) -> void: came["action"] = [from, entity, name, value])
	_check(not host.host("tests", {"maxPlayer": 2}), "a misspelt option is refused")
	_check(host.host("tests", {"name": "Ada", "channels": {"20": "ordered"}, "schema": SCHEMA}), "the room opens")
	await _until(host.is_open, "the room is open")
	_check(guest.join("tests", host.code(), {"name": "Bob", "channels": {"20": "ordered"}}), "the guest joins")
	await _until(func() -> bool: return host.players().size() == 2 and guest.players().size() == 2, "both are there")
	_check(guest.me() == 1 and guest.host_id() == 0 and host.is_host() and not guest.is_host(), "who is who")
	await _state()
	await _messages()
	await _world()
	guest.leave()
	await _until(func() -> bool: return host.players().size() == 1, "the guest has left")
	host.stop()
	await _match()
	if not has_failed:
		print("played")
		quit(0)


func _on_step(step: ParlorRoom.Step, room: ParlorRoom) -> void:
	# A match has no host, and nobody to take an input.
	if room.host_id() == ParlorRoom.NOBODY:
		return
	room.send_input({"tick": step.tick})
	if step.is_host and room.input(1) != null:
		room.set_value("input", room.input(1))


func _state() -> void:
	_check(host.set_value("round", {"n": 3, "who": ["ö", null, true]}), "a key is set")
	_check(not guest.set_value("round", 1), "a guest sets none")
	await _until(func() -> bool: return guest.value("round") != null, "the guest has it")
	_check(guest.value("round") == {"n": 3.0, "who": ["ö", null, true]} or guest.value("round") == {"n": 3, "who": ["ö", null, true]}, "it is the same")
	await _until(func() -> bool: return guest.value("input") is Dictionary, "the host has the guest's input")
	_check(guest.keys() == PackedStringArray(["input", "round"]), "its keys")
	_check(host.remove_value("round") and not host.remove_value("round"), "it is removed once")


func _messages() -> void:
	_check(guest.send(ParlorRoom.To.HOST, "chat", "hi"), "a message is sent")
	await _until(func() -> bool: return came.has("message"), "it arrives")
	_check(came.message == [1, "chat", "hi"], "it is the same")
	_check(host.send_bytes(ParlorRoom.To.MEMBERS, 20, PackedByteArray([1, 0, 255]), PackedInt32Array([1])), "bytes are sent")
	await _until(func() -> bool: return came.has("bytes"), "they arrive")
	_check(came.bytes == [0, 20, PackedByteArray([1, 0, 255])], "they are the same")
	_check(guest.set_player_data(1, "ready", true), "player data is set")
	await _until(func() -> bool: return host.players()[1].data.get("ready") == true, "the host has it")


func _world() -> void:
	var tank: int = host.component("tank")
	var speed: int = host.component("speed")
	var entity: int = host.spawn(1)
	var row := PackedFloat64Array([1.5, -2.0]).to_byte_array() + PackedByteArray([2, 0, 0, 0]) + "ok".to_utf8_buffer()
	_check(host.set_row_bytes(entity, tank, row) and host.set_row(entity, speed, PackedFloat64Array([4.5])), "components are set")
	await _until(func() -> bool: return guest.entities() == PackedInt64Array([entity]), "the guest sees the entity")
	await _until(func() -> bool: return guest.row_bytes(entity, tank) == row, "it is the same")
	_check(guest.row(entity, speed) == PackedFloat64Array([4.5]) and guest.owner_of(entity) == 1, "so is the rest")
	_check(guest.act(entity, "fire", 0.5), "an action is asked for")
	await _until(func() -> bool: return came.has("action"), "it arrives")
	_check(came.action == [1, entity, "fire", 0.5], "it is the same")
	_check(host.despawn(entity), "the entity goes")
	await _until(func() -> bool: return guest.entities().is_empty(), "the guest sees that")


func _match() -> void:
	var data := []
	host.data_received.connect(func(from: int, op: int, bytes: PackedByteArray) -> void: data.append([from, op, bytes]))
	_check(host.create_match("tests"), "a match opens")
	await _until(host.is_open, "the match is open")
	_check(guest.join("tests", host.code()), "the other one joins")
	await _until(guest.is_open, "it is in")
	_check(guest.send_data(ParlorRoom.To.OTHERS, -7, "go".to_utf8_buffer()), "data is sent")
	await _until(func() -> bool: return not data.is_empty(), "it arrives")
	_check(data == [[1, -7, "go".to_utf8_buffer()]], "it is the same")
	guest.leave()
	host.leave()
