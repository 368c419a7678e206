//! The machine of one connection, as the server has it.

use super::capsule::{Capsules, Said};
use super::fields::{self, Request};
use super::tlv::{Part, Tlv};
use super::varint::{self, Partial};
use super::{
    FRAME_DATA, FRAME_HEADERS, FRAME_SETTINGS, SETTING_INITIAL_MAX_DATA, SETTING_INITIAL_MAX_STREAMS_BIDI,
    SETTING_INITIAL_MAX_STREAMS_UNI, STREAM_CONTROL, STREAM_PUSH, STREAM_QPACK_DECODER, STREAM_QPACK_ENCODER,
    STREAM_SESSION,
};
use std::collections::VecDeque;
use thiserror::Error;

/// Maximum bytes of a HEADERS frame: as of a request's head over HTTP/1.1.
pub(super) const HEADERS_BYTES_MAX: usize = 8 * 1024;
/// Maximum bytes of SETTINGS.
const SETTINGS_BYTES_MAX: usize = 4 * 1024;
/// Maximum bytes that a connection may send and nobody needs: frames, capsules and streams of other types, and
/// QPACK's streams.
pub const PASSED_OVER_BYTES_MAX: usize = 64 * 1024;
/// What each stream and frame that is passed over counts beside its bytes.
const PASSED_OVER_EACH: usize = 64;
/// Maximum requests of a connection.
pub const REQUESTS_MAX: u8 = 4;
/// The type of a bidirectional stream of a session; by draft it stands where a frame's type does.
const BIDIRECTIONAL: u64 = 0x41;
/// Types of frames of HTTP/2 that must not be used again.
const RESERVED: [u64; 4] = [2, 6, 8, 9];

const STATUS_NOT_FOUND: u16 = 404;

/// How a peer's HTTP/3 is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A second control stream, or a second stream of QPACK's.
    #[error("a second stream came of a type that is there once")]
    SecondStream,
    /// A stream that lives as long as the connection ended.
    #[error("a control stream ended")]
    StreamEnded,
    /// A server's stream came from a client.
    #[error("a push stream came")]
    Push,
    /// A session has unidirectional streams only.
    #[error("a bidirectional stream came within a session")]
    Bidirectional,
    /// The control stream does not begin with SETTINGS, or has more of them.
    #[error("SETTINGS did not come first, or came twice")]
    SettingsPlace,
    /// A setting is unreadable, or there twice.
    #[error("SETTINGS are malformed")]
    Settings,
    /// A frame that must not be on its stream.
    #[error("a frame came on a stream where it must not be")]
    Frame,
    /// A stream ended inside a frame.
    #[error("a stream ended inside a frame")]
    Truncated,
    /// A frame or capsule declares more than its limit.
    #[error("a frame is larger than it may be")]
    TooLarge,
    /// More came than is passed over.
    #[error("more than {} KiB came that nobody needs", PASSED_OVER_BYTES_MAX / 1024)]
    TooMuch,
    /// More requests came than a connection may have.
    #[error("more than {REQUESTS_MAX} requests came")]
    TooManyRequests,
    /// A field section uses a dynamic table, or is malformed.
    #[error("a field section is malformed")]
    Compression,
    /// A request's fields are missing, twice there or no text.
    #[error("the fields of a request are malformed")]
    Fields,
    /// A capsule is malformed.
    #[error("a capsule is malformed")]
    Capsule,
    /// A stream or datagram of a session that is not there.
    #[error("a stream or a datagram of another session came")]
    OtherSession,
}

/// What a unidirectional stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uni {
    /// The peer's control stream: its bytes go to [`Http3::control`].
    Control,
    /// One of QPACK's: its bytes go to [`Http3::pass_over`].
    Qpack,
    /// A stream of this session: its rest is a link's.
    Session(u64),
    /// Of no use: to be stopped.
    Unknown,
}

/// The beginning of a unidirectional stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct UniHead {
    number: Partial,
    is_of_session: bool,
}

/// What the peer did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A session is asked for: [`Http3::admit`] or [`Http3::refuse`].
    Asked(Request),
    /// A request that gets this status, and no session.
    Refused(u16),
    /// The session is over, with a code and a reason.
    Closed {
        /// The application's code.
        code: u32,
        /// Any bytes.
        reason: Vec<u8>,
    },
}

