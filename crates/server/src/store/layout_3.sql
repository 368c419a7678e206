-- Notices stand in the order in which they come and have their keys in an index: in the order of their keys each player's would be
-- pages of their own, and a commit would write as many pages as it has players.
CREATE TABLE notices_as_they_come (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    seq {int} NOT NULL,
    kind {text} NOT NULL,
    body {bytes} NOT NULL,
    at_ms {int} NOT NULL,
    PRIMARY KEY (realm, account, seq)
{strict};
INSERT INTO notices_as_they_come (realm, account, seq, kind, body, at_ms)
    SELECT realm, account, seq, kind, body, at_ms FROM notices ORDER BY at_ms, realm, account, seq;
DROP TABLE notices;
ALTER TABLE notices_as_they_come RENAME TO notices;
