//! HTTP in, HTTP out: cookies, faults of the wire, calls that wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use tokio::time::Instant;

use super::collector::missing_property;
use super::dispatch::{Doing, is_write, log_write, subject};
use super::esxcli;
use super::lists::canonical;
use super::objects::Object;
use super::properties::{Source, user_session};
use super::request::{Call, reference};
use super::select::select;
use super::session::{Collector, Login, Session, Sessions, User, cookie_of};
use super::shape::{Kind, Version};
use super::value::returned;
use super::versions;
use crate::sim::World;
use crate::sim::answer::{Answers, Body, Dropped, whole};
use crate::sim::behaviour::Moment;
use crate::sim::document::Face as SeenFace;
use crate::sim::fault::VimFault;
use crate::sim::faults::{Seen, Struck};
use crate::vim25::wire::{Node, envelope, names};

/// The face of one world.
pub(in crate::sim) struct Face {
    world: World,
    sessions: Mutex<Sessions>,
}

/// Results of a call, and the cookie that it sets.
struct Answered {
    results: Result<Vec<Node>, VimFault>,
    cookie: Option<String>,
}

/// What a client asked for and what strikes it.
struct Ready {
    object: Object,
    struck: Struck,
    who: String,
}

impl Answers for Face {
    fn answer(self: Arc<Self>, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Dropped>> {
        Box::pin(async move { self.respond(request).await.map(whole) })
    }
}

impl Face {
    /// The face of a world; every connection to it shares its sessions.
    pub fn new(world: World) -> Self {
        Self { world, sessions: Mutex::new(Sessions::default()) }
    }

