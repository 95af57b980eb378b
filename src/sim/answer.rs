//! What every HTTP face of a world has in common: a request comes, an answer goes, or the connection
//! breaks.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// The connection breaks: before an answer, or in the middle of one.
#[derive(Debug, thiserror::Error)]
#[error("the connection is broken off")]
pub(in crate::sim) struct Dropped;

/// The body of an answer: a stream, since watches need one.
pub(in crate::sim) type Body = UnsyncBoxBody<Bytes, Dropped>;

/// A face that speaks HTTP.
pub(in crate::sim) trait Answers: Send + Sync {
    /// The answer to a request.
    fn answer(self: Arc<Self>, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Dropped>>;
}

/// An answer that is whole.
pub(in crate::sim) fn whole(response: Response<Bytes>) -> Response<Body> {
    response.map(|bytes| Full::new(bytes).map_err(|never| match never {}).boxed_unsync())
}
