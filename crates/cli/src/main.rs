//! The binary `parlor`.

// Until the commands use them.
#![allow(dead_code, unused_imports)]

mod game;
mod view;

fn main() {}
