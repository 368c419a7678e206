//! Turn rooms, driven as by a server: one operation at a time with storing and loading in between.

mod config;
mod course;
mod criteria;
mod document;
mod draughts;
mod games;
mod harness;
mod json;
mod model;
mod moves;
mod notices;
mod pause;
mod peers;
mod rules;
mod seats;
mod secrets;
mod timers;