    /// The answer to a request.
    async fn respond(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Dropped> {
        let path = request.uri().path().trim_end_matches('/');
        match (request.method(), path) {
            (&Method::GET, versions::PATH) => {
                let vcenter = &self.world.spec().vcenter;
                let text = versions::document(&vcenter.version, vcenter.internal_version.as_deref());
                Ok(respond(StatusCode::OK, "text/xml", text, None))
            }
            (&Method::POST, names::SDK_PATH) => self.soap(&request).await,
            _ => {
                Ok(respond(StatusCode::NOT_FOUND, "text/html", "<html><body>Not found</body></html>".to_owned(), None))
            }
        }
    }

    async fn soap(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, Dropped> {
        let header = |name: header::HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
        let action = request.headers().get("soapaction").and_then(|value| value.to_str().ok());
        let version = versions::of_action(action);
        let vcenter = &self.world.spec().vcenter;
        if Some(version) > Version::parse(&versions::api_version(&vcenter.version)) {
            let fault = VimFault::request(format!("Unsupported version URI {}", action.unwrap_or_default()));
            return Ok(fault_response(&fault, None));
        }
        let call = match Call::read(request.body(), version) {
            Ok(call) => call,
            Err(fault) => return Ok(fault_response(&fault, None)),
        };
        let cookie = header(header::COOKIE).and_then(cookie_of).map(str::to_owned);
        let agent = header(header::USER_AGENT).unwrap_or_default().to_owned();
        let (cookie, fresh) = self.cookie(cookie, &call.method);
        let set = |fresh: bool| fresh.then(|| cookie.clone()).flatten();
        let ready = match self.ready(cookie.as_deref(), &call) {
            Ok(ready) => ready,
            Err(Refusal::Fault(fault)) => return Ok(fault_response(&fault, set(fresh).as_deref())),
            Err(Refusal::Missing(nodes)) => return Ok(success(&call.method, nodes, None)),
        };
        let struck = &ready.struck;
        let kept_from_effect = struck.drop_before || struck.status.is_some() || struck.fault.is_some();
        if kept_from_effect && is_write(&call.method) {
            self.world.look(|moment| log_write(moment, &ready.who, &call, &ready.object, false));
        }
        if struck.drop_before {
            return Err(Dropped);
        }
        tokio::time::sleep(struck.delay).await;
        if let Some(status) = struck.status.and_then(|status| StatusCode::from_u16(status).ok()) {
            let text = "<html><body>upstream connect error</body></html>".to_owned();
            return Ok(respond(status, "text/html", text, None));
        }
        let answered = match (&struck.fault, call.method.as_str()) {
            (Some(kind), _) => Answered { results: Err(VimFault::named(kind)), cookie: None },
            (None, "WaitForUpdatesEx" | "WaitForUpdates" | "CheckForUpdates") => {
                Answered { results: self.wait(cookie.as_deref(), &call).await, cookie: None }
            }
            (None, _) => self.run(cookie.as_deref(), &call, &ready, &agent),
        };
        if is_write(&call.method)
            && let Err(error) = self.world.save()
        {
            tracing::warn!(%error, "the state of the world was not saved");
        }
        if struck.drop_after {
            return Err(Dropped);
        }
        let set = answered.cookie.or_else(|| set(fresh));
        Ok(match answered.results {
            Ok(results) => success(&call.method, results, set.as_deref()),
            Err(fault) => fault_response(&fault, set.as_deref()),
        })
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cookie of a request if the server knows it, else a new one for the calls that set one.
    fn cookie(&self, cookie: Option<String>, method: &str) -> (Option<String>, bool) {
        let spec = &self.world.spec().vcenter;
        let mut sessions = self.sessions();
        if let Some(session) = cookie.as_deref().and_then(|cookie| sessions.get(cookie)) {
            session.expire(spec);
            if !(matches!(session.login, Login::Ended) && method == names::method::LOGIN) {
                return (cookie, false);
            }
        }
        // As recorded: RetrieveServiceContent and even a failed Login set a cookie (§5.1).
        if matches!(method, names::method::RETRIEVE_SERVICE_CONTENT | names::method::LOGIN) {
            return (Some(sessions.open()), true);
        }
        (None, false)
    }

    /// Finds the object, checks the request, asks whether the caller may, and counts faults.
    fn ready(&self, cookie: Option<&str>, call: &Call) -> Result<Ready, Refusal> {
        let mut sessions = self.sessions();
        let mut nobody = Session::nobody();
        let session = cookie.and_then(|cookie| sessions.get(cookie)).unwrap_or(&mut nobody);
        self.world.look(|moment| {
            let found = Object::find(moment.state, Some(session), &call.this);
            let struck = strike(moment, session, call, found.as_ref());
            if struck.end_session {
                session.end();
            }
            let user = session.user().cloned();
            if user.is_none() && !anonymous(call, found.as_ref()) {
                return Err(self.not_authenticated(call));
            }
            if user.is_some() {
                session.last_active = Instant::now();
            }
            let object = Object::find(moment.state, Some(session), &call.this);
            let object = object.ok_or_else(|| Refusal::Fault(VimFault::gone(&call.this.kind, &call.this.id)))?;
            if call.method != names::method::FETCH && !esxcli::knows(&call.method) {
                call.check(object.kind(moment.state)).map_err(Refusal::Fault)?;
            }
            Ok(Ready { object, struck, who: user.map(|user| user.name).unwrap_or_default() })
        })
    }

    /// F48: a fault; F49: an answer whose properties are missing.
    fn not_authenticated(&self, call: &Call) -> Refusal {
        let fault = VimFault::named("NotAuthenticated")
            .with(Node::reference("object", &call.this.kind, &call.this.id))
            .with(Node::leaf("privilegeId", "System.View"));
        let reads = matches!(call.method.as_str(), "RetrieveProperties" | "RetrievePropertiesEx");
        if !(reads && self.world.spec().vcenter.expired_as_missing) {
            return Refusal::Fault(fault);
        }
        let mut objects = Vec::new();
        for spec in call.body.all("specSet") {
            let paths: Vec<&str> =
                spec.all("propSet").flat_map(|set| set.all("pathSet")).map(|path| path.text.as_str()).collect();
            for object in spec.all("objectSet").filter_map(|object| object.get("obj")).filter_map(reference) {
                let missing = paths.iter().map(|path| missing_property(path, &fault));
                objects.push(
                    Node::new("objects").with(Node::reference("obj", &object.kind, &object.id)).with_all(missing),
                );
            }
        }
        if call.method == "RetrieveProperties" {
            return Refusal::Missing(
                objects.into_iter().map(|object| Node { name: "returnval".to_owned(), ..object }).collect(),
            );
        }
        Refusal::Missing(vec![Node::new("returnval").with_all(objects)])
    }

    fn run(&self, cookie: Option<&str>, call: &Call, ready: &Ready, agent: &str) -> Answered {
        let mut sessions = self.sessions();
        let mut nobody = Session::nobody();
        let session = cookie.and_then(|cookie| sessions.get(cookie)).unwrap_or(&mut nobody);
        let results = match call.method.as_str() {
            names::method::LOGIN => self.login(session, call, agent),
            names::method::LOGOUT => {
                session.end();
                Ok(Vec::new())
            }
            _ => self.world.look(|moment| {
                let user = canonical(&ready.who);
                let object = ready.object.clone();
                Doing {
                    moment,
                    session,
                    call,
                    object,
                    struck: &ready.struck,
                    who: &ready.who,
                    user: &user,
                    idle: false,
                }
                .run()
            }),
        };
        Answered { results, cookie: None }
    }

    /// `Login`: on the cookie of a failed login, or of somebody logged in, it is refused (case C06).
    fn login(&self, session: &mut Session, call: &Call, agent: &str) -> Result<Vec<Node>, VimFault> {
        let (name, password) = (call.text("userName").unwrap_or_default(), call.text("password").unwrap_or_default());
        let known = self.world.spec().vcenter.users.iter().any(|user| user.name == name && user.password == password);
        if !known || !matches!(session.login, Login::None) {
            if session.user().is_none() {
                session.login = Login::Failed;
            }
            return Err(VimFault::named("InvalidLogin"));
        }
        let user = User {
            name: name.to_owned(),
            key: session.tag.clone(),
            since: Instant::now(),
            login_time: self.world.now(),
            agent: agent.to_owned(),
        };
        session.login = Login::User(user.clone());
        session.last_active = Instant::now();
        Ok(returned(Kind::Data("UserSession"), &user_session(&user), call.version))
    }

    /// Waits until a filter has something to tell, at most as long as the client wants to.
    async fn wait(&self, cookie: Option<&str>, call: &Call) -> Result<Vec<Node>, VimFault> {
        let option = |name: &str| -> Option<u64> {
            call.get("options").and_then(|options| options.text_of(name)).and_then(|text| text.trim().parse().ok())
        };
        // Without a limit of the client's it is the server's own: half an hour.
        let seconds = if call.method == "CheckForUpdates" { 0 } else { option("maxWaitSeconds").unwrap_or(1800) };
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let most = option("maxObjectUpdates").and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let mut changes = self.world.changes();
        let mut first = true;
        let this = call.this.id.as_str();
        let gone = || VimFault::gone(&call.this.kind, this);
        let canceled = self.session_of(cookie, |session| session.property.get(this).map(|one| one.canceled))?;
        let canceled = canceled.ok_or_else(gone)?;
        loop {
            changes.borrow_and_update();
            let told = self.session_of(cookie, |session| {
                // Taken out while it is looked at: its filters are read with the session.
                let mut collector = session.property.remove(this).ok_or_else(gone)?;
                let told = if collector.canceled != canceled {
                    Err(VimFault::named("RequestCanceled"))
                } else {
                    let version = std::mem::take(&mut first).then(|| call.text("version").unwrap_or_default());
                    version
                        .map_or(Ok(()), |version| rewind(&mut collector, version))
                        .and_then(|()| self.world.look(|moment| updates(moment, session, &mut collector, most)))
                };
                session.property.insert(this.to_owned(), collector);
                told
            })??;
            if let Some(update) = told {
                return Ok(vec![update]);
            }
            if Instant::now() >= deadline {
                return Ok(Vec::new());
            }
            let due = self.world.next_due().map_or(deadline, |due| Instant::now() + due.max(Duration::from_millis(1)));
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(due.min(deadline)) => {}
            }
        }
    }

    /// Does something with a session that must still have a user.
    fn session_of<R>(&self, cookie: Option<&str>, f: impl FnOnce(&mut Session) -> R) -> Result<R, VimFault> {
        let mut sessions = self.sessions();
        let session = cookie.and_then(|cookie| sessions.get(cookie)).filter(|session| session.user().is_some());
        session.map(f).ok_or_else(|| VimFault::named("NotAuthenticated"))
    }
}

/// Why a call is not even begun.
enum Refusal {
    Fault(VimFault),
    /// An answer that says of each property that it is missing.
    Missing(Vec<Node>),
}

/// What anybody may call: the privilege System.Anonymous.
fn anonymous(call: &Call, object: Option<&Object>) -> bool {
    match call.method.as_str() {
        names::method::RETRIEVE_SERVICE_CONTENT | names::method::LOGIN | names::method::LOGOUT => true,
        names::method::FETCH => {
            matches!(object, Some(Object::ServiceInstance)) && call.text("prop") == Some("content")
                || matches!(object, Some(Object::SessionManager)) && call.text("prop") == Some("currentSession")
        }
        "RetrieveProperties" | "RetrievePropertiesEx" => {
            let mut starts =
                call.body.all("specSet").flat_map(|spec| spec.all("objectSet")).filter_map(|set| set.text_of("obj"));
            starts.all(|id| matches!(id.trim(), "ServiceInstance" | "SessionManager"))
        }
        _ => false,
    }
}

/// Counts the call for the rules of the document.
fn strike(moment: &mut Moment<'_>, session: &Session, call: &Call, object: Option<&Object>) -> Struck {
    if moment.spec.faults.is_empty() {
        return Struck::default(); // what a call reads is only needed to match rules
    }
    let specs: Vec<&Node> = match call.method.as_str() {
        "RetrieveProperties" | "RetrievePropertiesEx" => call.body.all("specSet").collect(),
        "CreateFilter" => call.get("spec").into_iter().collect(),
        "WaitForUpdates" | "WaitForUpdatesEx" => {
            let filters = session.property.get(&call.this.id).into_iter().flat_map(|one| one.filters.values());
            filters.map(|filter| &filter.spec).collect()
        }
        _ => Vec::new(),
    };
    let mut objects = Vec::new();
    let from = Source { state: moment.state, spec: moment.spec, session: Some(session) };
    let mut read: Vec<_> = specs
        .iter()
        .filter_map(|spec| select(from, spec, call.version).ok())
        .flat_map(|plan| plan.items)
        .map(|item| item.object)
        .collect();
    if let Some(rest) = call.text("token").and_then(|token| session.pages.get(token)) {
        read.extend(rest.items.iter().map(|item| item.object.clone()));
    }
    for reference in read {
        let name = Object::find(moment.state, Some(session), &reference)
            .and_then(|object| object.name(moment.state).map(str::to_owned));
        objects.push((name, reference.id));
    }
    if let Some(object) = object {
        objects.push(subject(moment, call, object));
    }
    let write = is_write(&call.method);
    moment.strike(&Seen { face: SeenFace::Soap, method: &call.method, write, dry: false, objects: &objects })
}

/// Puts the filters where the client says that it is: at the start, or at the last version told; at
/// the one before, if the last answer was lost.
fn rewind(collector: &mut Collector, version: &str) -> Result<(), VimFault> {
    let version = version.trim();
    if version.is_empty() {
        collector.filters.values_mut().for_each(|filter| filter.known.clear());
        return Ok(());
    }
    match version.parse::<u64>() {
        Ok(number) if number == collector.told => Ok(()),
        Ok(number) if number + 1 == collector.told => {
            collector.filters.values_mut().for_each(|filter| filter.known.clone_from(&filter.before));
            Ok(())
        }
        _ => Err(VimFault::named("InvalidCollectorVersion")),
    }
}

fn updates(
    moment: &mut Moment<'_>,
    session: &Session,
    collector: &mut Collector,
    most: usize,
) -> Result<Option<Node>, VimFault> {
    let (mut sets, mut more, mut left) = (Vec::new(), false, most);
    let from = Source { state: moment.state, spec: moment.spec, session: Some(session) };
    for (id, filter) in &mut collector.filters {
        let (objects, truncated) = filter.changes(from, left)?;
        left = left.saturating_sub(objects.len());
        more |= truncated;
        if !objects.is_empty() {
            let set = Node::new("filterSet").with(Node::reference("filter", "PropertyFilter", id)).with_all(objects);
            sets.push(set);
        }
    }
    if sets.is_empty() {
        return Ok(None);
    }
    collector.told += 1;
    let update = Node::new("returnval").with(Node::leaf("version", collector.told.to_string())).with_all(sets);
    Ok(Some(update.with_some(more.then(|| Node::leaf("truncated", "true")))))
}

fn success(method: &str, results: Vec<Node>, cookie: Option<&str>) -> Response<Bytes> {
    let body = Node::new(format!("{method}Response")).with_all(results);
    respond(StatusCode::OK, "text/xml; charset=utf-8", envelope(&body), cookie)
}

/// A SOAP fault: HTTP 500; the element is named after the type, and `xsi:type` says it again (§5.4).
fn fault_response(fault: &VimFault, cookie: Option<&str>) -> Response<Bytes> {
    use crate::vim25::wire::Namespace;
    let plain = |node: Node| node.in_namespace(Namespace::None);
    let declared = if fault.kind == "PlatformConfigFault" { "HostConfigFault" } else { fault.kind.as_str() };
    let detail = Node::new(format!("{declared}Fault")).typed(&fault.kind).with_all(fault.fields.iter().cloned());
    let body = Node::new("Fault")
        .in_namespace(Namespace::Envelope)
        .with(plain(Node::leaf("faultcode", "ServerFaultCode")))
        .with(plain(Node::leaf("faultstring", &fault.message)))
        .with(plain(Node::new("detail").with(detail)));
    respond(StatusCode::INTERNAL_SERVER_ERROR, "text/xml; charset=utf-8", envelope(&body), cookie)
}

fn respond(status: StatusCode, kind: &str, body: String, cookie: Option<&str>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Ok(kind) = header::HeaderValue::from_str(kind) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    let line = cookie.map(|cookie| format!("vmware_soap_session={cookie}; Path=/; HttpOnly; Secure;"));
    if let Some(line) = line.and_then(|line| header::HeaderValue::from_str(&line).ok()) {
        headers.insert(header::SET_COOKIE, line);
    }
    response
}