/// How much this end may send in the session, over its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes on streams, without the streams' beginnings.
    pub bytes: u64,
    /// Unidirectional streams.
    pub streams: u64,
}

impl Limits {
    /// A peer that names no limit sets none.
    pub(super) const NONE: Limits = Limits { bytes: u64::MAX, streams: u64::MAX };

    /// A limit that is lower than before changes nothing.
    pub(super) fn raise(&mut self, is_of_bytes: bool, is_of_streams: bool, limit: u64) {
        if is_of_bytes {
            self.bytes = self.bytes.max(limit);
        } else if is_of_streams {
            self.streams = self.streams.max(limit);
        }
    }
}

/// The machine.
#[derive(Debug, Default)]
pub struct Http3 {
    control: Option<Control>,
    qpack: [bool; 2],
    limits: Option<Limits>,
    passed_over_bytes: usize,
    requests: u8,
    request: Option<Asking>,
    events: VecDeque<Happened>,
}

#[derive(Debug, Default)]
struct Control {
    tlv: Tlv,
    kept: Vec<u8>,
}

/// The CONNECT stream, or one that would be.
#[derive(Debug)]
struct Asking {
    stream: u64,
    tlv: Tlv,
    kept: Vec<u8>,
    capsules: Capsules,
    stage: Stage,
    /// Held until SETTINGS are there.
    request: Option<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its HEADERS are awaited.
    Head,
    /// They are there; the owner has not answered.
    Asked,
    /// It is a session.
    Session,
    /// It is answered otherwise, or closed: what follows is dropped.
    Over,
}

impl Http3 {
    /// Takes the next byte of a unidirectional stream. `None` while its type is incomplete.
    pub fn begin(&mut self, head: &mut UniHead, byte: u8) -> Result<Option<Uni>, Fault> {
        let Some(number) = head.number.take(byte) else { return Ok(None) };
        if head.is_of_session {
            return self.check_session(number).map(|()| Some(Uni::Session(number)));
        }
        match number {
            STREAM_CONTROL if self.control.is_some() => Err(Fault::SecondStream),
            STREAM_CONTROL => {
                self.control = Some(Control::default());
                Ok(Some(Uni::Control))
            }
            STREAM_PUSH => Err(Fault::Push),
            STREAM_QPACK_ENCODER | STREAM_QPACK_DECODER => {
                let had = &mut self.qpack[usize::from(number == STREAM_QPACK_DECODER)];
                if core::mem::replace(had, true) { Err(Fault::SecondStream) } else { Ok(Some(Uni::Qpack)) }
            }
            STREAM_SESSION => {
                head.is_of_session = true;
                Ok(None)
            }
            _ => self.pass_over(PASSED_OVER_EACH).map(|()| Some(Uni::Unknown)),
        }
    }

    /// Counts bytes that are read and dropped.
    pub fn pass_over(&mut self, bytes: usize) -> Result<(), Fault> {
        self.passed_over_bytes = self.passed_over_bytes.saturating_add(bytes);
        if self.passed_over_bytes > PASSED_OVER_BYTES_MAX { Err(Fault::TooMuch) } else { Ok(()) }
    }

    /// Reads the control stream.
    pub fn control(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        let Some(mut control) = self.control.take() else { return Ok(()) };
        while let Some(part) = control.tlv.next(&mut bytes) {
            match part {
                Part::Begin { kind: FRAME_SETTINGS, length } if self.limits.is_none() => {
                    if length > SETTINGS_BYTES_MAX as u64 {
                        return Err(Fault::TooLarge);
                    }
                }
                Part::Begin { .. } if self.limits.is_none() => return Err(Fault::SettingsPlace),
                Part::Begin { kind: FRAME_SETTINGS, .. } => return Err(Fault::SettingsPlace),
                Part::Begin { kind, .. } if is_misplaced(kind) || kind <= FRAME_HEADERS => {
                    return Err(Fault::Frame);
                }
                Part::Begin { .. } => self.pass_over(PASSED_OVER_EACH)?,
                Part::Body { kind: FRAME_SETTINGS, bytes } => control.kept.extend_from_slice(bytes),
                Part::Body { bytes, .. } => self.pass_over(bytes.len())?,
                Part::End { kind: FRAME_SETTINGS } => {
                    self.limits = Some(settings(&core::mem::take(&mut control.kept))?);
                    if let Some(mut asking) = self.request.take() {
                        self.announce(&mut asking);
                        self.request = Some(asking);
                    }
                }
                Part::End { .. } => {}
            }
        }
        self.control = Some(control);
        Ok(())
    }

