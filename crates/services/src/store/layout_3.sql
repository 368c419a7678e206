-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- What a commit tells a player is one row, in one of the 256 places of the inbox, which are used in turn: an inbox that nobody reads
-- writes over what it lets go of, and no commit deletes anything. `newest` is the number of the row's last notice; `parts` has of
-- each notice its size in bytes, its time and its kind, in lines; `body` has the notices one after the other.
ALTER TABLE notices RENAME TO notices_apart;
CREATE TABLE notices (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    place {int} NOT NULL,
    newest {int} NOT NULL,
    parts {text} NOT NULL,
    body {bytes} NOT NULL,
    PRIMARY KEY (realm, account, place)
{small};
INSERT INTO notices (realm, account, place, newest, parts, body)
    SELECT n.realm, n.account, n.seq % 256, n.seq, length(n.body) || ' ' || n.at_ms || ' ' || n.kind, n.body
    FROM notices_apart n JOIN inboxes i ON i.realm = n.realm AND i.account = n.account
    WHERE n.seq >= i.oldest ORDER BY n.realm, n.account, n.seq % 256;
DROP TABLE notices_apart;
