-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- What another node needs to reopen a live room whose node has died. `setup` is how it was opened, NULL if it ends with its node.
-- `roster` is who is in it, NULL until it was written; `host` is its host, NULL in a match. They are at most a second old.
ALTER TABLE live_rooms ADD COLUMN setup {bytes};
ALTER TABLE live_rooms ADD COLUMN roster {bytes};
ALTER TABLE live_rooms ADD COLUMN host {int};
ALTER TABLE live_rooms ADD COLUMN epoch {int} NOT NULL DEFAULT 0;
-- What a room took along that was given to its node, NULL once that has taken it; and when it was given.
ALTER TABLE live_rooms ADD COLUMN snapshot {bytes};
ALTER TABLE live_rooms ADD COLUMN moved_us {int} NOT NULL DEFAULT 0;
