//! The effects of an impaired network, and its text form.

mod path;
mod stalls;
mod text;
