//! A terminal's input that stays open, so that a key costs a frame and not a request.
//!
//! Each piece is written in a turn of its own: who types all day keeps nobody else from typing. The answer begins at
//! once and tells, a step at a time, how many bytes of the body are done with; its last line tells all of them, or why
//! it stopped. `offset` is that of the first byte: a terminal counts for nobody, so what follows goes behind whatever
//! others have typed meanwhile. Must stay true: who leaves without an end has given exactly the bytes that `accepted`
//! counts, and gives none later.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Serialize;

use super::record::Record;
use super::stdin::{already_given, closed, write_fresh};
use crate::errors::Outcome;
use crate::http::body::{BodySender, ClientGone};
use crate::limits::STDIN_RECEIPT_BYTES;

/// One line of the answer.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Receipt<'a> {
    /// So many bytes of the body are done with, since its beginning.
    Taken { bytes: u64 },
    /// No more of it is taken.
    Error { code: &'a str, detail: &'a str },
}

impl Receipt<'_> {
    pub fn line(&self) -> Bytes {
        let mut line = BytesMut::new();
        // Strings and numbers always serialise.
        line.put_slice(&serde_json::to_vec(self).unwrap_or_default());
        line.put_u8(b'\n');
        line.freeze()
    }
}

/// Until the body ends, nothing more can be written, or the client is gone: then nothing of what it still had sent is.
pub async fn serve(
    record: Arc<Record>,
    body: Incoming,
    offset: Option<u64>,
    writer: Option<String>,
    sender: BodySender,
) {
    let stream = StdinStream {
        record: &record,
        writer: writer.as_deref(),
        sender: &sender,
        taken: 0,
        told: 0,
    };
    let mut gone = std::pin::pin!(sender.closed());
    let mut work = std::pin::pin!(stream.run(body, offset));
    let whole = std::future::poll_fn(|cx| {
        use std::task::Poll;
        if gone.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ClientGone));
        }
        work.as_mut().poll(cx)
    });
    if whole.await.is_ok() {
        sender.finish().await;
    } else {
        sender.abort().await;
    }
}

struct StdinStream<'a> {
    record: &'a Record,
    writer: Option<&'a str>,
    sender: &'a BodySender,
    taken: u64,
    told: u64,
}

impl StdinStream<'_> {
    /// `Err` when the body broke off.
    async fn run(mut self, body: Incoming, offset: Option<u64>) -> Result<(), ClientGone> {
        match self.write(body, offset).await? {
            Ok(()) => self.tell().await,
            Err(error) => {
                let body = error.body();
                let (code, detail) = (body.code, body.detail);
                self.sender.send(Receipt::Error { code, detail }.line()).await
            }
        }
    }

    async fn write(&mut self, mut body: Incoming, offset: Option<u64>) -> Result<Outcome<()>, ClientGone> {
        let mut skip = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| ClientGone)?.into_data() else {
                continue;
            };
            if let Err(error) = self.write_piece(&data, offset, &mut skip).await {
                return Ok(Err(error));
            }
            self.taken += data.len() as u64;
            if self.taken - self.told >= STDIN_RECEIPT_BYTES {
                self.tell().await?;
            }
        }
        Ok(Ok(()))
    }

    /// `skip` is not known before the first piece has its turn.
    async fn write_piece(&self, data: &[u8], offset: Option<u64>, skip: &mut Option<u64>) -> Outcome<()> {
        let _turn = self.record.stdin_turn.lock().await;
        let (state, input, own_from) = self.record.look(|changing| {
            (
                changing.stdin,
                changing.input.clone(),
                changing.given_from(self.writer),
            )
        });
        let Some(fd) = input else {
            return Err(closed(self.record));
        };
        let mut left = match *skip {
            Some(left) => left,
            None => already_given(state, own_from, offset)?,
        };
        let written = write_fresh(self.record, &fd, data, &mut left, self.writer).await;
        *skip = Some(left);
        written
    }

    async fn tell(&mut self) -> Result<(), ClientGone> {
        self.told = self.taken;
        self.sender
            .send(Receipt::Taken { bytes: self.taken }.line())
            .await
    }
}
