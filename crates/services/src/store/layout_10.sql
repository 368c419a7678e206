-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- What one node of a cluster does at a time: the holder has it until the time, by the database's clock.
CREATE TABLE locks (
    name {text} NOT NULL,
    holder {text} NOT NULL,
    until_us {int} NOT NULL,
    PRIMARY KEY (name)
{small};

-- The servers that share the store, each a node of a cluster by its name. Times are those of the database's clock, in microseconds
-- since 1970. `incarnation` is which start of the node it is; another node that declares it gone counts it further. A node decides
-- until `lease_until` and while it holds the lock `lock_number`. `address` is where players are sent, `line` where other nodes ask.
CREATE TABLE nodes (
    id {text} NOT NULL,
    incarnation {int} NOT NULL,
    state {text} NOT NULL,
    lease_until {int} NOT NULL,
    lock_number {int} NOT NULL,
    address {text} NOT NULL,
    shards {int} NOT NULL,
    line {text} NOT NULL,
    build {text} NOT NULL,
    rooms {int} NOT NULL,
    members {int} NOT NULL,
    load_permille {int} NOT NULL,
    PRIMARY KEY (id)
{small};
