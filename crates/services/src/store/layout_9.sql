-- Messages of turn rooms: the last of each, at the place that its number has in a ring. `bytes` is what it is counted with, `held` what
-- the room's messages are counted with after it. A message of a deleted account has no account and no body.
CREATE TABLE room_messages (
    realm {text} NOT NULL,
    room {text} NOT NULL,
    place {int} NOT NULL,
    number {int} NOT NULL,
    at_ms {int} NOT NULL,
    account {text} NOT NULL,
    body {bytes} NOT NULL,
    bytes {int} NOT NULL,
    held {int} NOT NULL,
    PRIMARY KEY (realm, room, place)
{strict};
CREATE INDEX room_messages_of ON room_messages (realm, account);