    /// A bidirectional stream begins. The peer has one at a time.
    pub fn open(&mut self, stream: u64) -> Result<(), Fault> {
        if self.request.as_ref().is_some_and(|asking| asking.stage != Stage::Over) {
            return Err(Fault::Bidirectional);
        }
        if self.requests == REQUESTS_MAX {
            return Err(Fault::TooManyRequests);
        }
        self.requests += 1;
        self.request = Some(Asking {
            stream,
            tlv: Tlv::default(),
            kept: Vec::new(),
            capsules: Capsules::default(),
            stage: Stage::Head,
            request: None,
        });
        Ok(())
    }

    /// Reads the bidirectional stream.
    pub fn request(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        let Some(mut asking) = self.request.take() else { return Ok(()) };
        while asking.stage != Stage::Over
            && let Some(part) = asking.tlv.next(&mut bytes)
        {
            self.part_of_request(&mut asking, part)?;
        }
        if asking.stage == Stage::Over {
            self.pass_over(bytes.len())?;
        }
        self.request = Some(asking);
        Ok(())
    }

    fn part_of_request(&mut self, asking: &mut Asking, part: Part<'_>) -> Result<(), Fault> {
        let is_head = asking.stage == Stage::Head;
        match part {
            Part::Begin { kind: BIDIRECTIONAL, .. } => Err(Fault::Bidirectional),
            Part::Begin { kind: FRAME_HEADERS, length } if is_head => {
                if length > HEADERS_BYTES_MAX as u64 {
                    Err(Fault::TooLarge)
                } else {
                    Ok(())
                }
            }
            // A session has no trailers.
            Part::Begin { kind: FRAME_HEADERS, .. } => Err(Fault::Frame),
            Part::Begin { kind: FRAME_DATA, .. } if is_head => Err(Fault::Frame),
            Part::Begin { kind: FRAME_SETTINGS, .. } => Err(Fault::Frame),
            Part::Begin { kind, .. } if is_misplaced(kind) => Err(Fault::Frame),
            Part::Begin { kind: FRAME_DATA, .. } => Ok(()),
            Part::Begin { .. } => self.pass_over(PASSED_OVER_EACH),
            Part::Body { kind: FRAME_HEADERS, bytes } => {
                asking.kept.extend_from_slice(bytes);
                Ok(())
            }
            Part::Body { kind: FRAME_DATA, bytes } => self.capsules(asking, bytes),
            Part::Body { bytes, .. } => self.pass_over(bytes.len()),
            Part::End { kind: FRAME_HEADERS } => {
                match fields::read(&core::mem::take(&mut asking.kept))? {
                    Some(request) => {
                        (asking.stage, asking.request) = (Stage::Asked, Some(request));
                        self.announce(asking);
                    }
                    None => {
                        asking.stage = Stage::Over;
                        self.events.push_back(Happened::Refused(STATUS_NOT_FOUND));
                    }
                }
                Ok(())
            }
            Part::End { .. } => Ok(()),
        }
    }

    fn capsules(&mut self, asking: &mut Asking, mut bytes: &[u8]) -> Result<(), Fault> {
        // Without SETTINGS there are no limits yet to raise.
        let mut none = Limits::NONE;
        while let Some(said) = {
            let limits = self.limits.as_mut().unwrap_or(&mut none);
            asking.capsules.read(&mut bytes, limits)?
        } {
            match said {
                Said::PassedOver(bytes) => self.pass_over(bytes)?,
                Said::Close { code, reason } => {
                    asking.stage = Stage::Over;
                    self.events.push_back(Happened::Closed { code, reason });
                    break;
                }
            }
        }
        Ok(())
    }

