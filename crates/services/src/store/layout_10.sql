-- Released: stores were made by it, so it never changes. What shall be different is the next layout.

-- What one node of a cluster does at a time: the holder has it until the time, by the database's clock.
CREATE TABLE locks (
    name {text} NOT NULL,
    holder {text} NOT NULL,
    until_us {int} NOT NULL,
    PRIMARY KEY (name)
{small};
