//! One guest of a host's SSH server: its login, its commands.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use russh::keys::ssh_key::PublicKey;
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Response, Session, VerifiedPublicKey, run_stream,
};
use russh::{Channel, ChannelId, MethodKind, MethodSet};
use tokio::io::DuplexStream;
use tokio::sync::oneshot;

use super::command::{self, Ran};
use super::key;
use crate::sim::World;
use crate::sim::behaviour::Proof;
use crate::sim::document::SshPassword;

/// Tries of one connection, as of OpenSSH's `MaxAuthTries`.
const TRIES: usize = 6;

/// Breaks the connection, once.
pub(super) struct Cutter(Mutex<Option<oneshot::Sender<()>>>);

impl Cutter {
    pub fn new(cut: oneshot::Sender<()>) -> Self {
        Self(Mutex::new(Some(cut)))
    }

    fn cut(&self) {
        if let Some(cut) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The line may have ended by itself.
            let _ = cut.send(());
        }
    }
}

struct Guest {
    world: World,
    host: u32,
    cutter: Arc<Cutter>,
    user: String,
}

/// Serves a guest on this stream.
pub(super) fn serve(world: World, host: u32, stream: DuplexStream, cutter: Arc<Cutter>) {
    let seed = world.look(|moment| moment.state.hosts.get(&host).map(|host| host.shell.key));
    let Some(key) = seed.and_then(|seed| key::private(&seed).ok()) else { return cutter.cut() };
    let config = Config {
        keys: vec![key],
        methods: methods(&world),
        max_auth_attempts: TRIES,
        auth_rejection_time_initial: Some(std::time::Duration::ZERO),
        ..Config::default()
    };
    tokio::spawn(async move {
        let guest = Guest { world, host, cutter, user: String::new() };
        // How a guest leaves is its own business.
        if let Ok(session) = run_stream(Arc::new(config), stream, guest).await {
            let _ = session.await;
        }
    });
}

fn methods(world: &World) -> MethodSet {
    let password = match world.spec().readings.ssh_password {
        SshPassword::Password => MethodKind::Password,
        SshPassword::KeyboardInteractive => MethodKind::KeyboardInteractive,
    };
    MethodSet::from(&[MethodKind::PublicKey, password][..])
}

impl Guest {
    async fn login(&mut self, user: &str, proof: &Proof<'_>) -> Auth {
        user.clone_into(&mut self.user);
        let struck = command::strike(&self.world, self.host, "login", false);
        let accepted =
            !struck.hangs && !struck.drop_before && self.world.look(|moment| moment.ssh_login(self.host, user, proof));
        if struck.drop_before || struck.drop_after {
            self.cutter.cut();
        }
        if struck.hangs || struck.drop_before || struck.drop_after {
            // No answer may get out before the line is cut.
            return std::future::pending().await;
        }
        if accepted { Auth::Accept } else { Auth::reject() }
    }

    fn offers(&self, method: MethodKind) -> bool {
        methods(&self.world).contains(&method)
    }
}

fn written(key: &PublicKey) -> String {
    PublicKey::new(key.key_data().clone(), "").to_openssh().unwrap_or_default()
}

impl Handler for Guest {
    type Error = russh::Error;

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, russh::Error> {
        if !self.offers(MethodKind::Password) {
            return Ok(Auth::reject());
        }
        Ok(self.login(user, &Proof::Password(password)).await)
    }

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        user: &str,
        _: &str,
        response: Option<Response<'a>>,
    ) -> Result<Auth, russh::Error> {
        if !self.offers(MethodKind::KeyboardInteractive) {
            return Ok(Auth::reject());
        }
        let Some(mut answers) = response else {
            let prompts = vec![(Cow::Borrowed("Password: "), false)];
            return Ok(Auth::Partial { name: "".into(), instructions: "".into(), prompts: Cow::Owned(prompts) });
        };
        let answer = answers.next().unwrap_or_default();
        Ok(self.login(user, &Proof::Password(&String::from_utf8_lossy(&answer))).await)
    }

    async fn auth_publickey_offered(&mut self, user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, russh::Error> {
        let key = written(offer.public_key);
        let known = self.world.look(|moment| {
            let host = moment.state.hosts.get(&self.host);
            host.is_some_and(|host| host.shell.knows_key(user, &key))
        });
        Ok(if known { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        let key = written(key.public_key);
        Ok(self.login(user, &Proof::Key(&key)).await)
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn shell_request(&mut self, channel: ChannelId, session: &mut Session) -> Result<(), russh::Error> {
        session.channel_failure(channel)
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        session.channel_success(channel)?;
        let line = String::from_utf8_lossy(data).into_owned();
        let (world, host, user, handle) = (self.world.clone(), self.host, self.user.clone(), session.handle());
        let cutter = Arc::clone(&self.cutter);
        // Spawned, since a client that hangs up does not undo what a command does.
        tokio::spawn(async move {
            match command::run(&world, host, &user, &line).await {
                Ran::Printed(printed) => {
                    // A guest that has left hears nothing.
                    let _ = handle.data(channel, printed.stdout.into_bytes()).await;
                    let _ = handle.extended_data(channel, 1, printed.stderr.into_bytes()).await;
                    let _ = handle.exit_status_request(channel, printed.code).await;
                    let _ = handle.eof(channel).await;
                    let _ = handle.close(channel).await;
                }
                Ran::Broken => cutter.cut(),
            }
        });
        Ok(())
    }
}
