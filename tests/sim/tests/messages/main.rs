//! Messages, matches and logs, each also through a host migration.

mod counting;
mod hand_over;
mod lanes;
mod log;
mod match_worlds;
mod matches;
mod migration;
mod migration_messages;
mod migration_pause;
mod own_heir;
