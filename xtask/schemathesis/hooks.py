"""What schemathesis cannot guess: for each operation an input that the server can do, with rooms that it makes for it. It notes
which operation answered what, so that run.py can tell whether each was done at all.
"""

import atexit
import itertools
import json
import os
import re
import subprocess
import threading
import time

import requests
import schemathesis

URL = os.environ["PARLOR_URL"]
TOKENS = json.loads(os.environ["PARLOR_TOKENS"])
ROLE = os.environ["PARLOR_ROLE"]
APP = "magpies"
numbers = itertools.count()


@schemathesis.hook
def before_add_examples(context, examples):
    operation = context.operation
    roles = operation.definition.raw.get("x-roles", [ROLE])
    make = INPUTS.get(operation.definition.raw["operationId"])
    if ROLE in roles and make is not None:
        examples.insert(0, operation.Case(**make()))


@schemathesis.hook
def after_call(context, case, response):
    # Methods that an operation does not have are asked for, too.
    if case.method.upper() == case.operation.method.upper():
        note(case.operation.definition.raw["operationId"], response.status_code)


def note(operation, status):
    with open(os.environ["PARLOR_SEEN"], "a") as seen:
        seen.write(f"{operation} {status}\n")


def ask(method, path, token=None, **body):
    """The answer. Schemathesis spends what an account may ask for, so this asks again when the server says that it may."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    for _ in range(20):
        response = requests.request(method, f"{URL}/v1{path}", json=body, headers=headers, timeout=10)
        if response.status_code != 429:
            break
        time.sleep(response.json()["error"]["retry_after_ms"] / 1000)
    assert response.status_code == 200, f"{method} {path}: {response.text}"
    return response.json()


class Player:
    """Somebody else, or the player whom the tests are for."""

    def __init__(self, token=None):
        self.refresh_token = None
        self.device = f"the device number {next(numbers):>6}"
        if token is None:
            signed_in = ask("POST", "/auth/device", app=APP, device=self.device, name="bob")
            token, self.refresh_token = signed_in["access_token"], signed_in["refresh_token"]
        self.token = token
        self.id = ask("GET", "/account", token)["account"]["id"] if token != "" else None

    def ask(self, method, path, **body):
        return ask(method, path, self.token, **body)

    def room(self, *others, **config):
        """Opens a room, and others join it."""
        config = {"auto_start": False, "players": {"min": 2, "max": 4}, **config}
        room = self.ask("POST", "/rooms", config=config)["room"]
        for other in others:
            other.ask("POST", f"/rooms/{room['id']}/join")
        return room

    def game(self, *others, **config):
        """Opens a room in which a game goes on; it is this player's turn."""
        room = self.room(*others, turn_based=True, **config)
        order = [self.id, *(other.id for other in others)]
        return self.ask("POST", f"/rooms/{room['id']}/start", turn_order=order)["room"]

    def move(self, room, **more):
        move = {"type": "put", "data": {"cell": 4}, "state": {"last": 4}, **more}
        return self.ask("POST", f"/rooms/{room['id']}/moves", **move)["room"]


def me():
    return Player(TOKENS["player"])


def host():
    """Whose rooms are acted upon: a player's own, or, for operators, anybody's."""
    return me() if ROLE == "player" else Player()


def at(room, **more):
    return {"path_parameters": {"room": room["id"], **more}}


def body(**fields):
    return {"body": fields, "media_type": "application/json"}


def a_whole_room():
    """With a move that was made, one that waits, words, data and metadata."""
    owner, other = host(), Player()
    room = owner.game(other, quorum="all", turn_timeout_ms=60_000, roles=["white", "black"])
    proposal = owner.move(room)["proposals"][0]["id"]
    other.ask("POST", f"/rooms/{room['id']}/moves/{proposal}/verdict", accept=True)
    owner.ask("PATCH", f"/rooms/{room['id']}", data={"mood": "tense"}, metadata={"league": 3})
    other.move(room)
    return at(room)


def a_move_to_judge():
    judge, mover = me(), Player()
    room = mover.game(judge, quorum="all")
    return {**at(room, proposal=mover.move(room)["proposals"][0]["id"]), **body(accept=False, reason="no")}


def a_game_to_end():
    owner, other = host(), Player()
    return {**at(owner.game(other)), **body(winner=other.id, reason="agreed")}


