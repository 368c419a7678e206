//! Figures, and recordings.

use crate::boundary::ask;
use crate::room::{put, put_some};
use parlor_client_core::{Describe, Fields};

exports! {
    /// The state of the room and its connection.
    fn info() -> i32 {
        ask(|room, out| {
            put(out, [&room.core.info().describe()])?;
            Ok(true)
        })
    }

    /// Counters and measurements.
    fn diagnostics() -> i32 {
        ask(|room, out| {
            put(out, [&room.core.diagnostics().describe()])?;
            Ok(true)
        })
    }

    /// Counters of the world's stream.
    fn world_diagnostics(now: f64) -> i32 {
        ask(|room, out| {
            let now = room.at(now)?;
            let diagnostics = room.core.world_diagnostics(now).map(|diagnostics| diagnostics.describe());
            put_some(out, diagnostics)
        })
    }

    /// Starts a recording.
    fn recording_start() -> i32 {
        ask(|room, _| Ok(room.core.start_recording()?))
    }

    /// Takes the next bytes of the recording.
    fn recording_take() -> i32 {
        ask(|room, out| {
            *out = room.core.recording_mut().take_bytes();
            Ok(out.len())
        })
    }

    /// Stops the recording.
    fn recording_stop() -> i32 {
        ask(|room, _| {
            room.core.recording_mut().stop();
            Ok(())
        })
    }

    /// Figures of the recording.
    fn recording_figures() -> i32 {
        ask(|room, out| {
            let figures = room.core.recording().figures().map(|figures| {
                Fields::default()
                    .count("bytes", figures.bytes)
                    .count("packets", figures.packets)
                    .count("marks", figures.marks)
                    .with_some("ended", figures.ended.map(|ended| ended.to_string()))
                    .build()
            });
            put_some(out, figures)
        })
    }
}
