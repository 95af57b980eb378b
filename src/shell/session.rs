//! One session: host key, one login, commands.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{self, AuthResult, Handle, KeyboardInteractiveAuthResponse as Keyboard};
use russh::keys::ssh_key::{Algorithm, EcdsaCurve, HashAlg, PrivateKey, PublicKey};
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{AlgorithmKind, ChannelMsg, Disconnect, MethodKind, MethodSet, Preferred, Sig};
use secrecy::{ExposeSecret, SecretString};

use super::ShellError;
use super::nvidia::Command;
use crate::base::net::Dial;
use crate::model::HostKeyPin;

/// The port of SSH.
pub const PORT: u16 = 22;

/// How long agreeing on keys may take: two round trips and some arithmetic of a busy host.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// How long a login may take: a host that asks a directory that is down waits for it.
const LOGIN: Duration = Duration::from_secs(60);

/// How much longer than the host we wait for a command: it must kill it first, and tell us.
const GRACE: Duration = Duration::from_secs(15);

/// How long saying goodbye may take. Nothing depends on it.
const GOODBYE: Duration = Duration::from_secs(2);

/// The output that is kept, in bytes: `nvidia-smi` has a line of 100 bytes per GPU.
const KEPT: usize = 256 << 10;

/// How to get into the shell of a host.
#[derive(Debug)]
pub struct Access {
    /// Its name.
    pub host: String,
    /// The port, [`PORT`] as a rule.
    pub port: u16,
    /// Keys that it may have; without one there is no login.
    pub pins: Vec<HostKeyPin>,
    /// The user.
    pub user: String,
    /// By what the user is known.
    pub credential: Credential,
}

/// By what a user is known.
#[derive(Debug)]
pub enum Credential {
    /// A password, for the method `password` or `keyboard-interactive`.
    Password(SecretString),
    /// A private key in OpenSSH's format, without a passphrase.
    Key(SecretString),
}

/// An open session.
pub struct Shell {
    host: String,
    handle: Handle<Judge>,
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("host", &self.host).finish_non_exhaustive()
    }
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output; what is not UTF-8 is replaced.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Whether more came than is kept.
    pub cut: bool,
    /// How it ended. Proves nothing of the effect.
    pub end: End,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With this exit status.
    Exit(u32),
    /// By this signal: `KILL`.
    Signal(String),
    /// The host did not say.
    Unknown,
}

impl Shell {
    /// Connects, checks the host key and logs in, with one try.
    ///
    /// # Errors
    /// [`ShellError`]; after one that [ends the use of the shell](ShellError::ends_shell_use) it must
    /// not be called again for this host.
    pub async fn open(dial: &dyn Dial, access: &Access) -> Result<Self, ShellError> {
        let key = match &access.credential {
            Credential::Key(text) => Some(private_key(&access.host, text)?),
            Credential::Password(_) => None,
        };
        let mut handle = connect(dial, access).await?;
        let login = async {
            match (key, &access.credential) {
                (Some(key), _) => by_key(&mut handle, access, key).await,
                (None, Credential::Password(password) | Credential::Key(password)) => {
                    by_password(&mut handle, access, password).await
                }
            }
        };
        let unanswered = || ShellError::LoginUnanswered { host: access.host.clone(), user: access.user.clone() };
        tokio::time::timeout(LOGIN, login).await.map_err(|_| unanswered())??;
        Ok(Self { host: access.host.clone(), handle })
    }

    /// Runs a fixed command.
    ///
    /// # Errors
    /// [`ShellError`]; after [`ShellError::Deadline`] and [`ShellError::Broken`] its effect is unknown.
    pub async fn run(&self, command: Command) -> Result<Output, ShellError> {
        self.exec(&command.bounded(), command.kill_after() + GRACE).await
    }

