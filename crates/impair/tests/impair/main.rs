//! What an impaired network does to packets, and how it is written down.

mod path;
mod stalls;
mod text;
