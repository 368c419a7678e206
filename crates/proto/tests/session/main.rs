//! Two sessions over a simulated link on virtual time. See [`harness`].

mod carried;
mod chaos;
mod harness;
mod hostile;
mod lifecycle;
mod resume;
mod timing;
