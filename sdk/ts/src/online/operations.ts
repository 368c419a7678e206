// Made by scripts/operations.mjs from a server's /v1/openapi.json. docs/online.md says what each operation does.

/** What JSON can hold. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
/** An object of JSON. */
export type JsonObject = { [name: string]: Json };

/** An account, as its owner sees it. */
export interface AccountView {
  created_ms: number;
  id: string;
  kind: "guest" | "device" | "custom" | "email";
  name: string;
  role: "player" | "server" | "admin";
}

/** An achievement with a player's progress. */
export interface AchievementView {
  achievement: string;
  description?: string | null;
  goal: number;
  hidden: boolean;
  players: number;
  points: number;
  progress: number;
  statistic?: string | null;
  title?: string | null;
  unlocked_by: number;
  unlocked_ms?: number | null;
}

/** An entry. */
export interface BoardEntryView {
  account: string;
  at_ms: number;
  extra?: JsonObject | null;
  name?: string | null;
  position: number;
  rank: number;
  score: number;
  sub: number;
  tries?: number | null;
}

/** What a submission does to an entry. */
export type BoardKeep = "best" | "last" | "sum";

/** Which scores are better. */
export type BoardOrder = "most" | "least";

/** A board. */
export interface BoardView {
  attempts?: number | null;
  board: string;
  closes_ms?: number | null;
  ends_ms?: number | null;
  keep: BoardKeep;
  opens_ms?: number | null;
  order: BoardOrder;
  season: number;
  seats?: number | null;
  title: string;
  version: number;
  writers: BoardWriters;
}

/** Who may submit. */
export type BoardWriters = "players" | "server" | "rules";

/** The result of one check of a move. */
export type Check = "not_applicable" | "pending" | "valid" | "invalid" | "disputed" | "superseded";

/** The results of a move's checks. */
export interface Checks {
  peers: Check;
  rules: Check;
  server: Check;
}

/** Which fields the creator of a room, and later its host, may override. */
export interface ClientsMay {
  code?: boolean;
  max_players?: boolean;
  metadata?: boolean;
  name?: boolean;
  visibility?: boolean;
}

/** Comparisons of a property. Numbers are compared with numbers and texts with texts, by their bytes. */
export interface Comparisons {
  eq?: Property | null;
  exists?: boolean | null;
  ge?: Property | null;
  gt?: Property | null;
  le?: Property | null;
  lt?: Property | null;
  ne?: Property | null;
}

/** A condition on one property: a value that it has, several of which it has one, or comparisons which all must hold. */
export type Condition = Property | Property[] | Comparisons;

/** A room's configuration. `docs/turn-rooms.md` describes each field and its default. */
export interface Config {
  auto_start?: boolean | null;
  clients_may?: ClientsMay;
  game?: string | null;
  late_join?: boolean | null;
  limits?: Limits;
  metadata?: JsonObject;
  moves?: Moves;
  name?: string | null;
  notifications?: Notifications;
  on_timeout?: OnTimeout;
  players?: Players;
  quorum?: Quorum;
  role_assignment?: RoleAssignment;
  roles?: string[];
  rules?: string | null;
  spectators?: boolean;
  state?: JsonObject;
  turn_based?: boolean | null;
  turn_timeout_ms?: number | null;
  validation_timeout_ms?: number;
  visibility?: Visibility;
}

/** Who wrote a room's configuration. */
export type ConfiguredBy = "creator" | "operator";

/** A way to sign in. */
export interface CredentialView {
  kind: "device" | "custom" | "email";
  value: string | null;
}

/** The outcome of a move. */
export interface Decided {
  checks: Checks;
  id: ProposalId;
  player: string;
  type: string;
  why: string | null;
}

/** Something that happened in a match. */
export interface EntryView {
  at_ms: number;
  number: number;
  what: Happened;
}

/** A player of a match. */
export interface FoundPlayer {
  account: string;
  name: string;
  points: number;
}

/** A match that was found. */
export interface FoundView {
  backfill: boolean;
  room: LobbyRoom;
  teams: FoundPlayer[][];
}

/** Another player on the list. */
export interface FriendView {
  account: string;
  join?: string | null;
  name: string;
  online: boolean;
  since_ms: number;
  state: "friend" | "asked" | "asks" | "blocked";
  status?: string | null;
}

/** The result of a game. */
export interface GameResult {
  ended: UnixMillis;
  finisher: string | null;
  reason: string;
  winner: string | null;
}

