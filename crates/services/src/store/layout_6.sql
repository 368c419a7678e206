-- Boards, as operators define them. A board without a name was deleted: its entries go, a part at a time.
CREATE TABLE boards (
    number {serial},
    realm {text} NOT NULL,
    name {text},
    version {int} NOT NULL,
    changed_ms {int} NOT NULL,
    document {bytes} NOT NULL
{strict};
CREATE UNIQUE INDEX boards_by_name ON boards (realm, name) WHERE name IS NOT NULL;
CREATE INDEX boards_gone ON boards (changed_ms) WHERE name IS NULL;

-- A row when the first entry of a season comes. The entries of a season that is gone are deleted, a part at a time.
CREATE TABLE board_seasons (
    board {int} NOT NULL,
    season {int} NOT NULL,
    entries {int} NOT NULL,
    gone {int} NOT NULL,
    PRIMARY KEY (board, season)
{small};
CREATE INDEX board_seasons_gone ON board_seasons (board, season) WHERE gone = 1;

-- More is better in `score` and `sub`, whatever the board's order. `id1` to `id4` are marks of the newest submissions, 0 for none,
-- so that one that comes again is known. There is no index by score: the order is in memory.
CREATE TABLE board_entries (
    board {int} NOT NULL,
    season {int} NOT NULL,
    account {text} NOT NULL,
    score {int} NOT NULL,
    sub {int} NOT NULL,
    at_ms {int} NOT NULL,
    tries {int} NOT NULL,
    id1 {int} NOT NULL,
    id2 {int} NOT NULL,
    id3 {int} NOT NULL,
    id4 {int} NOT NULL,
    extra {bytes},
    PRIMARY KEY (board, season, account)
{small};
-- It changes with new entries, and not with scores.
CREATE INDEX board_entries_of ON board_entries (account, board, season);
