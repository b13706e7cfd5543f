//! Response bodies: a whole one, or a bounded channel fed by a task.
//!
//! The channel holds two chunks, so a slow client stops the producer after two chunks plus what HTTP/2 has
//! buffered; memory never follows the size of a stream. A producer learns that the client went away when its
//! send fails. A stream ends well only when its producer says so: an aborted one, and one whose producer is gone
//! without a word, becomes an HTTP/2 reset, so half an answer is never taken for a whole one.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The stream could not be finished; the client sees a reset.
#[derive(Debug)]
pub struct StreamAborted;

impl fmt::Display for StreamAborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stream aborted")
    }
}

impl std::error::Error for StreamAborted {}

pub enum AgentBody {
    Whole(Option<Bytes>),
    Stream(Stream),
}

pub struct Stream {
    parts: mpsc::Receiver<Part>,
    /// Received, and not given out yet.
    ahead: VecDeque<Part>,
    ended: bool,
}

enum Part {
    Data(Bytes),
    /// The last part.
    Trailers(HeaderMap),
    End,
    Abort,
}

/// The producing end of a streamed body.
#[derive(Clone)]
pub struct BodySender(mpsc::Sender<Part>);

/// The client went away.
#[derive(Debug)]
pub struct ClientGone;

const CHUNKS_IN_FLIGHT: usize = 2;

impl AgentBody {
    pub fn empty() -> Self {
        Self::Whole(None)
    }

    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    pub fn stream() -> (BodySender, Self) {
        let (sender, parts) = mpsc::channel(CHUNKS_IN_FLIGHT);
        let stream = Stream {
            parts,
            ahead: VecDeque::new(),
            ended: false,
        };
        (BodySender(sender), Self::Stream(stream))
    }

    /// A stream that is whole already, as one piece: its length is then known, and its end goes out with it.
    #[must_use]
    pub fn settled(self) -> Self {
        let Self::Stream(mut stream) = self else {
            return self;
        };
        while let Ok(part) = stream.parts.try_recv() {
            stream.ahead.push_back(part);
        }
        match stream.ahead.make_contiguous() {
            [Part::Data(bytes), Part::End] => Self::Whole(Some(std::mem::take(bytes))),
            _ => Self::Stream(stream),
        }
    }
}

impl BodySender {
    pub async fn send(&self, bytes: Bytes) -> Result<(), ClientGone> {
        self.0.send(Part::Data(bytes)).await.map_err(|_| ClientGone)
    }

    /// The stream is whole. A client that left no longer wants to know, here and below.
    pub async fn finish(&self) {
        let _ = self.0.send(Part::End).await;
    }

    /// The stream is whole, with these trailers.
    pub async fn finish_with(&self, trailers: HeaderMap) {
        let _ = self.0.send(Part::Trailers(trailers)).await;
    }

    pub async fn abort(&self) {
        let _ = self.0.send(Part::Abort).await;
    }

    /// Resolves when the client is gone.
    pub async fn closed(&self) {
        self.0.closed().await;
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl Stream {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamAborted>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let part = match self.ahead.pop_front() {
            Some(part) => Poll::Ready(Some(part)),
            None => self.parts.poll_recv(cx),
        };
        part.map(|part| {
            self.ended = !matches!(part, Some(Part::Data(_)));
            match part {
                Some(Part::Data(bytes)) => {
                    self.look_for_end();
                    Some(Ok(Frame::data(bytes)))
                }
                Some(Part::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
                Some(Part::End) => None,
                Some(Part::Abort) | None => Some(Err(StreamAborted)),
            }
        })
    }
}

impl Stream {
    /// An end that is known already goes out with the last bytes, and wakes nobody a second time.
    fn look_for_end(&mut self) {
        if self.ahead.is_empty() {
            self.ahead.extend(self.parts.try_recv().ok());
        }
        if let Some(Part::End) = self.ahead.front() {
            self.ended = true;
        }
    }
}

impl Body for AgentBody {
    type Data = Bytes;
    type Error = StreamAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamAborted>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => stream.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Stream(stream) => stream.ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use hyper::body::Body;

    use super::AgentBody;

    #[tokio::test]
    async fn only_a_finished_stream_is_whole() {
        let (sender, body) = AgentBody::stream();
        sender.send("a".into()).await.unwrap();
        sender.finish().await;
        assert_eq!(body.collect().await.unwrap().to_bytes(), "a");
        let (sender, body) = AgentBody::stream();
        sender.send("a".into()).await.unwrap();
        drop(sender);
        assert!(body.collect().await.is_err());
    }

    #[tokio::test]
    async fn an_end_that_is_known_goes_out_with_the_last_bytes() {
        let (sender, mut body) = AgentBody::stream();
        sender.send("a".into()).await.unwrap();
        assert!(!body.is_end_stream());
        body.frame().await.unwrap().unwrap();
        assert!(!body.is_end_stream(), "more may come");
        sender.send("b".into()).await.unwrap();
        sender.finish().await;
        body.frame().await.unwrap().unwrap();
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn only_what_is_whole_is_settled() {
        let (sender, body) = AgentBody::stream();
        sender.send("a".into()).await.unwrap();
        sender.finish().await;
        let body = body.settled();
        assert_eq!(body.size_hint().exact(), Some(1));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "a");
        let (sender, body) = AgentBody::stream();
        sender.send("a".into()).await.unwrap();
        let body = body.settled();
        assert_eq!(body.size_hint().exact(), None);
        sender.send("b".into()).await.unwrap();
        sender.finish().await;
        assert_eq!(body.collect().await.unwrap().to_bytes(), "ab");
        let (sender, body) = AgentBody::stream();
        sender.send("a".into()).await.unwrap();
        sender.abort().await;
        assert!(body.settled().collect().await.is_err());
    }
}