/** What happened. */
export type Happened = { kind: "opened"; label: string; members_max: number } | { kind: "joined"; member: number; name: string; user: string | null } | { kind: "left"; member: number; reason: string | null; why: string } | { from: number; kind: "data"; op: number; order: number; payload: string; to: number[] } | { kind: "ended" } | { kind: "cut"; why: string };

/** A match that is kept. */
export interface KeptView {
  bytes: number;
  cut: string | null;
  ended_at_ms: number | null;
  ending: string | null;
  entries: number;
  id: string;
  label: string;
  opened_at_ms: number;
}

/** Size limits. */
export interface Limits {
  move_bytes?: number;
  proposals?: number;
  state_bytes?: number;
}

/** A match that can be joined. */
export interface LiveMatch {
  id: string;
  label: string;
  max_members: number;
  members: number;
  opened_at_ms: number;
}

/** Who may join without an invitation or the code. */
export type LobbyAccess = "public" | "friends" | "private";

/** The kind of a lobby. */
export type LobbyKind = "lobby" | "party";

/** Where a lobby goes on. */
export interface LobbyRoom {
  code: string;
  kind: string;
}

/** A lobby as somebody may see it. */
export interface LobbyView {
  access: LobbyAccess;
  bucket: string;
  code?: string | null;
  friends?: number | null;
  id: string;
  invited?: string[] | null;
  kind: LobbyKind;
  locked: boolean;
  max: number;
  members?: MemberView[] | null;
  name: string;
  owner: string;
  properties: { [name: string]: Property };
  ready: number;
  room?: LobbyRoom | null;
  size: number;
  version: number;
}

/** How many players a match has. */
export interface MatchPlayers {
  max: number;
  min: number;
  multiple?: number;
}

/** A member of a lobby. */
export interface MemberView {
  account: string;
  here: boolean;
  name: string;
  properties: { [name: string]: Property };
}

/** The requirements of a move type. */
export interface MoveType {
  required_fields?: string[];
}

/** The moves of each phase. An omitted phase allows none, except `playing`, which then allows any. */
export interface Moves {
  ended?: { [name: string]: MoveType } | null;
  playing?: { [name: string]: MoveType } | null;
  waiting?: { [name: string]: MoveType } | null;
}

/** Something that happened. */
export interface NoticeView {
  at_ms: number;
  kind: "player_joined" | "player_left" | "player_kicked" | "player_forfeited" | "host_changed" | "game_started" | "turn_started" | "your_turn" | "turn_skipped" | "move_proposed" | "move_made" | "move_rejected" | "game_over" | "room_paused" | "room_resumed" | "room_updated" | "message" | "push";
  notice: Told;
  seq: number;
}

/** Push notifications for absent players. Omitted ones are not sent. */
export interface Notifications {
  on_game_end?: Template | null;
  on_turn_start?: Template | null;
}

/** Which object. */
export interface ObjectId {
  collection: string;
  name: string;
  owner?: string | null;
}

/** Who may read an object, besides the game's own service. */
export type ObjectReaders = "owner" | "everyone" | "server";

/** An object. */
export interface ObjectView {
  changed_ms: number;
  collection: string;
  name: string;
  owner: string;
  readers: ObjectReaders;
  value: JsonObject;
  version: number;
  writers: ObjectWriters;
}

/** Who may write an object, besides the game's own service. */
export type ObjectWriters = "owner" | "server";

/** What happens to a player whose turn times out. */
export type OnTimeout = "forfeit" | "skip";

/** The phase of a game. */
export type Phase = "waiting" | "playing" | "ended";

/** A player in a room. */
export interface Player {
  id: string;
  joined: UnixMillis;
  name: string;
  role: string | null;
  status: Status;
}

/** The number of players. */
export interface Players {
  max?: number | null;
  min?: number | null;
  usual?: number | null;
}

/** A value: a whole number or a text. */
export type Property = number | string;

/** The number of a proposed move. Each room counts its own, from 1, without reuse. */
export type ProposalId = number;

/** A move that waits for votes. */
export interface ProposalView {
  accepted_by: string[];
  checks: Checks;
  data: Json;
  deadline: UnixMillis;
  id: ProposalId;
  player: string;
  proposed: UnixMillis;
  rejected_by: string[];
  state: JsonObject | null;
  type: string;
  waiting_for: string[];
}

/** A queue. */
export interface QueueView {
  found: number;
  max_players: number;
  min_players: number;
  offers: number;
  queue: string;
  title: string;
  wait_ms?: number | null;
  waiting: number;
}

/** Which other players must accept a move. */
export type Quorum = "none" | "all" | "majority";

/** An object to remove. */
export interface RemoveObject {
  collection: string;
  name: string;
  owner?: string | null;
  version?: number | null;
}

