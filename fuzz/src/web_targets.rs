//! The fuzz target of HTTP/3.

use parlor_transport::quic::webtransport::{
    Fault, Happened, Http3, Limits, PASSED_OVER_BYTES_MAX, REQUESTS_MAX, Uni, UniHead,
};

/// Operations of a script. Each but the last four is followed by a length and as many bytes.
pub mod op {
    /// A unidirectional stream begins.
    pub const BEGIN: u8 = 0;
    /// Bytes of the control stream.
    pub const CONTROL: u8 = 1;
    /// Bytes of the request's stream.
    pub const REQUEST: u8 = 2;
    /// A bidirectional stream begins.
    pub const OPEN: u8 = 3;
    /// The session is admitted.
    pub const ADMIT: u8 = 4;
    /// It is refused.
    pub const REFUSE: u8 = 5;
    /// The request's stream ends.
    pub const END: u8 = 6;
    /// It is reset.
    pub const RESET: u8 = 7;
}

/// What a machine did.
#[derive(Debug, PartialEq, Eq)]
enum Did {
    Happened(Happened),
    Began(Option<Uni>),
    Admitted(Option<(u64, Limits)>),
    Refused(bool),
    Reset(bool),
    Fault(Fault),
}

/// A script of what a client sends. Two machines get the same bytes, one in whole pieces and one byte by byte, and
/// must do the same. What they report is bounded.
pub fn webtransport(script: &[u8]) {
    let (mut whole, mut bytewise) = (Http3::default(), Http3::default());
    let (mut rest, mut stream, mut asked) = (script, 0, 0);
    while let Some((op, after)) = rest.split_first() {
        rest = after;
        let op = op % 8;
        let mut piece: &[u8] = &[];
        if op <= op::REQUEST {
            let Some((length, after)) = rest.split_first() else { return };
            let (bytes, after) = after.split_at(usize::from(*length).min(after.len()));
            (piece, rest) = (bytes, after);
        }
        let at_once = step(&mut whole, op, &[piece], stream);
        let pieces: Vec<&[u8]> = piece.chunks(1).collect();
        assert_eq!(at_once, step(&mut bytewise, op, &pieces, stream), "a cut changes nothing");
        assert_eq!(whole.limits(), bytewise.limits());
        stream += if op == op::OPEN { 4 } else { 0 };
        asked += at_once.iter().filter(|did| matches!(did, Did::Happened(Happened::Asked(_)))).count();
        assert!(asked <= usize::from(REQUESTS_MAX), "a connection asks so often at most");
        if matches!(at_once.last(), Some(Did::Fault(_))) {
            return;
        }
    }
    assert_eq!(whole.pass_over(PASSED_OVER_BYTES_MAX + 1), Err(Fault::TooMuch));
}

fn step(http3: &mut Http3, op: u8, pieces: &[&[u8]], stream: u64) -> Vec<Did> {
    let mut did = Vec::new();
    let done = match op {
        op::BEGIN => begin(http3, pieces).map(|uni| did.push(Did::Began(uni))),
        op::CONTROL => pieces.iter().try_for_each(|piece| http3.control(piece)),
        op::REQUEST => pieces.iter().try_for_each(|piece| http3.request(piece)),
        op::OPEN => http3.open(stream),
        op::ADMIT => {
            did.push(Did::Admitted(http3.admit()));
            Ok(())
        }
        op::REFUSE => {
            did.push(Did::Refused(http3.refuse()));
            Ok(())
        }
        op::END => http3.request_ended(),
        _ => {
            did.push(Did::Reset(http3.request_reset()));
            Ok(())
        }
    };
    did.extend(core::iter::from_fn(|| http3.poll_event()).map(Did::Happened));
    did.extend(done.err().map(Did::Fault));
    did
}

fn begin(http3: &mut Http3, pieces: &[&[u8]]) -> Result<Option<Uni>, Fault> {
    let mut head = UniHead::default();
    for byte in pieces.concat() {
        if let Some(uni) = http3.begin(&mut head, byte)? {
            return Ok(Some(uni));
        }
    }
    Ok(None)
}
