-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- What an account holds: bytes of its rooms and of the logs of its matches, and how many of its rooms have not ended. The row
-- whose account is empty has the sums of the realm.
CREATE TABLE holdings (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    log_bytes {int} NOT NULL,
    room_bytes {int} NOT NULL,
    open_rooms {int} NOT NULL,
    PRIMARY KEY (realm, account)
{small};

-- Whose kept matches are.
CREATE TABLE match_owners (
    realm {text} NOT NULL,
    id {text} NOT NULL,
    account {text} NOT NULL,
    PRIMARY KEY (realm, id)
{small};

-- Whose a room is, what it is charged with, and when it may be deleted; 0 as long as nobody has judged that.
CREATE TABLE room_lives (
    realm {text} NOT NULL,
    room {text} NOT NULL,
    account {text} NOT NULL,
    is_open {int} NOT NULL,
    bytes {int} NOT NULL,
    until_ms {int} NOT NULL,
    PRIMARY KEY (realm, room)
{small};
CREATE INDEX room_lives_by_end ON room_lives (until_ms);
INSERT INTO room_lives (realm, room, account, is_open, bytes, until_ms) SELECT realm, id, '', 1, 0, 0 FROM rooms;

-- What a commit tells several players, once: their notices refer to it by the room and its version. `number` counts the room's rows
-- and `bytes_upto` their bytes, that of the row included, so that a commit knows which old ones to delete.
CREATE TABLE room_events (
    realm {text} NOT NULL,
    room {text} NOT NULL,
    version {int} NOT NULL,
    number {int} NOT NULL,
    bytes_upto {int} NOT NULL,
    body {bytes} NOT NULL,
    PRIMARY KEY (realm, room, version)
{strict};
ALTER TABLE notices ADD COLUMN room {text};
ALTER TABLE notices ADD COLUMN version {int};
-- How many notices of the row refer to the room's event.
ALTER TABLE notices ADD COLUMN shared {int} NOT NULL DEFAULT 0;

-- Bytes of the calls that wait.
ALTER TABLE outboxes ADD COLUMN bytes {int} NOT NULL DEFAULT 0;
UPDATE outboxes SET bytes = (SELECT COALESCE(SUM(length(w.body)), 0) FROM webhooks w WHERE w.realm = outboxes.realm);

-- How far a look through all rows of a kind has come.
CREATE TABLE sweep_marks (
    name {text} NOT NULL,
    realm {text} NOT NULL,
    id {text} NOT NULL,
    PRIMARY KEY (name)
{small};
-- The day on which somebody signed in last, in milliseconds since 1970; 0 as long as nobody has looked.
ALTER TABLE accounts ADD COLUMN seen_ms {int} NOT NULL DEFAULT 0;
CREATE INDEX sign_ins_by_end ON sign_ins (expires_ms);
CREATE INDEX bans_by_end ON bans (until_ms) WHERE until_ms IS NOT NULL;
CREATE INDEX match_owners_of ON match_owners (realm, account);
