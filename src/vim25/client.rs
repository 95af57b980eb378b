//! The client: one session on one vCenter, kept alive, closed at the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};

use super::error::Error;
use super::service::{About, Service, about};
use super::transport::{DEADLINE, Transport};
use super::wire::decode::{required, text, timestamp};
use super::wire::names::{fault, managed, path};
use super::wire::{ApiVersion, Call, DecodeError, Node, ObjectSet, Page, PropertySet, calls};
use crate::base::clock::Clock;
use crate::base::logging;
use crate::base::net::Exchange;
use crate::base::retry::{Policy, retry};
use crate::model::MoRef;

/// How reads are repeated in the middle of a run: long enough for a restart of vpxd behind its proxy
/// (503, vsphere-gpu F50), which takes minutes.
const READS: Policy =
    Policy { first: Duration::from_secs(1), longest: Duration::from_secs(30), total: Duration::from_secs(300) };

/// How the first contact is repeated: somebody waits for it.
const CONTACT: Policy =
    Policy { first: Duration::from_secs(1), longest: Duration::from_secs(4), total: Duration::from_secs(10) };

/// How long logging out may take: the process waits for it on its way out.
const LOGOUT_DEADLINE: Duration = Duration::from_secs(10);

/// From this difference of the two clocks on, logins and windows go wrong; people should know.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_secs(60);

/// A session on a vCenter.
///
/// Reads are repeated after a lost connection, a 503 or a lost session. Writes are sent once, after
/// the session was proven alive; what an [`Error`] of a write says about its effect is in
/// [`Error::may_have_acted`].
pub struct Client {
    pub(super) transport: Transport,
    pub(super) version: ApiVersion,
    pub(super) service: Service,
    user: String,
    password: SecretString,
    clock_difference: SignedDuration,
    session: Mutex<Session>,
    /// Held while logging in, so that one lost session makes one login.
    renewing: tokio::sync::Mutex<()>,
    /// Held while waiting for updates: the collector of a session is one, and would give one
    /// waiter's updates to another.
    pub(super) waiting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Session {
    /// `name="value"`, as the server set it.
    cookie: Option<SecretString>,
    /// Counts logins, so that a call knows whether somebody renewed the session meanwhile.
    epoch: u64,
    /// The user as the server writes it, `VSPHERE.LOCAL\pw`.
    user: String,
    closed: bool,
}

/// Without the password and the cookie.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("authority", &self.transport.authority)
            .field("user", &self.user)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Negotiates the version, looks at what the server is, and logs in. With a `pin`, the server's
    /// instance UUID must be that before the password is sent.
    ///
    /// # Errors
    /// If it cannot be reached or trusted, is no vCenter or another one, or refuses the login (which
    /// is tried once).
    pub async fn connect(
        exchange: Arc<dyn Exchange>,
        authority: impl Into<String>,
        pin: Option<&str>,
        user: impl Into<String>,
        password: SecretString,
        clock: Clock,
    ) -> Result<Self, Error> {
        let transport = Transport::new(exchange, authority.into());
        let version = retry(CONTACT, Error::is_retriable, || transport.negotiate()).await?;
        let call = calls::retrieve_service_content();
        let (content, _) =
            retry(CONTACT, Error::is_retriable, || transport.send(&call, version, None, DEADLINE)).await?;
        let understood = |source| Error::Decode { call: call.method, source };
        let about = required(&content, "returnval").and_then(|node| about(required(node, "about")?));
        let about = about.map_err(understood)?;
        if about.api_type != "VirtualCenter" {
            let found = format!("{} ({})", about.full_name, about.api_type);
            return Err(Error::NotVcenter { authority: transport.authority, found });
        }
        if let Some(pin) = pin.filter(|pin| !pin.eq_ignore_ascii_case(&about.instance_uuid)) {
            let (expected, found) = (pin.to_owned(), about.instance_uuid);
            return Err(Error::OtherVcenter { authority: transport.authority, expected, found });
        }
        let service = Service::decode(&content).map_err(understood)?;
        let mut client = Self {
            transport,
            version,
            service,
            user: user.into(),
            password,
            clock_difference: SignedDuration::ZERO,
            session: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            waiting: tokio::sync::Mutex::default(),
        };
        let server_time = client.log_in().await?;
        client.clock_difference = server_time.duration_since(clock.now());
        if client.clock_difference.abs() > CLOCKS_DIFFER {
            let seconds = client.clock_difference.as_secs();
            tracing::warn!(seconds, "the clock of {} differs from ours", client.transport.authority);
        }
        Ok(client)
    }

