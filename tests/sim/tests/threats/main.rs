//! Threats against a hub, each under its number in docs/security.md. Bare sessions talk to a hub without a
//! network, so that they can send what no game would, and often.

mod addresses;
mod floods;
mod inputs;
mod rooms;
mod slow;
mod world;