def an_inbox():
    player, other = me(), Player()
    room = player.game(other, notifications={"on_turn_start": {"title": "Your turn", "body": "{{roomName}}"}})
    player.move(room)
    other.ask("POST", f"/rooms/{room['id']}/messages", type="chat", body="hello")
    other.move(room)
    other.ask("POST", f"/rooms/{room['id']}/resign")
    return {"query": {"after": 0, "limit": 100}}


def a_room_to_find():
    Player().ask("POST", "/rooms", metadata={"league": 3})
    return {"query": {"criteria": json.dumps({"metadata": {"league": 3}}), "limit": 10}}


def a_banned_account():
    account = Player().id
    ask("POST", "/admin/bans", TOKENS["admin"], account=account, reason="cheated", for_s=60)
    return account


def an_account_that_is_gone():
    """An account deletes itself alone, and the one that all is asked with must stay: another one is deleted here."""
    account = Player()
    account.ask("POST", "/account/delete", account=account.id)
    note("account.delete", 200)
    return body(account=account.id)


def a_linked_device():
    device = f"another device number {next(numbers):>6}"
    me().ask("POST", "/account/credentials", device="a device that stays")
    me().ask("POST", "/account/credentials", device=device)
    return body(device=device)


def kicked():
    owner, other = host(), Player()
    return {**at(owner.room(other)), **body(player=other.id, reason="rude")}


def started():
    owner, other = me(), Player()
    return {**at(owner.room(other)), **body(turn_order=[other.id, owner.id])}


def moved():
    owner, other = me(), Player()
    room = owner.game(other)
    move = body(type="put", data={"cell": 1}, state={"last": 1}, state_version=room["state_version"])
    return {**at(room), **move}


def running(*command, said):
    """Somebody plays in a process of its own, and says in which room."""
    command = [os.environ["PARLOR_BINARY"], *command, "--server", os.environ["PARLOR_SERVER"]]
    player = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    atexit.register(player.kill)
    for line in player.stdout:
        if room := re.search(said, line):
            # What it says from here on goes nowhere, and must not hold it up.
            threading.Thread(target=player.stdout.read, daemon=True).start()
            return room[1]
    raise AssertionError("the room did not open")


def a_room_in_memory():
    return running("play", "--headless", said=r"room (\w+)")


def in_memory(**more):
    return {"path_parameters": {"code": a_room_in_memory(), **more}}


def a_kept_match():
    """One that the player whom the tests are for opened, as far as the store has it."""
    ticket = me().ask("POST", "/admission", create=True)["token"]
    match = running("match", "--keep", "--app", APP, "--token", ticket, said=r"^match (\w+)")
    for _ in range(100):
        kept = me().ask("GET", "/matches/kept")["matches"]
        if any(one["id"] == match and one["entries"] > 1 for one in kept):
            return match
        time.sleep(0.05)
    raise AssertionError("the match was not kept")


def kept(**more):
    return {"path_parameters": {"match": a_kept_match()}, **more}


def subject():
    """Whose scores are submitted: a player's own, or, for the game's service, anybody's."""
    return {} if ROLE == "player" else {"account": Player().id}


def a_board():
    """One with entries of two players, one of whom the tests are for if they are for a player."""
    name = f"board-{next(numbers)}"
    ask("POST", "/admin/boards", TOKENS["server"], board=name, definition={"writers": "players"})
    for player in (host(), Player()):
        player.ask("POST", f"/boards/{name}/scores", score=7, sub=1, extra={"car": "red"})
    return name


def on_board(**more):
    return {"path_parameters": {"board": a_board()}, **more}


def on_board_with(player, **more):
    """On a board with an entry of this player."""
    name = a_board()
    player.ask("POST", f"/boards/{name}/scores", score=9)
    return {"path_parameters": {"board": name}, **more}


def a_removed_entry():
    player = host()
    return on_board_with(player, **body(**({} if ROLE == "player" else {"account": player.id})))


def around():
    player = host()
    return on_board_with(player, query={"count": 3, "account": player.id})


def a_definition(kind, **definition):
    name = f"{kind}-{next(numbers)}"
    ask("POST", "/admin/definitions", TOKENS["server"], kind=kind, name=name, definition=definition)
    return name


def a_write():
    statistic = a_definition("statistic", writers="players", totals=True)
    return body(writes=[{"statistic": statistic, "add": 3, "id": "one"}], **subject())


