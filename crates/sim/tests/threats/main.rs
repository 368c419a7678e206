//! Threats against a hub, each under the number that docs/security.md gives it. Sessions without a game speak to a hub
//! without a network, so that they can say what no game would, and many times.

mod addresses;
mod floods;
mod inputs;
mod rooms;
mod slow;
mod world;
