//! Endpoints of archives: steps on blocking threads, a stream between them.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use serde::Serialize;

use super::archive_read::Packer;
use super::archive_write::Unpacker;
use super::as_user::{resolve, run_as, with_rights_of};
use super::mkdir;
use super::routes::{content_length, path_of, user_of};
use crate::blocking::run_blocking;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::http::body::AgentBody;
use crate::http::query::Query;
use crate::http::response::{AgentResponse, TAR, json, with_type};
use crate::limits::FILE_CHUNK_BYTES;
use crate::tar::reader::{TarReader, Totals};
use crate::users::User;

const ENTRIES: HeaderName = HeaderName::from_static("sandglass-entries");
const SKIPPED: HeaderName = HeaderName::from_static("sandglass-skipped");
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

pub async fn read(request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["path", "user"])?;
    let path = path_of(&query)?;
    let user = user_of(&query)?;
    let (user, mut packer) = run_as(user, move |user| Ok((user.clone(), Packer::open(&path)?))).await?;
    let (sender, body) = AgentBody::stream();
    tokio::spawn(async move {
        let mut user = user;
        loop {
            let step = run_blocking(move || {
                let chunk = with_rights_of(&user, || packer.next_chunk())?;
                Ok((user, packer, chunk))
            });
            let Ok((same_user, rest, chunk)) = step.await else {
                return sender.abort().await;
            };
            (user, packer) = (same_user, rest);
            if chunk.is_empty() {
                return sender.finish_with(trailers(&packer)).await;
            }
            if sender.send(chunk).await.is_err() {
                return;
            }
        }
    });
    Ok(with_type(StatusCode::OK, TAR, body))
}

fn trailers(packer: &Packer) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert(ENTRIES, HeaderValue::from(packer.entries));
    trailers.insert(SKIPPED, HeaderValue::from(packer.skipped));
    trailers
}

#[derive(Serialize)]
struct Unpacked {
    entries: u64,
    bytes: u64,
}

pub async fn write(request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["path", "user"])?;
    let path = path_of(&query)?;
    let user_name = user_of(&query)?;
    let announced = content_length(request.headers())?;
    let mut unpacking = run_blocking(move || {
        let user = resolve(user_name.as_deref())?;
        with_rights_of(&user, || {
            mkdir::make_all(path.as_path(), mkdir::DIRECTORY_MODE)?;
            Unpacker::open(path.as_path())
        })
        .map(|unpacker| Unpacking::new(user, unpacker))
    })
    .await?;
    let mut body = request.into_body();
    let mut total: u64 = 0;
    let mut gathered = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            run_blocking(move || unpacking.take_all(gathered)).await?;
            return Err(GuestError::invalid(
                "The body ended early; what came before it is unpacked. Send it again.",
            ));
        };
        let Ok(data) = frame.into_data() else { continue };
        total += data.len() as u64;
        gathered.extend_from_slice(&data);
        if gathered.len() >= FILE_CHUNK_BYTES {
            (unpacking, gathered) = run_blocking(move || unpacking.take_all(gathered)).await?;
        }
    }
    if announced.is_some_and(|announced| announced != total) {
        run_blocking(move || unpacking.take_all(gathered)).await?;
        return Err(GuestError::invalid(
            "The body is not as long as content-length says; send it again.",
        ));
    }
    let totals = run_blocking(move || {
        let (unpacking, _) = unpacking.take_all(gathered)?;
        unpacking.finish()
    })
    .await?;
    Ok(json(
        StatusCode::OK,
        &Unpacked {
            entries: totals.entries,
            bytes: totals.bytes,
        },
    ))
}

/// An archive being unpacked as its user, compressed or not.
struct Unpacking {
    user: User,
    input: Input,
}

enum Input {
    /// The first bytes decide.
    Undecided(Vec<u8>, Box<Stage>),
    Plain(Box<Stage>),
    Gzip(Box<MultiGzDecoder<Stage>>),
}

/// The tar reader and what it feeds, as something a decompressor can write to.
struct Stage {
    reader: TarReader,
    unpacker: Unpacker,
    failure: Option<GuestError>,
}

impl Unpacking {
    fn new(user: User, unpacker: Unpacker) -> Self {
        let stage = Stage {
            reader: TarReader::default(),
            unpacker,
            failure: None,
        };
        Self {
            user,
            input: Input::Undecided(Vec::new(), Box::new(stage)),
        }
    }

    /// Unpacks them; their memory, emptied, for the next ones.
    fn take_all(self, mut bytes: Vec<u8>) -> Outcome<(Self, Vec<u8>)> {
        let Self { user, input } = self;
        let input = with_rights_of(&user, || input.take(&bytes))?;
        bytes.clear();
        Ok((Self { user, input }, bytes))
    }

    fn finish(self) -> Outcome<Totals> {
        let Self { user, input } = self;
        with_rights_of(&user, || {
            let mut stage = match input {
                Input::Undecided(_, stage) | Input::Plain(stage) => *stage,
                Input::Gzip(mut decoder) => {
                    let finished = decoder.try_finish();
                    fail_with(decoder.get_mut(), finished)?;
                    decoder.finish().map_err(|_| broken_gzip())?
                }
            };
            let totals = stage.reader.finish()?;
            stage.unpacker.finish()?;
            Ok(totals)
        })
    }
}

impl Input {
    fn take(self, bytes: &[u8]) -> Outcome<Self> {
        match self {
            Self::Undecided(mut head, mut stage) => {
                head.extend_from_slice(bytes);
                if head.len() < GZIP_MAGIC.len() {
                    return Ok(Self::Undecided(head, stage));
                }
                if head.starts_with(&GZIP_MAGIC) {
                    return Self::Gzip(Box::new(MultiGzDecoder::new(*stage))).take(&head);
                }
                stage.feed(&head)?;
                Ok(Self::Plain(stage))
            }
            Self::Plain(mut stage) => {
                stage.feed(bytes)?;
                Ok(Self::Plain(stage))
            }
            Self::Gzip(mut decoder) => {
                let written = decoder.write_all(bytes);
                fail_with(decoder.get_mut(), written)?;
                Ok(Self::Gzip(decoder))
            }
        }
    }
}

impl Stage {
    fn feed(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.reader.feed(bytes, &mut self.unpacker)
    }
}

impl Write for Stage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.feed(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.failure = Some(error);
                Err(io::Error::other("the archive was refused"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The named error behind a decompressor's unnamed one.
fn fail_with(stage: &mut Stage, result: io::Result<()>) -> Outcome<()> {
    result.map_err(|_| stage.failure.take().unwrap_or_else(broken_gzip))
}

fn broken_gzip() -> GuestError {
    GuestError::new(
        ErrorCode::ArchiveInvalid,
        "The gzip stream is damaged or ends early; make it anew.",
    )
}
