-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- What one node of a cluster does at a time: the holder has it until the time, by the database's clock.
CREATE TABLE locks (
    name {text} NOT NULL,
    holder {text} NOT NULL,
    until_us {int} NOT NULL,
    PRIMARY KEY (name)
{small};

-- The servers that share the store, each a node of a cluster by its name. Times are those of the database's clock, in microseconds
-- since 1970. `incarnation` is which start of the node it is; another node that declares it gone counts it further. A node decides
-- until `lease_until` and while it holds the lock `lock_number`. `address` is where players are sent, `line` where other nodes ask.
CREATE TABLE nodes (
    id {text} NOT NULL,
    incarnation {int} NOT NULL,
    state {text} NOT NULL,
    lease_until {int} NOT NULL,
    lock_number {int} NOT NULL,
    address {text} NOT NULL,
    shards {int} NOT NULL,
    line {text} NOT NULL,
    build {text} NOT NULL,
    rooms {int} NOT NULL,
    members {int} NOT NULL,
    load_permille {int} NOT NULL,
    PRIMARY KEY (id)
{small};

-- Changes of entries of boards, for the other nodes of a cluster. `number` counts those of a season, from 1 and without a
-- gap. A server alone writes none.
CREATE TABLE board_log (
    board {int} NOT NULL,
    season {int} NOT NULL,
    number {int} NOT NULL,
    account {text} NOT NULL,
    at_ms {int} NOT NULL,
    PRIMARY KEY (board, season, number)
{small};
CREATE INDEX board_log_by_time ON board_log (at_ms);
-- How many changes of a season were logged.
ALTER TABLE board_seasons ADD COLUMN logged {int} NOT NULL DEFAULT 0;

-- Counts the changes of a realm's definitions, boards among them. A server alone counts none.
CREATE TABLE definition_changes (
    realm {text} NOT NULL,
    number {int} NOT NULL,
    PRIMARY KEY (realm)
{small};

-- What each node of a cluster must do at once: close the connections of a banned account, and the like. A server alone writes none.
CREATE TABLE orders (
    id {serial},
    node {text} NOT NULL,
    realm {text} NOT NULL,
    account {text} NOT NULL,
    kind {text} NOT NULL,
    body {text} NOT NULL,
    at_us {int} NOT NULL
{strict};
CREATE INDEX orders_by_time ON orders (at_us);

-- The live rooms of all nodes: rooms in memory, found by their code from any node. `uid` names a room for ever, since a code can be
-- given again. `term` counts the changes of the node that has it: whoever changes the row names both. What is listed of a room is at
-- most a second old.
CREATE TABLE live_rooms (
    code {text} NOT NULL,
    uid {bytes} NOT NULL,
    term {int} NOT NULL,
    node {text} NOT NULL,
    incarnation {int} NOT NULL,
    address {text} NOT NULL,
    app {text} NOT NULL,
    environment {text} NOT NULL,
    kind {text} NOT NULL,
    label {text} NOT NULL,
    has_secret {int} NOT NULL,
    max_players {int} NOT NULL,
    members {int} NOT NULL,
    away {int} NOT NULL,
    players {int} NOT NULL,
    spectators {int} NOT NULL,
    opened_us {int} NOT NULL,
    PRIMARY KEY (code)
{strict};
CREATE INDEX live_rooms_of ON live_rooms (node, incarnation);
CREATE INDEX live_rooms_listed ON live_rooms (app, environment, code);

-- Admission tokens that have opened a live room at a node, until they are good no more.
CREATE TABLE used_tokens (
    digest {text} NOT NULL,
    forget_us {int} NOT NULL,
    PRIMARY KEY (digest)
{small};
CREATE INDEX used_tokens_by_time ON used_tokens (forget_us);

-- Players who are connected to nodes of a cluster, for friends at other nodes. A crash empties it, and the nodes write it again. A server alone
-- writes none.
CREATE {unlogged} TABLE presence (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    node {text} NOT NULL,
    incarnation {int} NOT NULL,
    status {text} NOT NULL,
    join_text {text} NOT NULL,
    is_visible {int} NOT NULL,
    said_ms {int} NOT NULL,
    PRIMARY KEY (realm, account, node)
{small};
CREATE INDEX presence_of_node ON presence (node, incarnation);

-- Players of a cluster, and when they made a request last, give or take half a minute.
CREATE TABLE players_seen (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    at_ms {int} NOT NULL,
    PRIMARY KEY (realm, account)
{small};
