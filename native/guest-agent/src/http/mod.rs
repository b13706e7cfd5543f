//! What every endpoint shares: bodies, answers, query strings, the route table.

pub mod body;
pub mod json_request;
pub mod percent;
pub mod query;
pub mod response;
pub mod router;
