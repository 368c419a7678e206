-- Saves of players: a row for each version that is kept. `replaced_ms` is when another one took its place, or when it was removed;
-- NULL for what is in its slot. `counted` is what it adds to the account's holding.
CREATE TABLE saves (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    version {int} NOT NULL,
    slot {text} NOT NULL,
    replaced_ms {int},
    at_ms {int} NOT NULL,
    title {text} NOT NULL,
    description {text} NOT NULL,
    device {text} NOT NULL,
    size {int} NOT NULL,
    counted {int} NOT NULL,
    body {bytes} NOT NULL,
    PRIMARY KEY (realm, account, version)
{strict};
CREATE UNIQUE INDEX saves_in_slots ON saves (realm, account, slot) WHERE replaced_ms IS NULL;

-- The newest version that an account was given: none is given twice, also after its saves are gone.
CREATE TABLE save_versions (
    realm {text} NOT NULL,
    account {text} NOT NULL,
    newest {int} NOT NULL,
    PRIMARY KEY (realm, account)
{small};

-- Bytes of saves.
ALTER TABLE holdings ADD COLUMN save_bytes {int} NOT NULL DEFAULT 0;
