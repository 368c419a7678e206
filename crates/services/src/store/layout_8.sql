-- What operators define beside boards: statistics, achievements, ladders and queues, as JSON.
CREATE TABLE definitions (
    realm {text} NOT NULL,
    kind {text} NOT NULL,
    name {text} NOT NULL,
    version {int} NOT NULL,
    changed_ms {int} NOT NULL,
    document {bytes} NOT NULL,
    PRIMARY KEY (realm, kind, name)
{small};

-- Statistics of players. `id1` to `id4` are marks of the newest writes, so that one that comes again is known.
CREATE TABLE statistics (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    name {text} NOT NULL,
    value {int} NOT NULL,
    changed_ms {int} NOT NULL,
    id1 {int} NOT NULL,
    id2 {int} NOT NULL,
    id3 {int} NOT NULL,
    id4 {int} NOT NULL,
    PRIMARY KEY (realm, account, name)
{small};

-- Statistics of all players together. Day 0 is all time; other days count from 1970.
CREATE TABLE statistic_totals (
    realm {text} NOT NULL,
    name {text} NOT NULL,
    day {int} NOT NULL,
    players {int} NOT NULL,
    writes {int} NOT NULL,
    total {int} NOT NULL,
    PRIMARY KEY (realm, name, day)
{small};

-- Progress of players. `unlocked_ms` is NULL while an achievement is locked.
CREATE TABLE achievements (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    name {text} NOT NULL,
    steps {int} NOT NULL,
    unlocked_ms {int},
    id1 {int} NOT NULL,
    id2 {int} NOT NULL,
    id3 {int} NOT NULL,
    id4 {int} NOT NULL,
    PRIMARY KEY (realm, account, name)
{small};

-- How many players have unlocked an achievement; the empty name counts players with any statistic or achievement.
CREATE TABLE achievement_totals (
    realm {text} NOT NULL,
    name {text} NOT NULL,
    players {int} NOT NULL,
    PRIMARY KEY (realm, name)
{small};

-- Ratings of players, in millionths.
CREATE TABLE ratings (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    ladder {text} NOT NULL,
    mean {int} NOT NULL,
    doubt {int} NOT NULL,
    games {int} NOT NULL,
    changed_ms {int} NOT NULL,
    PRIMARY KEY (realm, account, ladder)
{small};

-- Ids of what counts once, such as results, until nobody sends it again.
CREATE TABLE used_once (
    realm {text} NOT NULL,
    id {text} NOT NULL,
    expires_ms {int} NOT NULL,
    PRIMARY KEY (realm, id)
{small};
CREATE INDEX used_once_by_end ON used_once (expires_ms);

-- Objects of players, and of the game itself: its owner is the empty text. `counted` is what it adds to the owner's holding.
CREATE TABLE objects (
    realm {text} NOT NULL,
    owner {text} NOT NULL,
    collection {text} NOT NULL,
    name {text} NOT NULL,
    version {int} NOT NULL,
    changed_ms {int} NOT NULL,
    readers {text} NOT NULL,
    writers {text} NOT NULL,
    counted {int} NOT NULL,
    body {bytes} NOT NULL,
    PRIMARY KEY (realm, owner, collection, name)
{strict};

-- The newest version that an owner's objects were given, and their number.
CREATE TABLE object_owners (
    realm {text} NOT NULL,
    owner {text} NOT NULL,
    newest {int} NOT NULL,
    objects {int} NOT NULL,
    PRIMARY KEY (realm, owner)
{small};

-- What two accounts are to each other: a row of each for a friendship or a request, one row of who blocks.
CREATE TABLE friends (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    other {text} NOT NULL,
    state {text} NOT NULL,
    changed_ms {int} NOT NULL,
    PRIMARY KEY (realm, account, other)
{small};
CREATE INDEX friends_of ON friends (realm, other);

-- The code by which an account is found as a friend.
CREATE TABLE friend_codes (
    realm {text} NOT NULL,
    code {text} NOT NULL,
    account {text} NOT NULL,
    PRIMARY KEY (realm, code)
{small};
CREATE UNIQUE INDEX friend_codes_of ON friend_codes (realm, account);

-- Bytes of objects.
ALTER TABLE holdings ADD COLUMN object_bytes {int} NOT NULL DEFAULT 0;

-- When a season ends whose end is to be told; NULL where it is not, or no more.
ALTER TABLE board_seasons ADD COLUMN ends_ms {int};
CREATE INDEX board_seasons_by_end ON board_seasons (ends_ms) WHERE ends_ms IS NOT NULL;
