//! Membership of a room: joining, leaving, reconnecting, timeouts, rejections, and hostile members.

mod delayed;
mod handover;
mod hostile;
mod life;
mod presence;
mod refusals;
mod resume;
mod shutdown;
mod spectators;
mod stalls;
mod truthful;