    /// The bidirectional stream has ended.
    pub fn request_ended(&mut self) -> Result<(), Fault> {
        let Some(asking) = &mut self.request else { return Ok(()) };
        let stage = core::mem::replace(&mut asking.stage, Stage::Over);
        match stage {
            Stage::Over => Ok(()),
            _ if !asking.tlv.is_idle() => Err(Fault::Truncated),
            Stage::Head => Err(Fault::Truncated),
            // By the standard this is a close with the code 0 and no reason.
            Stage::Asked | Stage::Session => {
                self.events.push_back(Happened::Closed { code: 0, reason: Vec::new() });
                Ok(())
            }
        }
    }

    /// The peer has reset the bidirectional stream. Returns whether that ends a session.
    pub fn request_reset(&mut self) -> bool {
        let Some(asking) = &mut self.request else { return false };
        asking.request = None;
        matches!(core::mem::replace(&mut asking.stage, Stage::Over), Stage::Asked | Stage::Session)
    }

    /// Reports a request once SETTINGS are there too: they have the limits of what may be sent.
    fn announce(&mut self, asking: &mut Asking) {
        if self.limits.is_some()
            && let Some(request) = asking.request.take()
        {
            self.events.push_back(Happened::Asked(request));
        }
    }

    /// Admits the session that was asked for last. Returns its id and what may be sent in it; `None` if it is
    /// over.
    pub fn admit(&mut self) -> Option<(u64, Limits)> {
        let limits = self.limits?;
        let asking = self.request.as_mut().filter(|asking| asking.stage == Stage::Asked)?;
        asking.stage = Stage::Session;
        Some((asking.stream, limits))
    }

    /// The session that was asked for last is refused. Returns whether it waits for that.
    pub fn refuse(&mut self) -> bool {
        let asking = self.request.as_mut().filter(|asking| asking.stage == Stage::Asked);
        asking.map(|asking| asking.stage = Stage::Over).is_some()
    }

    /// What this end may send in the session; `None` before SETTINGS came.
    pub fn limits(&self) -> Option<Limits> {
        self.limits
    }

    /// Returns what the peer did, oldest first.
    pub fn poll_event(&mut self) -> Option<Happened> {
        let event = self.events.pop_front();
        if event.is_none() {
            // A session has few events.
            self.events = VecDeque::new();
        }
        event
    }

    /// Streams of a session may overtake its CONNECT, and then wait.
    fn check_session(&self, id: u64) -> Result<(), Fault> {
        let asking = self.request.as_ref().filter(|asking| asking.stage != Stage::Over);
        let is_other = asking.is_some_and(|asking| asking.stream != id);
        // The ids of bidirectional streams that a client opens.
        if is_other || !id.is_multiple_of(4) { Err(Fault::OtherSession) } else { Ok(()) }
    }
}

/// Frames that neither the control stream nor a request may have: PUSH_PROMISE and those of HTTP/2.
fn is_misplaced(kind: u64) -> bool {
    const PUSH_PROMISE: u64 = 5;
    kind == PUSH_PROMISE || RESERVED.contains(&kind)
}

/// Reads SETTINGS. A peer that names one of the three limits uses them all.
fn settings(mut bytes: &[u8]) -> Result<Limits, Fault> {
    let mut seen = Vec::new();
    let (mut limits, mut has_limits) = (Limits { bytes: 0, streams: 0 }, false);
    while !bytes.is_empty() {
        let (setting, width) = varint::read(bytes).ok_or(Fault::Settings)?;
        bytes = &bytes[width..];
        let (value, width) = varint::read(bytes).ok_or(Fault::Settings)?;
        bytes = &bytes[width..];
        seen.push(setting);
        let limit = match setting {
            SETTING_INITIAL_MAX_DATA => &mut limits.bytes,
            SETTING_INITIAL_MAX_STREAMS_UNI => &mut limits.streams,
            SETTING_INITIAL_MAX_STREAMS_BIDI => {
                has_limits |= value > 0;
                continue;
            }
            _ => continue,
        };
        *limit = value;
        has_limits |= value > 0;
    }
    seen.sort_unstable();
    if seen.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Fault::Settings);
    }
    Ok(if has_limits { limits } else { Limits::NONE })
}