    /// Runs a command line, which must hold nothing that came from outside. It is told to end when the
    /// deadline passes.
    ///
    /// # Errors
    /// As [`Shell::run`].
    pub async fn exec(&self, line: &str, deadline: Duration) -> Result<Output, ShellError> {
        let late =
            || ShellError::Deadline { host: self.host.clone(), doing: line.to_owned(), seconds: deadline.as_secs() };
        let until = tokio::time::Instant::now() + deadline;
        let opened = tokio::time::timeout_at(until, self.handle.channel_open_session()).await.map_err(|_| late())?;
        let mut channel = opened.map_err(|source| self.broken(source))?;
        match tokio::time::timeout_at(until, self.listen(&mut channel, line)).await {
            Ok(result) => result,
            Err(_) => {
                // Best effort: on the host the command has a kill time of its own.
                let end = async { (channel.signal(Sig::KILL).await, channel.close().await) };
                let _ = tokio::time::timeout(GOODBYE, end).await;
                Err(late())
            }
        }
    }

    async fn listen(&self, channel: &mut russh::Channel<client::Msg>, line: &str) -> Result<Output, ShellError> {
        channel.exec(true, line).await.map_err(|source| self.broken(source))?;
        let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
        let mut end = None;
        let mut closed = false;
        while let Some(message) = channel.wait().await {
            match message {
                ChannelMsg::Data { data } => stdout.take(&data),
                ChannelMsg::ExtendedData { data, .. } => stderr.take(&data),
                ChannelMsg::ExitStatus { exit_status } => end = Some(End::Exit(exit_status)),
                ChannelMsg::ExitSignal { signal_name, .. } => end = Some(End::Signal(signal(&signal_name))),
                ChannelMsg::Failure => {
                    return Err(ShellError::NotRun { host: self.host.clone(), command: line.to_owned() });
                }
                ChannelMsg::Close => closed = true,
                _ => {}
            }
        }
        if end.is_none() && !closed {
            return Err(self.broken(russh::Error::HUP));
        }
        let cut = stdout.cut || stderr.cut;
        Ok(Output { stdout: stdout.text(), stderr: stderr.text(), cut, end: end.unwrap_or(End::Unknown) })
    }

    fn broken(&self, source: russh::Error) -> ShellError {
        ShellError::Broken { host: self.host.clone(), source }
    }

    /// Says goodbye. A host that does not answer is left alone.
    pub async fn close(self) {
        let goodbye = self.handle.disconnect(Disconnect::ByApplication, "", "");
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }
}

/// Output up to a bound.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    cut: bool,
}

impl Kept {
    fn take(&mut self, data: &[u8]) {
        let room = KEPT - self.bytes.len();
        self.cut |= data.len() > room;
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

fn signal(signal: &Sig) -> String {
    match signal {
        Sig::Custom(name) => name.clone(),
        known => format!("{known:?}"),
    }
}

/// Looks at the host key.
struct Judge(Vec<HostKeyPin>);

/// What ends a handshake.
#[derive(Debug)]
enum Ended {
    Other(Box<PublicKey>),
    Certificate,
    Broken(russh::Error),
}

impl From<russh::Error> for Ended {
    fn from(error: russh::Error) -> Self {
        Self::Broken(error)
    }
}

impl client::Handler for Judge {
    type Error = Ended;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Ended> {
        match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } if self.0.iter().any(|pin| pin.is(key)) => Ok(true),
            PublicKeyOrCertificate::PublicKey { key, .. } => Err(Ended::Other(Box::new(key.clone()))),
            // Not asked for, so not offered.
            PublicKeyOrCertificate::Certificate(_) => Err(Ended::Certificate),
        }
    }
}