def on_achievement():
    name = a_definition("achievement", writers="players", count=3, title="Walker")
    return {"path_parameters": {"achievement": name}, **body(add=3, id="one", **subject())}


def whose():
    return {"query": {"limit": 10, "account": host().id}}


def a_result():
    ladder = a_definition("ladder", title="Duels")
    teams = [{"players": [Player().id], "place": place} for place in (1, 2)]
    return {"path_parameters": {"ladder": ladder}, **body(id="one", teams=teams)}


def an_object():
    player = host()
    player.ask("POST", "/storage", objects=[{"collection": "loadouts", "name": "heavy", "value": {"tank": "T-9"}}])
    return {"collection": "loadouts", "name": "heavy", **({} if ROLE == "player" else {"owner": player.id})}


def another():
    return body(account=Player().id)


def a_request():
    other = Player()
    other.ask("POST", "/friends", account=host().id)
    return body(account=other.id)


def a_lobby(player=None):
    """One whose owner is the player that the tests are for."""
    player = player or me()
    own = [lobby for lobby in player.ask("GET", "/lobbies/mine")["lobbies"] if lobby["owner"] == player.id]
    return own[0] if own else player.ask("POST", "/lobbies", max=64, properties={"level": 7})["lobby"]


def in_lobby(lobby=None, **more):
    return {"path_parameters": {"lobby": (lobby or a_lobby())["id"]}, **more}


def a_lobby_with(other):
    lobby = a_lobby()
    other.ask("POST", "/lobbies/join", lobby=lobby["id"])
    return lobby


def with_another():
    other = Player()
    return in_lobby(a_lobby_with(other), **body(account=other.id))


def an_invited_friend():
    other = Player()
    other.ask("POST", "/friends", account=me().id)
    me().ask("POST", "/friends", account=other.id)
    return in_lobby(**body(account=other.id))


