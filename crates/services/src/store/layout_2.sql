-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- Servers that keep matches, and when each was last there: what one left open is ended for it.
CREATE TABLE match_servers (
    id {text} NOT NULL,
    seen_ms {int} NOT NULL,
    PRIMARY KEY (id)
{small};

-- `ended_ms` and `ending` stand there once it is over, `cut` if its log ends before it does.
CREATE TABLE matches (
    realm {text} NOT NULL,
    id {text} NOT NULL,
    server {text} NOT NULL,
    label {text} NOT NULL,
    opened_ms {int} NOT NULL,
    entries {int} NOT NULL,
    bytes {int} NOT NULL,
    cut {text},
    ended_ms {int},
    ending {text},
    PRIMARY KEY (realm, id)
{small};
CREATE INDEX matches_by_time ON matches (realm, opened_ms, id);
CREATE INDEX matches_by_end ON matches (ended_ms);

CREATE TABLE match_players (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    opened_ms {int} NOT NULL,
    id {text} NOT NULL,
    PRIMARY KEY (realm, account, opened_ms, id)
{small};
CREATE INDEX match_players_of ON match_players (realm, id);

CREATE TABLE match_entries (
    realm {text} NOT NULL,
    id {text} NOT NULL,
    number {int} NOT NULL,
    at_ms {int} NOT NULL,
    body {bytes} NOT NULL,
    PRIMARY KEY (realm, id, number)
{strict};

-- Matches that nobody sees any more, whose entries are deleted a few at a time.
CREATE TABLE matches_forgotten (
    realm {text} NOT NULL,
    id {text} NOT NULL,
    PRIMARY KEY (realm, id)
{small};