/// Kinds of host keys that are asked for together. A server shows the first of its keys that we
/// want, so a fingerprint, which does not tell its kind, takes a connection for each.
fn kinds(pins: &[HostKeyPin]) -> Vec<Vec<Algorithm>> {
    let rsa = [HashAlg::Sha512, HashAlg::Sha256].map(|hash| Algorithm::Rsa { hash: Some(hash) }).to_vec();
    let ecdsa = [EcdsaCurve::NistP256, EcdsaCurve::NistP384, EcdsaCurve::NistP521];
    let ecdsa = ecdsa.map(|curve| Algorithm::Ecdsa { curve }).to_vec();
    let of = |pin: &HostKeyPin| match pin {
        HostKeyPin::Key(key) if key.algorithm().is_rsa() => Some(rsa.clone()),
        HostKeyPin::Key(key) => Some(vec![key.algorithm()]),
        HostKeyPin::Fingerprint(_) => None,
    };
    match pins.iter().map(of).collect::<Option<Vec<_>>>() {
        Some(kinds) => vec![kinds.concat()],
        None => vec![vec![Algorithm::Ed25519], ecdsa, rsa],
    }
}

async fn connect(dial: &dyn Dial, access: &Access) -> Result<Handle<Judge>, ShellError> {
    let host = &access.host;
    if access.pins.is_empty() {
        return Err(ShellError::NoPin { host: host.clone() });
    }
    let mut shown = Vec::new();
    for kinds in kinds(&access.pins) {
        match shake_hands(dial, access, kinds).await {
            Ok(handle) => return Ok(handle),
            Err(Refused::Key(key)) => shown.extend(key),
            Err(Refused::Error(error)) => return Err(error),
        }
    }
    Err(ShellError::HostKey { host: host.clone(), shown })
}

/// Why a handshake led nowhere.
enum Refused {
    /// Another host key, by its SHA-256; none: no key of this kind.
    Key(Option<String>),
    Error(ShellError),
}

async fn shake_hands(dial: &dyn Dial, access: &Access, kinds: Vec<Algorithm>) -> Result<Handle<Judge>, Refused> {
    let host = &access.host;
    let no_way = |source| Refused::Error(ShellError::Dial { host: host.clone(), source });
    let stream = dial.dial(host, access.port).await.map_err(no_way)?;
    let preferred = Preferred { key: Cow::Owned(kinds), ..Preferred::default() };
    let config = Arc::new(client::Config { preferred, ..client::Config::default() });
    let shaking = client::connect_stream(config, stream, Judge(access.pins.clone()));
    let late = || ShellError::Deadline {
        host: host.clone(),
        doing: "the key exchange".to_owned(),
        seconds: HANDSHAKE.as_secs(),
    };
    let shaken = tokio::time::timeout(HANDSHAKE, shaking).await.map_err(|_| Refused::Error(late()))?;
    shaken.map_err(|ended| match ended {
        Ended::Other(key) => Refused::Key(Some(key.fingerprint(HashAlg::Sha256).to_string())),
        Ended::Certificate | Ended::Broken(russh::Error::NoCommonAlgo { kind: AlgorithmKind::Key, .. }) => {
            Refused::Key(None)
        }
        Ended::Broken(source) => Refused::Error(ShellError::Handshake { host: host.clone(), source }),
    })
}

fn private_key(host: &str, text: &SecretString) -> Result<PrivateKey, ShellError> {
    let unusable = |problem| ShellError::UserKey { host: host.to_owned(), problem };
    let key = PrivateKey::from_openssh(text.expose_secret())
        .map_err(|_| unusable("is no private key in OpenSSH's format"))?;
    if key.is_encrypted() { Err(unusable("has a passphrase: it must be one without")) } else { Ok(key) }
}

/// What a server says of a login.
struct Login<'a>(&'a Access);

