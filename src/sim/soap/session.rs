//! Sessions: cookies, logins, and what hangs on them (vsphere-gpu §5.1, F48, F49; cases C01, C04, C06).

use std::collections::BTreeMap;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::filter::Filter;
use super::select::Plan;
use crate::model::MoRef;
use crate::sim::document::VcenterSpec;

/// What one cookie stands for.
#[derive(Debug)]
pub(super) struct Session {
    /// Part of the ids of its views and filters.
    pub tag: String,
    pub login: Login,
    pub last_active: Instant,
    pub views: BTreeMap<String, View>,
    /// Objects that a client lists itself: the `ListView`s.
    pub lists: BTreeMap<String, Vec<MoRef>>,
    /// Property collectors by id: the one that is always there, and those that the client made.
    pub property: BTreeMap<String, Collector>,
    pub collectors: BTreeMap<String, History>,
    /// Pages that are still to come, by token.
    pub pages: BTreeMap<String, Plan>,
    next: u64,
}

/// What a `PropertyCollector` tells its client of, apart from every other one.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pub filters: BTreeMap<String, Filter>,
    /// Raised by each `CancelWaitForUpdates`.
    pub canceled: u64,
    /// The version of the last `WaitForUpdates` that told of something.
    pub told: u64,
}

/// The property collector that every session has.
pub(super) const PROPERTY: &str = "propertyCollector";

/// Who.
#[derive(Debug, Clone)]
pub(super) enum Login {
    /// Nobody yet.
    None,
    /// Somebody gave a wrong password: the cookie is spent.
    Failed,
    /// A user.
    User(User),
    /// It ended: by time, by `Logout`, or because the server forgot it.
    Ended,
}

/// A login.
#[derive(Debug, Clone)]
pub(super) struct User {
    pub name: String,
    pub key: String,
    pub since: Instant,
    pub login_time: Timestamp,
    pub agent: String,
}

/// A `ContainerView`.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub container: MoRef,
    pub kinds: Vec<String>,
    pub recursive: bool,
}

/// A `TaskHistoryCollector`: the tasks that are still to be read.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub tasks: Vec<u64>,
}

impl Session {
    fn new(tag: String) -> Self {
        Self {
            tag,
            login: Login::None,
            last_active: Instant::now(),
            views: BTreeMap::new(),
            lists: BTreeMap::new(),
            property: BTreeMap::from([(PROPERTY.to_owned(), Collector::default())]),
            collectors: BTreeMap::new(),
            pages: BTreeMap::new(),
            next: 0,
        }
    }

    /// For callers without a cookie: nobody, and nothing that lasts.
    pub fn nobody() -> Self {
        Self::new(String::new())
    }

    /// A new id of this session: `session[TAG]KIND-N`.
    pub fn id(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("session[{}]{kind}-{}", self.tag, self.next)
    }

    /// Its property filters, of all collectors.
    pub fn filters(&self) -> impl Iterator<Item = &String> {
        self.property.values().flat_map(|collector| collector.filters.keys())
    }

    /// The user, if one is logged in.
    pub fn user(&self) -> Option<&User> {
        match &self.login {
            Login::User(user) => Some(user),
            Login::None | Login::Failed | Login::Ended => None,
        }
    }

    /// Ends it: everything that hung on it is gone.
    pub fn end(&mut self) {
        self.login = Login::Ended;
        self.views.clear();
        self.property.retain(|id, _| id == PROPERTY);
        self.property.values_mut().for_each(|collector| collector.filters.clear());
        self.collectors.clear();
        self.pages.clear();
    }

    /// Ends it if its time is over. Time here is the clients' own, not the world's faster one.
    pub fn expire(&mut self, spec: &VcenterSpec) {
        let over = self.user().is_some_and(|user| {
            self.last_active.elapsed() >= spec.session_idle.0 || user.since.elapsed() >= spec.session_lifetime.0
        });
        if over {
            self.end();
        }
    }
}

/// All sessions of a face, by cookie.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_cookie: BTreeMap<String, Session>,
    count: u64,
}

impl Sessions {
    /// The session of a cookie.
    pub fn get(&mut self, cookie: &str) -> Option<&mut Session> {
        self.by_cookie.get_mut(cookie)
    }

    /// A new cookie; its value carries quotes, as vCenter's do.
    pub fn open(&mut self) -> String {
        self.count += 1;
        let hash = Sha256::digest(format!("session {}", self.count).as_bytes());
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let cookie = format!("\"{}\"", &hex[..40]);
        let tag = format!("52{}-{}-{}-{}-{}", &hex[..6], &hex[6..10], &hex[10..14], &hex[14..18], &hex[18..30]);
        self.by_cookie.insert(cookie.clone(), Session::new(tag));
        cookie
    }
}

/// The value of vCenter's cookie in a `Cookie` header, quotes included.
pub(super) fn cookie_of(header: &str) -> Option<&str> {
    header.split(';').find_map(|part| part.trim().strip_prefix("vmware_soap_session=")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_keeps_its_quotes() {
        // pyVmomi sends back the whole Set-Cookie line (recordings).
        assert_eq!(cookie_of("vmware_soap_session=\"7bea\"; Path=/; HttpOnly; Secure;"), Some("\"7bea\""));
        assert_eq!(cookie_of("a=b; vmware_soap_session=\"x\""), Some("\"x\""));
        assert_eq!(cookie_of(""), None);
    }
}
