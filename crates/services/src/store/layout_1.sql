-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- The words in braces are those of layouts.rs.

CREATE TABLE accounts (
    realm {text} NOT NULL,
    id {text} NOT NULL,
    kind {text} NOT NULL,
    role {text} NOT NULL,
    display_name {text} NOT NULL,
    created_ms {int} NOT NULL,
    PRIMARY KEY (realm, id)
{small};

CREATE TABLE credentials (
    realm {text} NOT NULL,
    kind {text} NOT NULL,
    value {text} NOT NULL,
    account {text} NOT NULL,
    secret_hash {text},
    PRIMARY KEY (realm, kind, value),
    FOREIGN KEY (realm, account) REFERENCES accounts (realm, id)
{small};
CREATE INDEX credentials_of ON credentials (realm, account);

-- One row for each sign-in, however often its token was rotated.
CREATE TABLE sign_ins (
    realm {text} NOT NULL,
    id {text} NOT NULL,
    account {text} NOT NULL,
    token_hash {bytes} NOT NULL,
    before_hash {bytes},
    rotated_ms {int} NOT NULL,
    expires_ms {int} NOT NULL,
    PRIMARY KEY (realm, id),
    FOREIGN KEY (realm, account) REFERENCES accounts (realm, id)
{small};
CREATE INDEX sign_ins_of ON sign_ins (realm, account, rotated_ms);

CREATE TABLE bans (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    reason {text} NOT NULL,
    decided_by {text} NOT NULL,
    at_ms {int} NOT NULL,
    until_ms {int},
    PRIMARY KEY (realm, account)
{small};

-- `players` has their ids in lines, so that a commit sees whether `room_players` must change.
CREATE TABLE rooms (
    realm {text} NOT NULL,
    id {text} NOT NULL,
    code {text},
    game {text} NOT NULL,
    created_ms {int} NOT NULL,
    version {int} NOT NULL,
    document {bytes} NOT NULL,
    joinable {int} NOT NULL,
    summary {bytes} NOT NULL,
    players {text} NOT NULL,
    deadline_ms {int},
    PRIMARY KEY (realm, id)
{strict};
CREATE UNIQUE INDEX rooms_by_code ON rooms (realm, code) WHERE code IS NOT NULL;
CREATE INDEX rooms_of_realm ON rooms (realm, created_ms, id);
CREATE INDEX rooms_joinable ON rooms (realm, game, created_ms, id) WHERE joinable = 1;
CREATE INDEX rooms_due ON rooms (deadline_ms) WHERE deadline_ms IS NOT NULL;

-- With the time of the room, so that a page of a player's rooms is found in their order, however many rooms there are.
CREATE TABLE room_players (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    created_ms {int} NOT NULL,
    room {text} NOT NULL,
    PRIMARY KEY (realm, account, created_ms, room),
    FOREIGN KEY (realm, room) REFERENCES rooms (realm, id)
{small};
CREATE INDEX room_players_of ON room_players (realm, room);

-- What waits in an inbox are the notices from `oldest` to `newest`.
CREATE TABLE inboxes (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    oldest {int} NOT NULL,
    newest {int} NOT NULL,
    dropped {int} NOT NULL,
    PRIMARY KEY (realm, account)
{small};

CREATE TABLE notices (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    seq {int} NOT NULL,
    kind {text} NOT NULL,
    body {bytes} NOT NULL,
    at_ms {int} NOT NULL,
    PRIMARY KEY (realm, account, seq)
{small};

CREATE TABLE outboxes (
    realm {text} NOT NULL,
    waiting {int} NOT NULL,
    dropped {int} NOT NULL,
    PRIMARY KEY (realm)
{small};

CREATE TABLE webhooks (
    id {serial},
    realm {text} NOT NULL,
    target {text} NOT NULL,
    body {bytes} NOT NULL,
    attempts {int} NOT NULL,
    due_ms {int} NOT NULL
{strict};
CREATE INDEX webhooks_due ON webhooks (due_ms, id);
CREATE INDEX webhooks_of ON webhooks (realm, id);

CREATE TABLE secrets (
    name {text} NOT NULL,
    secret {bytes} NOT NULL,
    PRIMARY KEY (name)
{small};