impl Login<'_> {
    fn refused(&self, why: impl Into<String>) -> ShellError {
        ShellError::LoginRefused { host: self.0.host.clone(), user: self.0.user.clone(), why: why.into() }
    }

    fn unanswered(&self) -> ShellError {
        ShellError::LoginUnanswered { host: self.0.host.clone(), user: self.0.user.clone() }
    }

    fn judge(&self, handle: &Handle<Judge>, result: Result<AuthResult, russh::Error>) -> Result<(), ShellError> {
        match result {
            Ok(AuthResult::Success) => Ok(()),
            // A connection that broke reads as a failure that leaves no way open.
            Ok(AuthResult::Failure { remaining_methods, .. }) if remaining_methods.is_empty() && handle.is_closed() => {
                Err(self.unanswered())
            }
            Ok(AuthResult::Failure { partial_success: true, .. }) => Err(self.refused("it asks for a second proof")),
            Ok(AuthResult::Failure { .. }) => Err(self.refused("it did not accept the credential")),
            Err(_) => Err(self.unanswered()),
        }
    }

    fn not_offered(&self, wanted: &str, offered: &MethodSet) -> ShellError {
        let offered: Vec<&str> = offered.iter().map(<&str>::from).collect();
        self.refused(format!("it takes no {wanted}, only {}", offered.join(", ")))
    }
}

/// Which methods the server offers. Asking costs no try: no credential goes with it.
async fn offered(handle: &mut Handle<Judge>, access: &Access) -> Result<Option<MethodSet>, ShellError> {
    match handle.authenticate_none(access.user.as_str()).await {
        Ok(AuthResult::Success) => Ok(None),
        Ok(AuthResult::Failure { remaining_methods, .. }) if !remaining_methods.is_empty() => {
            Ok(Some(remaining_methods))
        }
        Ok(AuthResult::Failure { .. }) => {
            Err(ShellError::Handshake { host: access.host.clone(), source: russh::Error::NoAuthMethod })
        }
        Err(source) => Err(ShellError::Handshake { host: access.host.clone(), source }),
    }
}

async fn by_key(handle: &mut Handle<Judge>, access: &Access, key: PrivateKey) -> Result<(), ShellError> {
    let login = Login(access);
    let Some(methods) = offered(handle, access).await? else { return Ok(()) };
    if !methods.contains(&MethodKind::PublicKey) {
        return Err(login.not_offered("key", &methods));
    }
    let hash = handle.best_supported_rsa_hash().await.ok().flatten().flatten().or(Some(HashAlg::Sha256));
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
    let result = handle.authenticate_publickey(access.user.as_str(), key).await;
    login.judge(handle, result)
}

async fn by_password(handle: &mut Handle<Judge>, access: &Access, password: &SecretString) -> Result<(), ShellError> {
    let login = Login(access);
    let Some(methods) = offered(handle, access).await? else { return Ok(()) };
    if methods.contains(&MethodKind::Password) {
        let result = handle.authenticate_password(access.user.as_str(), password.expose_secret()).await;
        login.judge(handle, result)
    } else if methods.contains(&MethodKind::KeyboardInteractive) {
        by_questions(handle, &login, password).await
    } else {
        Err(login.not_offered("password", &methods))
    }
}

/// Answers the one question for the password, once.
async fn by_questions(
    handle: &mut Handle<Judge>,
    login: &Login<'_>,
    password: &SecretString,
) -> Result<(), ShellError> {
    let mut answered = false;
    let start = handle.authenticate_keyboard_interactive_start(login.0.user.as_str(), None::<String>).await;
    let mut said = start.map_err(|_| login.unanswered())?;
    loop {
        let answers = match said {
            Keyboard::Success => return Ok(()),
            Keyboard::Failure { .. } => return Err(login.refused("it did not accept the credential")),
            // A notice without a question.
            Keyboard::InfoRequest { prompts, .. } if prompts.is_empty() => Vec::new(),
            Keyboard::InfoRequest { prompts, .. } if !answered && prompts.len() == 1 && !prompts[0].echo => {
                answered = true;
                vec![password.expose_secret().to_owned()]
            }
            Keyboard::InfoRequest { .. } => return Err(login.refused("it asks for more than a password")),
        };
        let next = handle.authenticate_keyboard_interactive_respond(answers).await;
        said = next.map_err(|_| login.unanswered())?;
    }
}
