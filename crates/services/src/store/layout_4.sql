-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- `failures` counts in a row how often what was due in a room could not be stored; `deadline_ms` is when it is tried again then.
-- `wanted` is the hash of what players look for who find the room by it. `joinable` is 2 of a room that could be joined, but whose players are
-- all away: no list and no search has it until one of them is back.
ALTER TABLE rooms ADD COLUMN failures {int} NOT NULL DEFAULT 0;
ALTER TABLE rooms ADD COLUMN wanted {bytes};
CREATE INDEX rooms_put_off ON rooms (realm, id) WHERE failures > 0;
CREATE INDEX rooms_wanted ON rooms (realm, game, wanted, created_ms, id) WHERE joinable = 1;

-- 0 while players come together, 1 while they play among themselves, 2 after the end. `players` of a room begins with a line that has it, so that a
-- commit sees whether this table must change; a room of an older layout has no such line until its players change.
ALTER TABLE room_players ADD COLUMN stage {int} NOT NULL DEFAULT 1;
CREATE INDEX room_players_open ON room_players (realm, account, created_ms, room) WHERE stage < 2;
CREATE INDEX room_players_gathering ON room_players (realm, account) WHERE stage = 0;
