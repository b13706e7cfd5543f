//! Dials for ever, and serves one session after the other.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::UnixStream;

use super::preamble::{self, Answer, FEATURES, Hello, PROTOCOL, PROTOCOL_VERSION};
use super::redial::Redial;
use crate::agent::{Agent, VERSION};
use crate::http::router;
use crate::limits::{
    CONCURRENT_STREAMS_MAX, CONNECTION_WINDOW_BYTES, HEADER_LIST_MAX_BYTES, HTTP_FRAME_MAX_BYTES,
    PREAMBLE_MAX_BYTES, PREAMBLE_TIMEOUT, REFUSED_DELAY, SEND_BUFFER_MAX_BYTES, SOCKET_BUFFER_BYTES,
    STREAM_WINDOW_BYTES,
};
use crate::random;
use crate::sync::LockAnyway;

enum SessionEnd {
    Over,
    Refused,
}

/// Runs for ever.
pub async fn dial_for_ever(agent: Arc<Agent>, channel: PathBuf) {
    let mut redial = Redial::new();
    loop {
        let pause = match session(&agent, &channel).await {
            Ok(SessionEnd::Refused) => REFUSED_DELAY,
            Ok(SessionEnd::Over) => redial.after_session(),
            Err(_) => redial.after_silence(),
        };
        tokio::time::sleep(jittered(pause)).await;
    }
}

async fn session(agent: &Arc<Agent>, channel: &Path) -> io::Result<SessionEnd> {
    let mut socket = UnixStream::connect(channel).await?;
    let answer = tokio::time::timeout(PREAMBLE_TIMEOUT, introduce(agent, &mut socket)).await??;
    if answer == Answer::Refused {
        return Ok(SessionEnd::Refused);
    }
    let service = {
        let agent = Arc::clone(agent);
        service_fn(move |request| router::handle(Arc::clone(&agent), request))
    };
    // A frame is small and a system call inside gVisor is dear: the buffers make one call of many frames.
    // However it ends, there was a host.
    let _ = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CONCURRENT_STREAMS_MAX)
        .max_header_list_size(HEADER_LIST_MAX_BYTES)
        .max_frame_size(HTTP_FRAME_MAX_BYTES)
        .max_send_buf_size(SEND_BUFFER_MAX_BYTES)
        // Cancelled requests are everyday traffic of the one host, not an attack by it.
        .max_pending_accept_reset_streams(Some(CONCURRENT_STREAMS_MAX as usize))
        .max_local_error_reset_streams(None)
        .serve_connection(
            TokioIo::new(BufStream::with_capacity(
                SOCKET_BUFFER_BYTES,
                SOCKET_BUFFER_BYTES,
                socket,
            )),
            service,
        )
        .await;
    Ok(SessionEnd::Over)
}

async fn introduce(agent: &Agent, socket: &mut UnixStream) -> io::Result<Answer> {
    let session = random::hex_id()?;
    let identity = Arc::clone(&agent.identity.locked());
    let hello = Hello {
        protocol: PROTOCOL,
        version: PROTOCOL_VERSION,
        agent: VERSION,
        boot_id: &agent.boot_id,
        session: &session,
        sandbox: identity.sandbox.as_deref(),
        generation: identity.generation,
        features: FEATURES,
    };
    let line = preamble::encode(&hello).ok_or_else(|| io::Error::other("the preamble is too long"))?;
    socket.write_all(&line).await?;
    preamble::decode(&read_line(socket).await?)
        .map_err(|error| io::Error::other(format!("preamble: {error:?}")))
}

/// One byte at a time, so that nothing of HTTP/2 behind the line is swallowed.
async fn read_line(socket: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') && line.len() <= PREAMBLE_MAX_BYTES {
        line.push(socket.read_u8().await?);
    }
    Ok(line)
}

/// Up to a tenth more, so that many sandboxes do not dial in step.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness the pause is the plain one.
    let _ = random::fill(&mut byte);
    pause + pause.mul_f64(f64::from(byte[0]) / 2550.0)
}
