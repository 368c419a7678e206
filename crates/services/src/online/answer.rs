//! An HTTP answer that returns its share of the memory budget once it was sent.

use super::unread::Share;
use bytes::Bytes;
use core::convert::Infallible;
use core::pin::Pin;
use core::task::{Context, Poll};
use hyper::body::{Body, Frame, SizeHint};

/// What is handed to the connection at once: that much is in its buffers when the rest is not taken.
const PART_BYTES: usize = 16 * 1024;

/// The body of an answer.
pub(super) struct Held {
    rest: Bytes,
    share: Share,
}

impl Held {
    pub(super) fn new(text: String, mut share: Share) -> Self {
        share.shrink_to(text.len());
        Held { rest: text.into(), share }
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let len = self.rest.len().min(PART_BYTES);
        // A copy, since a part of the text would keep all of it.
        let part = Bytes::copy_from_slice(&self.rest[..len]);
        self.rest = self.rest.split_off(len);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

impl core::fmt::Debug for Held {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Held").field("left", &self.rest.len()).field("share", &self.share).finish()
    }
}