    /// What the server is.
    pub fn about(&self) -> &About {
        &self.service.about
    }

    /// The version that is spoken.
    pub fn version(&self) -> ApiVersion {
        self.version
    }

    /// The root of the inventory.
    pub fn root_folder(&self) -> &MoRef {
        &self.service.root_folder
    }

    /// The user of the session as the server writes it; tasks that we start carry this name.
    pub fn session_user(&self) -> String {
        self.session().user.clone()
    }

    /// How far the server's clock was ahead of ours at the first login, as far as the length of an
    /// exchange lets one tell.
    pub fn clock_difference(&self) -> SignedDuration {
        self.clock_difference
    }

    /// The server's time.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn current_time(&self) -> Result<Timestamp, Error> {
        let call = calls::current_time();
        let response = self.read(&call).await?;
        required(&response, "returnval").and_then(timestamp).map_err(|source| decode(&call, source))
    }

    /// Proves by a round trip that the session is alive, and renews it once if it is not.
    ///
    /// # Errors
    /// [`Error::SessionRefused`] if a new session is not accepted either; any error of the way.
    pub async fn check_session(&self) -> Result<(), Error> {
        let sets = [PropertySet::new(managed::SESSION_MANAGER, &[path::CURRENT_SESSION])];
        let objects = ObjectSet::Objects(vec![self.service.session_manager.clone()]);
        let call = calls::retrieve_properties(&self.service.property_collector, &sets, &objects, 1);
        for last in [false, true] {
            let epoch = self.session().epoch;
            let page = Page::decode(&self.read(&call).await?).map_err(|source| decode(&call, source))?;
            // Without a session the property is unset, or missing as NotAuthenticated (F49).
            if page.objects.iter().any(|object| object.get(path::CURRENT_SESSION).is_some()) {
                return Ok(());
            }
            if !last {
                self.renew(epoch).await?;
            }
        }
        Err(self.refused_session(&call))
    }

    /// Ends the session. Later calls fail; a session that has ended already is no error.
    ///
    /// # Errors
    /// [`Error`] if the server could not be told; the session then ends by itself when it is idle.
    pub async fn logout(&self) -> Result<(), Error> {
        let _no_login_meanwhile = self.renewing.lock().await;
        let cookie = {
            let mut session = self.session();
            session.closed = true;
            session.cookie.take()
        };
        let Some(cookie) = cookie else { return Ok(()) };
        let call = calls::logout(&self.service.session_manager);
        match self.transport.send(&call, self.version, Some(&cookie), LOGOUT_DEADLINE).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_fault(fault::NOT_AUTHENTICATED) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes a call that only reads, again and again while that can help.
    pub(super) async fn read(&self, call: &Call) -> Result<Node, Error> {
        let renewed = AtomicBool::new(false);
        let attempt = || async {
            let (epoch, result) = self.once(call, DEADLINE).await;
            match result {
                Err(error) if error.is_fault(fault::NOT_AUTHENTICATED) => {
                    if renewed.swap(true, Ordering::Relaxed) {
                        return Err(self.refused_session(call));
                    }
                    Err(self.lost_session(call, epoch).await)
                }
                other => other,
            }
        };
        retry(READS, Error::is_retriable, attempt).await
    }

    /// Makes a call that changes something: once, on a session that was just proven alive.
    pub(super) async fn write(&self, call: &Call) -> Result<Node, Error> {
        self.check_session().await?;
        self.attempt(call, DEADLINE).await
    }

    /// Sends a call once. If the session has ended it is renewed, and the call is left to the caller.
    pub(super) async fn attempt(&self, call: &Call, deadline: Duration) -> Result<Node, Error> {
        match self.once(call, deadline).await {
            (epoch, Err(error)) if error.is_fault(fault::NOT_AUTHENTICATED) => {
                Err(self.lost_session(call, epoch).await)
            }
            (_, result) => result,
        }
    }

    /// Sends a call once, on the session of this number.
    async fn once(&self, call: &Call, deadline: Duration) -> (u64, Result<Node, Error>) {
        let (cookie, epoch) = {
            let session = self.session();
            if session.closed {
                let authority = self.transport.authority.clone();
                return (session.epoch, Err(Error::Closed { call: call.method, authority }));
            }
            (session.cookie.clone(), session.epoch)
        };
        let sent = self.transport.send(call, self.version, cookie.as_ref(), deadline).await;
        (epoch, sent.map(|(node, _)| node))
    }

    /// Of an operation of several calls, whose session was renewed: once is what it may start anew
    /// for, then it is a clear stop.
    pub(super) fn only_one_renewal(error: Error, renewed: &AtomicBool) -> Error {
        match error {
            Error::SessionRenewed { call, authority } if renewed.swap(true, Ordering::Relaxed) => {
                Error::SessionRefused { call, authority }
            }
            other => other,
        }
    }

    /// The server refuses a session that was just opened.
    pub(super) fn refused_session(&self, call: &Call) -> Error {
        Error::SessionRefused { call: call.method, authority: self.transport.authority.clone() }
    }

    /// The session that a call was made on has ended: renews it, and says what that means.
    pub(super) async fn lost_session(&self, call: &Call, epoch: u64) -> Error {
        match self.renew(epoch).await {
            Ok(()) => Error::SessionRenewed { call: call.method, authority: self.transport.authority.clone() },
            Err(error) => error,
        }
    }

    /// Number of the session: another after each login.
    pub(super) fn epoch(&self) -> u64 {
        self.session().epoch
    }

    async fn renew(&self, lost: u64) -> Result<(), Error> {
        let _one_at_a_time = self.renewing.lock().await;
        // Renewed by another call meanwhile; or closed, which the next attempt will say.
        if self.session().epoch != lost || self.session().closed {
            return Ok(());
        }
        tracing::info!("the session on {} has ended: logging in again", self.transport.authority);
        self.log_in().await.map(drop)
    }

    /// Logs in with fresh cookies: a login on the cookie of an earlier one is refused (C06).
    async fn log_in(&self) -> Result<Timestamp, Error> {
        let call = calls::login(&self.service.session_manager, &self.user, self.password.expose_secret());
        let sent = self.transport.send(&call, self.version, None, DEADLINE).await;
        let (response, cookies) = sent.map_err(|error| match error {
            Error::Fault { fault, .. } => {
                Error::LoginRefused { authority: self.transport.authority.clone(), user: self.user.clone(), fault }
            }
            other => other,
        })?;
        let user_session = required(&response, "returnval").map_err(|source| decode(&call, source))?;
        let user = text(user_session, "userName").map_err(|source| decode(&call, source))?;
        let time = required(user_session, "loginTime").and_then(timestamp).map_err(|source| decode(&call, source))?;
        if cookies.is_empty() {
            let source = DecodeError { element: "Set-Cookie".to_owned(), what: "the login set no cookie".to_owned() };
            return Err(decode(&call, source));
        }
        let cookie = SecretString::from(cookies.join("; "));
        logging::hide(&cookie);
        let mut session = self.session();
        session.cookie = Some(cookie);
        session.epoch += 1;
        session.user = user;
        Ok(time)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        // Nothing panics while it is held; and what it holds is whole after each statement.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn decode(call: &Call, source: DecodeError) -> Error {
    Error::Decode { call: call.method, source }
}
