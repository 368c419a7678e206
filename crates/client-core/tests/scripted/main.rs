//! Rooms against scripted hubs.

mod hand_over;
mod hub;
mod reopening;
