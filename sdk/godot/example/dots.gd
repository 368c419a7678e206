extends Node2D
## Dots: everybody moves a letter. State is a value for each player, which the host writes.
##
## `godot --path sdk/godot` hosts a room and shows its code; `godot --path sdk/godot -- CODE` joins it. It plays with the
## same game in C and in Rust (examples/c, examples/dots). Without a screen (`--headless`) it prints a line for each change.

## The game's name: only players of the same game share a room.
const GAME := "dots"
const SIZE := Vector2i(40, 16)
const CELL := Vector2(20, 20)

var room := ParlorRoom.new()
var title := ""
var shown := {}


func _ready() -> void:
	add_child(room)
	room.opened.connect(func(code: String) -> void: _say("room " + code))
	room.player_joined.connect(func(player: Dictionary) -> void: _say("joined %d" % player.id))
	room.player_left.connect(_on_player_left)
	room.message_received.connect(_on_message)
	room.closed.connect(_on_closed)
	room.stepped.connect(_on_step)
	var codes := OS.get_cmdline_user_args()
	if codes.is_empty():
		room.host(GAME, {"maxPlayers": 8, "hostMigration": true})
	else:
		room.join(GAME, codes[0], {"lead": true})


func _say(line: String) -> void:
	title = line
	print(line)


func _on_player_left(id: int, _name: String, _reason: String) -> void:
	_say("left %d" % id)
	if room.is_host():
		room.remove_value("dot/%d" % id)


func _on_message(from: int, kind: String, _value: Variant) -> void:
	if kind == "horn":
		_say("honks %d" % from)


func _on_closed(_code: String, message: String) -> void:
	printerr(GAME, ": ", message)
	get_tree().quit(1)


## One step: what each player wants becomes its new place.
func _on_step(step: ParlorRoom.Step) -> void:
	var wish := Vector2i(Input.get_vector("ui_left", "ui_right", "ui_up", "ui_down").round())
	room.send_input({"dx": wish.x, "dy": wish.y})
	if not step.is_host:
		return
	for player in room.players():
		var wanted: Variant = room.input(player.id)
		# A player may send anything.
		if wanted is not Dictionary:
			continue
		var key := "dot/%d" % player.id
		var moved := Vector2i(_number(wanted, "dx"), _number(wanted, "dy")).clampi(-1, 1)
		var place := (_place(key, SIZE / 2) + moved).clamp(Vector2i.ZERO, SIZE - Vector2i.ONE)
		room.set_value(key, {"x": place.x, "y": place.y})


func _number(of: Dictionary, name: String) -> int:
	var number: Variant = of.get(name)
	return int(number) if number is float or number is int else 0


func _place(key: String, otherwise: Vector2i) -> Vector2i:
	var dot: Variant = room.value(key)
	return Vector2i(_number(dot, "x"), _number(dot, "y")) if dot is Dictionary else otherwise


func _process(_delta: float) -> void:
	for key in room.keys("dot/"):
		var place := _place(key, SIZE / 2)
		if shown.get(key) != place:
			shown[key] = place
			print("%s at %d %d" % [key.replace("/", " "), place.x, place.y])
	queue_redraw()


func _unhandled_key_input(event: InputEvent) -> void:
	if event.is_action_pressed("ui_accept"):
		room.send(ParlorRoom.To.OTHERS, "horn")
	elif event.is_action_pressed("ui_cancel"):
		get_tree().quit()


func _notification(what: int) -> void:
	if what == NOTIFICATION_WM_CLOSE_REQUEST or what == NOTIFICATION_EXIT_TREE:
		room.leave()


func _draw() -> void:
	var font := ThemeDB.fallback_font
	draw_string(font, Vector2(8, 24), "%s  room %s  arrows move, Enter honks, Esc leaves  %s" % [GAME, room.code(), title])
	draw_rect(Rect2(Vector2(0, 40), Vector2(SIZE) * CELL), Color.DARK_SLATE_GRAY)
	for key in room.keys("dot/"):
		var id := int(key.trim_prefix("dot/"))
		var at := Vector2(_place(key, SIZE / 2)) * CELL + Vector2(2, 56)
		draw_string(font, at, char("A".unicode_at(0) + id % 26), HORIZONTAL_ALIGNMENT_CENTER, CELL.x, 18)
