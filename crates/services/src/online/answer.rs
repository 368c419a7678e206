//! The body of an HTTP answer. It holds its share of the memory for unread answers until it is sent.

use super::unread::{Full, Share};
use bytes::Bytes;
use core::convert::Infallible;
use core::pin::Pin;
use core::task::{Context, Poll};
use hyper::body::{Body, Frame, SizeHint};

/// Bytes given to the connection at once: it buffers no more of an unread answer.
const PART_BYTES: usize = 16 * 1024;

/// The body of an answer.
pub(super) struct ChargedBody {
    rest: Bytes,
    share: Share,
}

impl ChargedBody {
    /// Fits the share to the text's size.
    ///
    /// # Errors
    /// The text is larger than its share, and the limit allows no more.
    pub(super) fn new(text: String, mut share: Share) -> Result<Self, Full> {
        share.fit(text.len())?;
        Ok(ChargedBody { rest: text.into(), share })
    }
}

impl Body for ChargedBody {
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
        // A copy, because a slice would keep the whole text in memory.
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

impl core::fmt::Debug for ChargedBody {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ChargedBody").field("left", &self.rest.len()).field("share", &self.share).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::unread::Unread;
    use super::*;
    use parlor_hub::Origin;

    #[test]
    fn threat_44_an_answer_larger_than_its_share_is_charged_whole_or_refused() {
        let unread = Unread::new(100, 100);
        let held = ChargedBody::new("x".repeat(90), unread.take(Origin(1), 10).unwrap()).unwrap();
        assert_eq!(unread.bytes(), 90);
        assert_eq!(
            ChargedBody::new("x".repeat(11), unread.take(Origin(2), 1).unwrap()).unwrap_err(),
            Full::All
        );
        drop(held);
        assert_eq!(unread.bytes(), 0);
    }
}
