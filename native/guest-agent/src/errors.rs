//! The closed set of errors the agent answers with, and how they look on the wire.
//!
//! Codes are those of the contract's registry. `detail` is one sentence that says what to do next; it
//! never holds file contents, environment values or secrets.

use std::fmt;
use std::io;

use hyper::StatusCode;
use serde::Serialize;

macro_rules! error_codes {
    ($($variant:ident => $name:literal, $status:ident;)*) => {
        /// One named error of the guest protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorCode { $($variant),* }

        impl ErrorCode {
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(ErrorCode::$variant => $name),* }
            }

            pub fn status(self) -> StatusCode {
                match self { $(ErrorCode::$variant => StatusCode::$status),* }
            }
        }
    };
}

error_codes! {
    InvalidRequest => "invalid_request", BAD_REQUEST;
    RouteNotFound => "route_not_found", NOT_FOUND;
    MethodNotAllowed => "method_not_allowed", METHOD_NOT_ALLOWED;
    ProcessNotFound => "process_not_found", NOT_FOUND;
    FileNotFound => "file_not_found", NOT_FOUND;
    NotADirectory => "not_a_directory", CONFLICT;
    IsADirectory => "is_a_directory", CONFLICT;
    FileExists => "file_exists", CONFLICT;
    DirectoryNotEmpty => "directory_not_empty", CONFLICT;
    PermissionDenied => "permission_denied", FORBIDDEN;
    NotARegularFile => "not_a_regular_file", CONFLICT;
    PathInvalid => "path_invalid", BAD_REQUEST;
    PreconditionFailed => "precondition_failed", PRECONDITION_FAILED;
    RangeNotSatisfiable => "range_not_satisfiable", RANGE_NOT_SATISFIABLE;
    NoSpace => "no_space", INSUFFICIENT_STORAGE;
    UserNotFound => "user_not_found", BAD_REQUEST;
    CwdNotFound => "cwd_not_found", BAD_REQUEST;
    ExecutableNotFound => "executable_not_found", BAD_REQUEST;
    ExecutableNotRunnable => "executable_not_runnable", BAD_REQUEST;
    ProcessKeyConflict => "process_key_conflict", CONFLICT;
    ProcessLimit => "process_limit", TOO_MANY_REQUESTS;
    StdinClosed => "stdin_closed", CONFLICT;
    StdinOffset => "stdin_offset", CONFLICT;
    ProcessExited => "process_exited", CONFLICT;
    ProcessRunning => "process_running", CONFLICT;
    NotATerminal => "not_a_terminal", CONFLICT;
    ArchiveInvalid => "archive_invalid", BAD_REQUEST;
    ArchiveLimit => "archive_limit", PAYLOAD_TOO_LARGE;
    IdentityConflict => "identity_conflict", CONFLICT;
    TooManyOpenFiles => "too_many_open_files", SERVICE_UNAVAILABLE;
    LimitExceeded => "limit_exceeded", UNPROCESSABLE_ENTITY;
    Internal => "internal", INTERNAL_SERVER_ERROR;
}

/// An error on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestError {
    pub code: ErrorCode,
    pub detail: String,
}

/// The JSON body of an error answer, also the tail of an `error` status frame.
#[derive(Serialize)]
pub struct ErrorBody<'a> {
    pub code: &'a str,
    pub detail: &'a str,
}

pub type Outcome<T> = Result<T, GuestError>;

impl GuestError {
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }

    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, detail)
    }

    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, detail)
    }

    /// The error of a system call on a file the client named as `subject`.
    pub fn from_file_errno(errno: i32, subject: &str) -> Self {
        let (code, what) = match errno {
            libc::ENOENT => (ErrorCode::FileNotFound, "does not exist; check the path"),
            libc::ENOTDIR => (
                ErrorCode::NotADirectory,
                "goes through something that is not a directory; check the path",
            ),
            libc::EISDIR => (ErrorCode::IsADirectory, "is a directory; name a file"),
            libc::EEXIST => (ErrorCode::FileExists, "exists already; choose another name"),
            libc::ENOTEMPTY => (
                ErrorCode::DirectoryNotEmpty,
                "is not empty; ask for a recursive removal",
            ),
            libc::EACCES | libc::EPERM | libc::EROFS => (
                ErrorCode::PermissionDenied,
                "may not be used this way by this user; choose another user or path",
            ),
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => {
                (ErrorCode::NoSpace, "does not fit; free some disk space first")
            }
            libc::ENAMETOOLONG => (
                ErrorCode::PathInvalid,
                "is too long for this file system; shorten the path",
            ),
            libc::ELOOP => (
                ErrorCode::PathInvalid,
                "goes through too many links; check for a loop",
            ),
            libc::EINVAL => (
                ErrorCode::PathInvalid,
                "is not possible for this path, for example a directory into itself",
            ),
            libc::EMFILE | libc::ENFILE => (
                ErrorCode::TooManyOpenFiles,
                "could not be opened, too many files are open; try again later",
            ),
            libc::EBUSY | libc::ETXTBSY => {
                (ErrorCode::PermissionDenied, "is in use; try again when it is not")
            }
            libc::ENXIO | libc::ENODEV => (ErrorCode::NotARegularFile, "is not a regular file; name one"),
            _ => {
                return Self::internal(format!(
                    "{subject}: {}; try again",
                    io::Error::from_raw_os_error(errno)
                ));
            }
        };
        Self::new(code, format!("{subject} {what}."))
    }

    pub fn from_file_error(error: &io::Error, subject: &str) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self::from_file_errno(errno, subject),
            None => Self::internal(format!("{subject}: {error}; try again.")),
        }
    }

    pub fn body(&self) -> ErrorBody<'_> {
        ErrorBody {
            code: self.code.name(),
            detail: &self.detail,
        }
    }
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.detail)
    }
}

impl std::error::Error for GuestError {}