INPUTS = {
    "matchmaking.queues": lambda: a_definition("queue", title="Duels") and {},
    "matchmaking.offer": lambda: body(queue=a_definition("queue", offers="players"), code=host().room()["code"], seats=1),
    "matchmaking.withdraw": lambda: body(queue=a_definition("queue"), code="K7QM"),
    "lobby.create": lambda: body(kind="lobby", max=4, name="Mill", properties={"level": 7}, mine={"ready": 1}),
    "lobby.find": lambda: a_lobby(Player()) and body(count=5, order="fullest", filter={"level": {"ge": 5}}),
    "lobby.mine": lambda: a_lobby() and {},
    "lobby.read": lambda: in_lobby(),
    "lobby.join": lambda: body(lobby=a_lobby(Player())["id"], mine={"ready": 1}),
    "lobby.leave": lambda: in_lobby(**body()),
    "lobby.decline": lambda: in_lobby(**body()),
    "lobby.update": lambda: in_lobby(**body(name="Dust", properties={"level": None})),
    "lobby.update_me": lambda: in_lobby(**body(properties={"ready": 1})),
    "lobby.invite": an_invited_friend,
    "lobby.kick": with_another,
    "lobby.promote": with_another,
    "lobby.say": lambda: in_lobby(**body(type="chat", body={"text": "hello"})),
    "lobby.room": lambda: in_lobby(**body()),
    "admin.lobbies": lambda: a_lobby(Player()) and {"query": {"limit": 5}},
    "admin.end_lobby": lambda: in_lobby(a_lobby(Player()), **body()),
    "friend.list": lambda: a_request() and {"query": {"limit": 10}},
    "friend.ask": another,
    "friend.accept": a_request,
    "friend.remove": a_request,
    "friend.block": another,
    "friend.unblock": another,
    "friend.new_code": lambda: body(),
    "admin.define": lambda: body(kind="statistic", name=f"statistic-{next(numbers)}", definition={"title": "Kills"}),
    "admin.undefine": lambda: body(kind="ladder", name=a_definition("ladder")),
    "admin.definitions": lambda: a_definition("ladder") and {},
    "statistic.list": whose,
    "statistic.write": a_write,
    "statistic.totals": lambda: {
        "path_parameters": {"statistic": a_definition("statistic", totals=True)}, "query": {"days": 7}
    },
    "achievement.list": whose,
    "achievement.write": on_achievement,
    "rating.read": lambda: {"path_parameters": {"ladder": a_definition("ladder")}, "query": {"account": host().id}},
    "rating.report": a_result,
    "storage.read": lambda: body(objects=[an_object()]),
    "storage.list": lambda: an_object() and {"query": {"collection": "loadouts", "owner": host().id}},
    "storage.write": lambda: body(objects=[{"collection": "levels", "name": "one", "value": {"map": "mill"}}]),
    "storage.remove": lambda: body(objects=[an_object()]),
    "admin.define_board": lambda: body(
        board=f"board-{next(numbers)}",
        definition={"title": "Laps", "order": "least", "keep": "best", "min": 1, "max": 9, "reset": "0 4 * * 1"},
    ),
    "admin.delete_board": lambda: body(board=a_board()),
    "board.list": lambda: a_board() and {"query": {"limit": 10}},
    "board.submit": lambda: {**on_board(), **body(score=3, sub=1, id="one", extra={"car": "red"}, **subject())},
    "board.submit_many": lambda: body(scores=[{"board": a_board(), "score": 3, "id": "one", **subject()}]),
    "board.top": lambda: on_board(query={"from": 1, "count": 10}),
    "board.around": around,
    "board.of": lambda: {**on_board(), **body(accounts=[Player().id])},
    "board.seasons": on_board,
    "board.remove": a_removed_entry,
    "admission.ticket": lambda: body(create=True),
    "admin.live_rooms": lambda: a_room_in_memory() and {"query": {"limit": 10}},
    "admin.live_room": lambda: in_memory(),
    "admin.end_live_room": lambda: {**in_memory(), **body(reason="it is late")},
    "admin.remove_member": lambda: {**in_memory(member=0), **body(reason="rude")},
    "auth.guest": lambda: body(app=APP, name="ada"),
    "auth.device": lambda: body(app=APP, device="a device that is long enough"),
    "auth.email": lambda: body(app=APP, email=f"{next(numbers)}@example.com", password="12345678", create=True),
    "auth.custom": lambda: body(custom="7", name="cid"),
    "auth.refresh": lambda: body(app=APP, refresh_token=Player().refresh_token),
    "auth.sign_out": lambda: body(app=APP, refresh_token=Player().refresh_token),
    "account.sign_out_everywhere": lambda: body(),
    "account.rename": lambda: body(name="Ada"),
    "account.link": lambda: body(device=f"one more device number {next(numbers):>6}"),
    "account.unlink": a_linked_device,
    "account.delete": an_account_that_is_gone,
    "inbox.read": an_inbox,
    "inbox.acknowledge": lambda: body(up_to=1),
    "turn.create": lambda: body(config={"turn_based": True, "players": {"min": 2, "max": 3}}, name="Noughts"),
    "turn.join_or_create": lambda: body(
        config={"rules": "draughts"}, player_name="ada", criteria={"rules": "draughts", "metadata": {"league": 3}}
    ),
    "turn.list": a_room_to_find,
    "turn.join_by_code": lambda: body(code=Player().room()["code"]),
    "turn.read": a_whole_room,
    "turn.update": lambda: {**at(me().room()), **body(name="Other", visibility="private", data={"a": {"b": None}})},
    "turn.join": lambda: {**at(Player().room()), **body(name="ada")},
    "turn.leave": lambda: {**at(me().room()), **body()},
    "turn.delete": lambda: {**at(host().room()), **body()},
    "turn.kick": kicked,
    "turn.say": lambda: {**at(me().room()), **body(type="chat", body={"text": "hello"})},
    "turn.start": started,
    "turn.propose": moved,
    "turn.validate": a_move_to_judge,
    "turn.resign": lambda: {**at(me().game(Player())), **body()},
    "turn.end": a_game_to_end,
    "match.list": lambda: a_kept_match() and {"query": {"min_members": 1, "open_seats": True, "limit": 10}},
    "match.kept": lambda: a_kept_match() and {"query": {"limit": 10}},
    "match.log": lambda: kept(query={"from": 0, "limit": 10}),
    "match.forget": lambda: kept(**body()),
    "admin.ban": lambda: body(account=Player().id, reason="cheated", for_s=60),
    "admin.lift_ban": lambda: body(account=a_banned_account()),
    "admin.set_role": lambda: body(account=Player().id, role="server"),
    "admin.delete_account": lambda: body(account=Player().id),
    "admin.export_account": lambda: {"query": {"account": Player().id}},
    "admin.backup": lambda: body(),
    "admin.bans": lambda: a_banned_account() and {},
    "admin.rooms": lambda: Player().room() and {"query": {"limit": 10}},
}
