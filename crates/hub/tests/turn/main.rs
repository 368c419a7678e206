//! Turn rooms, driven as a server drives them: one operation at a time on a document that is stored and loaded in between.

mod config;
mod course;
mod criteria;
mod document;
mod draughts;
mod harness;
mod json;
mod model;
mod moves;
mod notices;
mod peers;
mod rules;
mod seats;
mod secrets;
mod timers;
