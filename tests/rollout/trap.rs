//! A client that dies: after a line of its journal, or after a write has had its effect. From then on
//! nothing it sends arrives and nothing it waits for comes; the test drops it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use poolwright::base::net::{Body, Dial, DialError, Duplex, Endpoint, Exchange, NetError, Network};
use poolwright::rollout::{Entry, RunState, Sink, Waiting};
use poolwright::sim::{SimNetwork, World};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::support::tap::Tap;

/// Where the client dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// After this line of its journal stands on the disk.
    Line(u64),
    /// After this write (from 1) stands in the world's log.
    Write(usize),
    /// It lives.
    Never,
}

/// The trap, and what was counted on the way.
#[derive(Clone)]
pub struct Trap(Arc<Inner>);

struct Inner {
    at: Point,
    world: World,
    /// Writes that stood in the log before.
    before: usize,
    dead: AtomicBool,
    lines: AtomicUsize,
    sprung: Notify,
}

impl Trap {
    pub fn new(at: Point, world: &World) -> Self {
        Self(Arc::new(Inner {
            at,
            world: world.clone(),
            before: world.log().len(),
            dead: AtomicBool::new(false),
            lines: AtomicUsize::new(0),
            sprung: Notify::new(),
        }))
    }

    /// Waits until the client is dead.
    pub async fn sprung(&self) {
        self.0.sprung.notified().await;
    }

    pub fn is_dead(&self) -> bool {
        self.0.dead.load(Ordering::SeqCst)
    }

    /// Lines that were written.
    pub fn lines(&self) -> usize {
        self.0.lines.load(Ordering::SeqCst)
    }

    /// Writes since the trap was set.
    pub fn writes(&self) -> usize {
        self.0.world.log().len() - self.0.before
    }

    /// Dies if its write has had its effect.
    fn write_seen(&self) {
        if matches!(self.0.at, Point::Write(nth) if self.writes() >= nth) && !self.is_dead() {
            self.spring();
        }
    }

    fn spring(&self) {
        self.0.dead.store(true, Ordering::SeqCst);
        self.0.sprung.notify_one();
    }
}

impl Sink for Trap {
    fn entry(&mut self, entry: &Entry, _: &RunState) {
        self.0.lines.store(entry.n as usize, Ordering::SeqCst);
        if self.0.at == Point::Line(entry.n) {
            self.spring();
        }
    }

    fn waiting(&mut self, _: &Waiting<'_>) {}
}

/// The network of a client that is in the trap.
pub struct TrapNetwork {
    pub inner: Tap<SimNetwork>,
    pub trap: Trap,
}

impl Dial for TrapNetwork {
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        let trap = self.trap.clone();
        if trap.is_dead() {
            return Box::pin(std::future::pending());
        }
        let dialled = self.inner.dial(host, port);
        Box::pin(async move { Ok(Box::new(TrapStream { inner: dialled.await?, trap }) as Box<dyn Duplex>) })
    }
}

/// A connection of the client: what is written over it may be the write after which it dies, and
/// nothing of the answer reaches it then.
struct TrapStream {
    inner: Box<dyn Duplex>,
    trap: Trap,
}

impl AsyncRead for TrapStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let mut heard = vec![0; buf.remaining()];
        let mut kept = ReadBuf::new(&mut heard);
        let read = std::task::ready!(Pin::new(&mut self.inner).poll_read(cx, &mut kept));
        self.trap.write_seen();
        if self.trap.is_dead() {
            return Poll::Pending;
        }
        buf.put_slice(kept.filled());
        Poll::Ready(read)
    }
}

impl AsyncWrite for TrapStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        if self.trap.is_dead() {
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl Network for TrapNetwork {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        Ok(Arc::new(TrapExchange { inner: self.inner.open(endpoint)?, trap: self.trap.clone() }))
    }
}

struct TrapExchange {
    inner: Arc<dyn Exchange>,
    trap: Trap,
}

impl Exchange for TrapExchange {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let trap = self.trap.clone();
        if trap.is_dead() {
            return Box::pin(std::future::pending());
        }
        let answer = self.inner.exchange(request);
        Box::pin(async move {
            let answer = answer.await;
            trap.write_seen();
            if trap.is_dead() {
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}