/** How roles are assigned. */
export type RoleAssignment = "random" | "assigned" | "first_come";

/** A message of a room. */
export interface RoomMessage {
  at_ms: number;
  body: Json;
  name: string;
  number: number;
  player: string;
  type: string;
}

/** A room as its reader sees it. */
export interface RoomView {
  admins: string[];
  code: string | null;
  configured_by: ConfiguredBy;
  created: UnixMillis;
  created_by: string;
  current_player: string | null;
  data: JsonObject;
  decided: Decided[];
  game: string;
  host: string | null;
  id: string;
  last_proposal: ProposalId | null;
  max_players: number;
  metadata: JsonObject;
  name: string;
  optimistic_state: JsonObject | null;
  phase: Phase;
  player_count: number;
  players: Player[];
  proposals: ProposalView[];
  result: GameResult | null;
  rules: string | null;
  state: JsonObject;
  state_version: number;
  status: "active" | "paused" | "archived";
  turn_based: boolean;
  turn_count: number;
  turn_deadline: UnixMillis | null;
  turn_order: string[];
  updated: UnixMillis;
  version: number;
  visibility: Visibility;
}

/** A save without what the game saved. */
export interface SaveView {
  at_ms: number;
  description: string;
  device: string;
  replaced_ms?: number | null;
  size: number;
  slot: string;
  title: string;
  version: number;
}

/** The order of what is found. */
export type SearchOrder = "newest" | "fullest";

/** A season. */
export interface SeasonView {
  entries: number;
  season: number;
}

/** A statistic of a player. */
export interface StatisticView {
  changed_ms: number;
  statistic: string;
  title?: string | null;
  value: number;
}

/** What a write has made of a statistic. */
export interface StatisticWrittenView {
  again: boolean;
  statistic: string;
  value: number;
}

/** Whether a seated player takes part in the game. */
export type Status = "active" | "resigned" | "timed_out";

/** A room's entry in a list of rooms. */
export interface Summary {
  configured_by: ConfiguredBy;
  created: UnixMillis;
  game: string;
  id: string;
  max_players: number;
  metadata: JsonObject;
  name: string;
  phase: Phase;
  player_count: number;
  rules: string | null;
  status: "active" | "paused" | "archived";
  updated: UnixMillis;
  version: number;
  visibility: Visibility;
}

/** A text with variables such as `{{room_name}}`. */
export interface Template {
  body: string;
  title: string;
}

/** What a notice says, as inboxes and webhooks have it. */
export interface Told {
  body: JsonObject;
  room: string;
  seq: number;
}

/** What a subscriber of a room is told of. */
export type Topic = "data" | "messages" | "game";

/** A total. */
export interface TotalView {
  day: number;
  players: number;
  total: number;
  writes: number;
}

/** The time of day in milliseconds since 1970: the only clock that rooms, which outlive processes, can use. */
export type UnixMillis = number;

/** Whether a room is listed. */
export type Visibility = "public" | "private";

/** An object to write. */
export interface WriteObject {
  collection: string;
  name: string;
  owner?: string | null;
  readers?: ObjectReaders | null;
  value: JsonObject;
  version?: number | null;
  writers?: ObjectWriters | null;
}

/** A write to a statistic. It has either `add` or `set`. */
export interface WriteStatistic {
  add?: number | null;
  id?: string | null;
  set?: number | null;
  statistic: string;
}

