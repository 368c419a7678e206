//! Rooms of pages: the module as a page uses it, through its exports, against a hub.

mod actions;
mod hostile;
mod play;
mod roles;
mod schemas;
mod support;
mod worlds;