/** What a player may ask of a server, by its name: its input and its output. */
export interface Operations {
  /** Deletes the account: it leaves its rooms, and nobody can sign in to it any more. `/v1/account/delete` over HTTP. */
  "account.delete": { in: { account: string }; out: { done: true } };
  /** Gives all that is stored about the account, part by part. `/v1/account/export` over HTTP. */
  "account.export": { in: { after?: string }; out: { entries: Json[]; kind: "account" | "sign_ins" | "rooms" | "inbox" | "matches" | "boards" | "saves" | "objects" | "statistics" | "achievements" | "ratings" | "friends" | "messages"; next?: string | null } };
  /** Gives the account one more way to sign in. `/v1/account/credentials` over HTTP. */
  "account.link": { in: { device?: string | null; email?: string | null; password?: string | null }; out: { done: true } };
  /** Says whose token this is, and how one can sign in to the account. `/v1/account` over HTTP. */
  "account.me": { in: Record<never, never>; out: { account: AccountView; credentials: CredentialView[] } };
  /** Gives the account another name for others to see. `/v1/account` over HTTP. */
  "account.rename": { in: { name: string }; out: { done: true } };
  /** Ends all sign-ins of the account: no refresh token is good any more, and its sockets close. `/v1/account/sign-out-everywhere` over HTTP. */
  "account.sign_out_everywhere": { in: Record<never, never>; out: { done: true } };
  /** Takes a way to sign in from the account. `/v1/account/credentials/remove` over HTTP. */
  "account.unlink": { in: { device?: string | null; email?: string | null }; out: { done: true } };
  /** Lists the game's achievements with a player's progress. `/v1/achievements` over HTTP. */
  "achievement.list": { in: { account?: string; after?: string; limit?: number }; out: { achievements: AchievementView[]; next?: string | null } };
  /** Writes a player's progress of an achievement. `/v1/achievements/{achievement}` over HTTP. */
  "achievement.write": { in: { achievement: string; account?: string | null; add?: number | null; id?: string | null; reset?: boolean; to?: number | null; unlock?: boolean }; out: { achievement: AchievementView; unlocked: boolean } };
  /** Gives a ticket with which the player comes into a realtime room, or opens one, as its account. `/v1/admission` over HTTP. */
  "admission.ticket": { in: { create?: boolean; room?: string | null }; out: { expires_in_s: number; token: string } };
  /** Signs in by the id of a device, and makes the account the first time. `/v1/auth/device` over HTTP. */
  "auth.device": { in: { app: string; device: string; environment?: string; name?: string | null }; out: { access_token: string; account: AccountView; expires_in_s: number; refresh_token: string } };
  /** Signs in by an e-mail address and a password. `/v1/auth/email` over HTTP. */
  "auth.email": { in: { app: string; create?: boolean; email: string; environment?: string; name?: string | null; password: string }; out: { access_token: string; account: AccountView; expires_in_s: number; refresh_token: string } };
  /** Makes an account that nothing but its tokens leads to. `/v1/auth/guest` over HTTP. */
  "auth.guest": { in: { app: string; environment?: string; name?: string | null }; out: { access_token: string; account: AccountView; expires_in_s: number; refresh_token: string } };
  /** Gives the next access token for a refresh token, which is used up. `/v1/auth/refresh` over HTTP. */
  "auth.refresh": { in: { app: string; environment?: string; refresh_token: string }; out: { access_token: string; account: AccountView; expires_in_s: number; refresh_token: string } };
  /** Ends a sign-in: its refresh token is good no more, and its sockets close. `/v1/auth/sign-out` over HTTP. */
  "auth.sign_out": { in: { app: string; environment?: string; refresh_token: string }; out: { done: true } };
  /** Gives the entries around a player's. `/v1/boards/{board}/around` over HTTP. */
  "board.around": { in: { account?: string; board: string; count?: number; season?: number }; out: { ends_ms?: number | null; entries: BoardEntryView[]; entries_total: number; season: number } };
  /** Gives the entries of the player and its friends. `/v1/boards/{board}/friends` over HTTP. */
  "board.friends": { in: { board: string; count?: number; season?: number }; out: { ends_ms?: number | null; entries: BoardEntryView[]; entries_total: number; season: number } };
  /** Lists the boards of the game. `/v1/boards` over HTTP. */
  "board.list": { in: { after?: string; limit?: number }; out: { boards: BoardView[]; next?: string | null } };
  /** Gives the entries of these players, such as friends. `/v1/boards/{board}/of` over HTTP. */
  "board.of": { in: { board: string; accounts: string[]; season?: number | null }; out: { ends_ms?: number | null; entries: BoardEntryView[]; entries_total: number; season: number } };
  /** Removes an entry: a player's own, and for operators any. `/v1/boards/{board}/remove` over HTTP. */
  "board.remove": { in: { board: string; account?: string | null; season?: number | null }; out: { done: true } };
  /** Lists the seasons of a board. `/v1/boards/{board}/seasons` over HTTP. */
  "board.seasons": { in: { board: string }; out: { seasons: SeasonView[] } };
  /** Submits a score. `/v1/boards/{board}/scores` over HTTP. */
  "board.submit": { in: { board: string; account?: string | null; extra?: JsonObject | null; id?: string | null; receipt?: string | null; score: number; sub?: number | null }; out: { account: string; again: boolean; at_ms: number; board: string; entries?: number | null; improved: boolean; rank?: number | null; score: number; season: number; sub: number } };
  /** Gives the best entries of a board, or those from any position on. `/v1/boards/{board}` over HTTP. */
  "board.top": { in: { board: string; count?: number; from?: number; season?: number }; out: { ends_ms?: number | null; entries: BoardEntryView[]; entries_total: number; season: number } };
  /** Accepts a request. `/v1/friends/accept` over HTTP. */
  "friend.accept": { in: { account: string }; out: { account: string; state?: "friend" | "asked" | "asks" | "blocked" } };
  /** Asks another player to be a friend, or accepts if that one has asked. `/v1/friends` over HTTP. */
  "friend.ask": { in: { account?: string | null; code?: string | null }; out: { account: string; state?: "friend" | "asked" | "asks" | "blocked" } };
  /** Blocks another player, who does not learn of it. `/v1/friends/block` over HTTP. */
  "friend.block": { in: { account: string }; out: { account: string; state?: "friend" | "asked" | "asks" | "blocked" } };
  /** Gives the code by which others find the player. `/v1/friends/code` over HTTP. */
  "friend.code": { in: Record<never, never>; out: { code: string } };
  /** Lists the player's friends, requests and blocks. `/v1/friends` over HTTP. */
  "friend.list": { in: { after?: string; limit?: number; state: "friend" | "asked" | "asks" | "blocked" | null }; out: { friends: FriendView[]; next?: string | null } };
  /** Gives the player another code; the old one is good no more. `/v1/friends/code` over HTTP. */
  "friend.new_code": { in: Record<never, never>; out: { code: string } };
  /** Ends a friendship, refuses a request, or takes one back. `/v1/friends/remove` over HTTP. */
  "friend.remove": { in: { account: string }; out: { account: string; state?: "friend" | "asked" | "asks" | "blocked" } };
  /** Ends a block. `/v1/friends/unblock` over HTTP. */
  "friend.unblock": { in: { account: string }; out: { account: string; state?: "friend" | "asked" | "asks" | "blocked" } };
  /** Forgets the notices that the player knows. `/v1/inbox/acknowledge` over HTTP. */
  "inbox.acknowledge": { in: { up_to: number }; out: { done: true } };
  /** Says what happened in the player's rooms. `/v1/inbox` over HTTP. */
  "inbox.read": { in: { after?: number; limit?: number }; out: { dropped: number; newest: number; next?: number | null; notices: NoticeView[] } };
  /** Opens a lobby or a party. `/v1/lobbies` over HTTP. */
  "lobby.create": { in: { access?: LobbyAccess; bucket?: string | null; kind?: LobbyKind; max?: number | null; mine?: { [name: string]: Property }; name?: string | null; properties?: { [name: string]: Property } }; out: { lobby: LobbyView } };
  /** Declines an invitation. `/v1/lobbies/{lobby}/decline` over HTTP. */
  "lobby.decline": { in: { lobby: string }; out: { done: true } };
  /** Searches lobbies by their properties, free seats and friends. `/v1/lobbies/find` over HTTP. */
  "lobby.find": { in: { before?: number | null; bucket?: string | null; count?: number | null; filter?: { [name: string]: Condition } | null; free_seats?: number | null; near?: { [name: string]: Property } | null; of_friends?: boolean; order?: SearchOrder }; out: { lobbies: LobbyView[]; next?: number | null } };
  /** Invites a friend. `/v1/lobbies/{lobby}/invite` over HTTP. */
  "lobby.invite": { in: { lobby: string; account: string }; out: { lobby: LobbyView } };
  /** Joins a lobby, by its id or its code. `/v1/lobbies/join` over HTTP. */
  "lobby.join": { in: { code?: string | null; lobby?: string | null; mine?: { [name: string]: Property } }; out: { lobby: LobbyView } };
  /** Kicks a member for good: for the owner. `/v1/lobbies/{lobby}/kick` over HTTP. */
  "lobby.kick": { in: { lobby: string; account: string }; out: { lobby: LobbyView } };
  /** Leaves a lobby. `/v1/lobbies/{lobby}/leave` over HTTP. */
  "lobby.leave": { in: { lobby: string }; out: { done: true } };
  /** Lists the lobbies in which the player is, and those to which it is invited. `/v1/lobbies/mine` over HTTP. */
  "lobby.mine": { in: Record<never, never>; out: { invitations: LobbyView[]; lobbies: LobbyView[] } };
  /** Makes another member the owner. `/v1/lobbies/{lobby}/promote` over HTTP. */
  "lobby.promote": { in: { lobby: string; account: string }; out: { lobby: LobbyView } };
  /** Reads a lobby. `/v1/lobbies/{lobby}` over HTTP. */
  "lobby.read": { in: { lobby: string }; out: { lobby: LobbyView } };
  /** Says in which room the lobby goes on: for the owner, who sits in it. `/v1/lobbies/{lobby}/room` over HTTP. */
  "lobby.room": { in: { lobby: string; code?: string | null }; out: { lobby: LobbyView } };
  /** Says something to all members. `/v1/lobbies/{lobby}/messages` over HTTP. */
  "lobby.say": { in: { lobby: string; body: JsonObject; type: string }; out: { n: number } };
  /** Changes a lobby: for its owner. `/v1/lobbies/{lobby}` over HTTP. */
  "lobby.update": { in: { lobby: string; access?: LobbyAccess | null; bucket?: string | null; locked?: boolean | null; max?: number | null; name?: string | null; properties?: { [name: string]: Property | null }; version?: number | null }; out: { lobby: LobbyView } };
  /** Changes what a member says of itself, such as `ready`. `/v1/lobbies/{lobby}/me` over HTTP. */
  "lobby.update_me": { in: { lobby: string; properties: { [name: string]: Property | null } }; out: { lobby: LobbyView } };
  /** Lists matches that are kept, the newest first: for players those that they were in. `/v1/matches/kept` over HTTP. */
  "match.kept": { in: { after?: string; limit?: number }; out: { matches: KeptView[]; next?: string | null } };
  /** Lists the matches of the game that can be found: never those with a secret. `/v1/matches` over HTTP. */
  "match.list": { in: { after?: string; label?: string; limit?: number; max_members?: number; min_members?: number; open_seats?: boolean }; out: { matches: LiveMatch[]; next?: string | null } };
  /** Reads what happened in a match that is kept: for players, if they were in it. `/v1/matches/{match}/log` over HTTP. */
  "match.log": { in: { from?: number; limit?: number; match: string }; out: { entries: EntryView[]; match: KeptView; next?: number | null } };
  /** Searches on, because the player could not get into the room that was found. `/v1/matchmaking/{ticket}/again` over HTTP. */
  "matchmaking.again": { in: { ticket: string }; out: { confirmed?: boolean | null; found?: FoundView | null; left_ms?: number | null; members: string[]; opens?: boolean | null; queue: string; state: "waiting" | "confirm" | "opening" | "found" | "ended"; ticket: string; waited_ms: number; why?: "left" | "gone" | "expired" | "declined" | "party_changed" | "found_elsewhere" | "queue_gone" } };
  /** Takes a match that was found, or does not. `/v1/matchmaking/{ticket}/confirm` over HTTP. */
  "matchmaking.confirm": { in: { ticket: string; accept: boolean }; out: { confirmed?: boolean | null; found?: FoundView | null; left_ms?: number | null; members: string[]; opens?: boolean | null; queue: string; state: "waiting" | "confirm" | "opening" | "found" | "ended"; ticket: string; waited_ms: number; why?: "left" | "gone" | "expired" | "declined" | "party_changed" | "found_elsewhere" | "queue_gone" } };
  /** Begins to search a match, alone or with a party. `/v1/matchmaking` over HTTP. */
  "matchmaking.enter": { in: { filter?: { [name: string]: Condition } | null; party?: string | null; players?: MatchPlayers | null; properties?: { [name: string]: Property }; queue: string }; out: { confirmed?: boolean | null; found?: FoundView | null; left_ms?: number | null; members: string[]; opens?: boolean | null; queue: string; state: "waiting" | "confirm" | "opening" | "found" | "ended"; ticket: string; waited_ms: number; why?: "left" | "gone" | "expired" | "declined" | "party_changed" | "found_elsewhere" | "queue_gone" } };
  /** Ends a search for all of its members. `/v1/matchmaking/{ticket}/leave` over HTTP. */
  "matchmaking.leave": { in: { ticket: string }; out: { confirmed?: boolean | null; found?: FoundView | null; left_ms?: number | null; members: string[]; opens?: boolean | null; queue: string; state: "waiting" | "confirm" | "opening" | "found" | "ended"; ticket: string; waited_ms: number; why?: "left" | "gone" | "expired" | "declined" | "party_changed" | "found_elsewhere" | "queue_gone" } };
  /** Offers the free seats of a match, for a minute. `/v1/matchmaking/offers` over HTTP. */
  "matchmaking.offer": { in: { code: string; points?: number | null; properties?: { [name: string]: Property }; queue: string; seats: number }; out: { holds_ms: number } };
  /** Says the code of the room that the player was asked to open, and in which it sits. `/v1/matchmaking/{ticket}/opened` over HTTP. */
  "matchmaking.opened": { in: { ticket: string; code: string }; out: { confirmed?: boolean | null; found?: FoundView | null; left_ms?: number | null; members: string[]; opens?: boolean | null; queue: string; state: "waiting" | "confirm" | "opening" | "found" | "ended"; ticket: string; waited_ms: number; why?: "left" | "gone" | "expired" | "declined" | "party_changed" | "found_elsewhere" | "queue_gone" } };
  /** Lists the queues, and how many search there. `/v1/matchmaking/queues` over HTTP. */
  "matchmaking.queues": { in: Record<never, never>; out: { queues: QueueView[] } };
  /** Says how a search stands. `/v1/matchmaking/{ticket}` over HTTP. */
  "matchmaking.read": { in: { ticket: string }; out: { confirmed?: boolean | null; found?: FoundView | null; left_ms?: number | null; members: string[]; opens?: boolean | null; queue: string; state: "waiting" | "confirm" | "opening" | "found" | "ended"; ticket: string; waited_ms: number; why?: "left" | "gone" | "expired" | "declined" | "party_changed" | "found_elsewhere" | "queue_gone" } };
  /** Takes an offer back. `/v1/matchmaking/offers/withdraw` over HTTP. */
  "matchmaking.withdraw": { in: { code: string; queue: string }; out: { done: true } };
  /** Says something to friends, or hides from them. `/v1/presence` over HTTP. */
  "presence.set": { in: { join?: string | null; status?: string | null; visible?: boolean | null }; out: { done: true } };
  /** Gives a player's rating on a ladder. `/v1/ratings/{ladder}` over HTTP. */
  "rating.read": { in: { account?: string; ladder: string }; out: { account: string; games: number; points: number; uncertainty: number } };
  /** Lists the versions of a slot before the present one, the newest first. `/v1/saves/{slot}/before` over HTTP. */
  "save.before": { in: { slot: string }; out: { saves: SaveView[] } };
  /** Reads a save, or a version before. `/v1/saves/{slot}` over HTTP. */
  "save.get": { in: { slot: string; version?: number }; out: { bytes: string; save: SaveView } };
  /** Lists the player's saves. `/v1/saves` over HTTP. */
  "save.list": { in: Record<never, never>; out: { saves: SaveView[] } };
  /** Removes a save, which stays among the versions before. `/v1/saves/{slot}/remove` over HTTP. */
  "save.remove": { in: { slot: string; version?: number | null }; out: { again: boolean; save: SaveView } };
  /** Writes a save. `/v1/saves/{slot}` over HTTP. */
  "save.set": { in: { slot: string; bytes: string; description?: string | null; device?: string | null; replace?: boolean | null; title?: string | null; version?: number | null }; out: { again: boolean; save: SaveView } };
  /** Lists a player's statistics: a player's own, and for operators anybody's. `/v1/statistics` over HTTP. */
  "statistic.list": { in: { account?: string; after?: string; limit?: number }; out: { next?: string | null; statistics: StatisticView[] } };
  /** Gives what the values of all players add up to, by day. `/v1/statistics/{statistic}/totals` over HTTP. */
  "statistic.totals": { in: { days?: number; statistic: string }; out: { all: TotalView; days: TotalView[] } };
  /** Writes up to 32 statistics of a player, all or none. `/v1/statistics` over HTTP. */
  "statistic.write": { in: { account?: string | null; writes: WriteStatistic[] }; out: { statistics: StatisticWrittenView[]; unlocked: string[] } };
  /** Lists the objects of an owner that may be read. `/v1/storage` over HTTP. */
  "storage.list": { in: { after?: string; collection?: string; owner?: string }; out: { next?: string | null; objects: ObjectView[] } };
  /** Reads up to 32 objects; those that may not be read are left out. `/v1/storage/read` over HTTP. */
  "storage.read": { in: { objects: ObjectId[] }; out: { next?: string | null; objects: ObjectView[] } };
  /** Removes up to 32 objects, all or none. `/v1/storage/remove` over HTTP. */
  "storage.remove": { in: { objects: RemoveObject[] }; out: { done: true } };
  /** Writes up to 32 objects, all or none. `/v1/storage` over HTTP. */
  "storage.write": { in: { objects: WriteObject[] }; out: { versions: number[] } };
  /** Opens a turn room. `/v1/rooms` over HTTP. */
  "turn.create": { in: { code?: string | null; config?: Config | null; id?: string | null; max_players?: number | null; metadata?: JsonObject | null; mode?: string | null; name?: string | null; player_name?: string | null; visibility?: Visibility | null }; out: { room: RoomView | null } };
  /** Deletes a room that has ended, or where nobody else sits: for whoever opened it, and for operators. `/v1/rooms/{room}/delete` over HTTP. */
  "turn.delete": { in: { room: string }; out: { done: true } };
  /** Ends the game: for the host where no rules decide, and for operators. `/v1/rooms/{room}/end` over HTTP. */
  "turn.end": { in: { room: string; reason?: string | null; winner?: string | null }; out: { room: RoomView | null } };
  /** Joins a room. `/v1/rooms/{room}/join` over HTTP. */
  "turn.join": { in: { room: string; name?: string | null }; out: { room: RoomView | null } };
  /** Joins the room with a code. `/v1/rooms/join` over HTTP. */
  "turn.join_by_code": { in: { code: string; name?: string | null }; out: { room: RoomView | null } };
  /** Gives a room of this game that the player sits in, or joins one that has a seat, or opens one. `/v1/rooms/join-or-create` over HTTP. */
  "turn.join_or_create": { in: { config?: Config | null; criteria?: { max_players?: number | null; metadata?: JsonObject; name?: string | null; rules?: string | null } | null; max_players?: number | null; metadata?: JsonObject | null; mode?: string | null; name?: string | null; player_name?: string | null; visibility?: Visibility | null }; out: { room: RoomView | null } };
  /** Turns a player out: for the host and for operators. `/v1/rooms/{room}/kick` over HTTP. */
  "turn.kick": { in: { room: string; player: string; reason?: string | null }; out: { room: RoomView | null } };
  /** Leaves a room. `/v1/rooms/{room}/leave` over HTTP. */
  "turn.leave": { in: { room: string }; out: { room: RoomView | null } };
  /** Lists the rooms of a game that can be joined. `/v1/rooms` over HTTP. */
  "turn.list": { in: { after?: string; criteria?: Json; game?: string; limit?: number }; out: { next?: string | null; rooms: Summary[] } };
  /** Lists what was said in a room, the newest first: the last 256 messages. `/v1/rooms/{room}/messages` over HTTP. */
  "turn.messages": { in: { after?: string; limit?: number; room: string }; out: { messages: RoomMessage[]; next?: string | null } };
  /** Lists the rooms that the player sits in. `/v1/rooms/mine` over HTTP. */
  "turn.mine": { in: { after?: string; limit?: number }; out: { next?: string | null; rooms: Summary[] } };
  /** Pauses a room: for the host and its admins where no rules decide, and for operators. `/v1/rooms/{room}/pause` over HTTP. */
  "turn.pause": { in: { room: string }; out: { room: RoomView | null } };
  /** Makes a move. `/v1/rooms/{room}/moves` over HTTP. */
  "turn.propose": { in: { room: string; data?: JsonObject | null; state?: JsonObject | null; state_version?: number | null; type: string }; out: { room: RoomView | null } };
  /** Reads a room. `/v1/rooms/{room}` over HTTP. */
  "turn.read": { in: { room: string }; out: { room: RoomView | null } };
  /** Gives the game up. `/v1/rooms/{room}/resign` over HTTP. */
  "turn.resign": { in: { room: string }; out: { room: RoomView | null } };
  /** Ends the pause of a room: for whoever may pause it. `/v1/rooms/{room}/resume` over HTTP. */
  "turn.resume": { in: { room: string }; out: { room: RoomView | null } };
  /** Lists the rule sets that this server has. `/v1/rules` over HTTP. */
  "turn.rules": { in: Record<never, never>; out: { rules: string[] } };
  /** Says something to all in a room. `/v1/rooms/{room}/messages` over HTTP. */
  "turn.say": { in: { room: string; body?: Json; type: string }; out: { room: RoomView | null } };
  /** Begins the game: for the host. `/v1/rooms/{room}/start` over HTTP. */
  "turn.start": { in: { room: string; roles?: { [name: string]: string } | null; turn_order?: string[] | null }; out: { room: RoomView | null } };
  /** Reads a room, and sends its notices over the JSON socket that asks, as long as it has no seat there. `/v1/rooms/{room}/subscribe` over HTTP. */
  "turn.subscribe": { in: { room: string; topics?: Topic[] | null }; out: { room: RoomView | null } };
  /** Sends no more notices of a room over the JSON socket that asks. `/v1/rooms/{room}/unsubscribe` over HTTP. */
  "turn.unsubscribe": { in: { room: string }; out: { done: true } };
  /** Changes what is said about a room. `/v1/rooms/{room}` over HTTP. */
  "turn.update": { in: { room: string; admins?: string[] | null; data?: JsonObject | null; metadata?: JsonObject | null; name?: string | null; replace?: boolean; visibility?: Visibility | null }; out: { room: RoomView | null } };
  /** Says whether another's move is right. `/v1/rooms/{room}/moves/{proposal}/verdict` over HTTP. */
  "turn.validate": { in: { proposal: number; room: string; accept: boolean; reason?: string | null }; out: { room: RoomView | null } };
}
