//! HTTP in, HTTP out: who asks, what strikes the call, what the world's log says of it.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use serde_json::Value;

use super::read::{View, log};
use super::route::{Ask, Verb, route};
use super::status::ApiError;
use super::write::{Sent, Written, is_dry};
use super::{discovery, review, table, watch};
use crate::sim::World;
use crate::sim::answer::{Answers, Body, Dropped, whole};
use crate::sim::behaviour::{Moment, named};
use crate::sim::document::{Face, Guest as Spec};
use crate::sim::faults::{Seen, Struck};
use crate::sim::world::guest::text;

/// Who the token of a cluster is.
const USER: &str = "kubernetes-admin";
/// The longest body that the world's log shows.
const SHOWN: usize = 2000;

/// The API server of one guest cluster.
pub(in crate::sim) struct KubeFace {
    world: World,
    cluster: String,
}

impl Answers for KubeFace {
    fn answer(self: Arc<Self>, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Dropped>> {
        async move { self.respond(&request).await }.boxed()
    }
}

impl KubeFace {
    /// The face of a cluster of this world.
    pub fn new(world: World, cluster: String) -> Self {
        Self { world, cluster }
    }

    fn spec(&self) -> Option<&Spec> {
        self.world.spec().guests.iter().find(|guest| guest.name == self.cluster)
    }

    async fn respond(&self, request: &Request<Bytes>) -> Result<Response<Body>, Dropped> {
        let path = request.uri().path().trim_end_matches('/');
        let known = match self.authenticate(request.headers()) {
            Ok(known) => known,
            Err(error) => return Ok(refuse(&error)),
        };
        let version = self.spec().map_or("", |spec| spec.version.as_str());
        if request.method() == Method::GET {
            // Open to everybody (system:public-info-viewer).
            match path {
                "/healthz" | "/livez" | "/readyz" => return Ok(plain(StatusCode::OK, "ok".to_owned())),
                _ => {}
            }
            if let Some(found) = discovery::answer(path, version).filter(|_| known || path == "/version") {
                let method = if path == "/version" { "get version" } else { "get discovery" };
                return self.open(method, || Ok(respond(200, &found))).await;
            }
        }
        if known && path == review::PATH && request.method() == Method::POST {
            return self.open(review::CALL, || review::answer(request.body()).map(|found| respond(201, &found))).await;
        }
        let asked = route(request.method(), path, request.uri().query().unwrap_or_default());
        if !known {
            let verb = request.method().as_str().to_lowercase();
            return Ok(refuse(&match asked {
                Ok(ask) => ApiError::anonymous(ask.resource, ask.verb.as_str(), ask.namespace.as_deref()),
                Err(_) => {
                    let message = format!("forbidden: User \"system:anonymous\" cannot {verb} path \"{path}\"");
                    ApiError::new(403, "Forbidden", message)
                }
            }));
        }
        let ask = match asked {
            Ok(ask) => ask,
            // Of what is no API at all the server's own multiplexer speaks.
            Err(_) if !discovery::serves(path) => {
                return Ok(plain(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()));
            }
            Err(error) => return Ok(refuse(&error)),
        };
        self.ask(request, &ask).await
    }

    /// What is about no object: discovery, `/version`, a review. Rules know it by this method.
    async fn open(
        &self,
        method: &str,
        answer: impl FnOnce() -> Result<Response<Body>, ApiError>,
    ) -> Result<Response<Body>, Dropped> {
        let objects = [(Some(self.cluster.clone()), self.cluster.clone())];
        let seen = Seen { face: Face::K8s, method, write: false, dry: false, objects: &objects };
        let struck = self.world.look(|moment| moment.strike(&seen));
        match self.before(&struck).await? {
            Some(answer) => Ok(answer),
            None if struck.drop_after => Err(Dropped),
            None => Ok(answer().unwrap_or_else(|error| refuse(&error))),
        }
    }

    /// A missing token is nobody; a wrong one is refused (401).
    fn authenticate(&self, headers: &HeaderMap) -> Result<bool, ApiError> {
        let Some(sent) = headers.get(header::AUTHORIZATION) else { return Ok(false) };
        let token = sent.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        match token.filter(|token| self.spec().is_some_and(|spec| spec.token() == *token)) {
            Some(_) => Ok(true),
            None => Err(ApiError::unauthorized()),
        }
    }

    /// What a rule does before a call has any effect: an answer, if it gives one.
    async fn before(&self, struck: &Struck) -> Result<Option<Response<Body>>, Dropped> {
        if struck.drop_before {
            return Err(Dropped);
        }
        tokio::time::sleep(struck.delay).await;
        if let Some(status) = struck.status.and_then(|status| StatusCode::from_u16(status).ok()) {
            return Ok(Some(plain(status, "upstream connect error".to_owned())));
        }
        Ok(struck.fault.as_deref().map(|reason| refuse(&ApiError::named(reason))))
    }

    async fn ask(&self, request: &Request<Bytes>, ask: &Ask) -> Result<Response<Body>, Dropped> {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let accept = header(header::ACCEPT);
        let shows =
            accept.is_empty() || ["application/json", "*/*", "application/*"].iter().any(|one| accept.contains(one));
        if !shows {
            return Ok(refuse(&ApiError::not_acceptable()));
        }
        let dry = is_dry(ask, request.body());
        let struck = self.world.look(|moment| strike(moment, &self.cluster, ask, dry));
        let kept = struck.drop_before || struck.status.is_some() || struck.fault.is_some();
        if kept && ask.verb.writes() && !dry {
            self.world.look(|moment| self.list_write(moment, ask, request.body(), &ask.key(), false));
        }
        if let Some(answer) = self.before(&struck).await? {
            return Ok(answer);
        }
        let as_table = table::asked(accept);
        if ask.verb == Verb::Watch {
            let begun = watch::begin(&self.world, &self.cluster, ask, as_table, &struck);
            return Ok(begun.map_or_else(|error| refuse(&error), stream));
        }
        let answer = if ask.verb.writes() {
            let kind = header(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
            let sent = Sent { ask, kind, body: request.body(), dry: dry || struck.hollow };
            let written = self.write(&sent, struck.hollow);
            if let Err(error) = self.world.save() {
                tracing::warn!(%error, "the state of the world was not saved");
            }
            written.map_or_else(|error| refuse(&error), |(code, body)| respond(code, &body))
        } else {
            self.read(ask, as_table, &struck).unwrap_or_else(|error| refuse(&error))
        };
        if struck.drop_after { Err(Dropped) } else { Ok(answer) }
    }

    fn write(&self, sent: &Sent<'_>, hollow: bool) -> Written {
        self.world.look(|moment| {
            let written = moment.in_cluster(&self.cluster, |cluster| sent.run(cluster));
            let written = written.unwrap_or_else(|| Err(ApiError::no_such_path()));
            let effect = written.as_ref().is_ok_and(|(code, _)| *code < 300) && !sent.dry;
            // A dry run is no write; a lie is one that has no effect.
            if effect || !sent.dry || hollow {
                let made = written.as_ref().map(|(_, body)| text(body, "/metadata/name")).unwrap_or_default();
                let key = if sent.ask.name.is_none() { format!("{}{made}", sent.ask.key()) } else { sent.ask.key() };
                self.list_write(moment, sent.ask, sent.body, &key, effect);
            }
            written
        })
    }

    fn list_write(&self, moment: &mut Moment<'_>, ask: &Ask, body: &[u8], key: &str, effect: bool) {
        let mut arguments = String::from_utf8_lossy(body).into_owned();
        arguments.truncate(arguments.floor_char_boundary(SHOWN));
        moment.wrote_in_cluster(&self.cluster, USER, key, &ask.call(), arguments, effect);
    }

    fn read(&self, ask: &Ask, as_table: bool, struck: &Struck) -> Result<Response<Body>, ApiError> {
        self.world.look(|moment| {
            let now = moment.state.time;
            let Some(guest) = moment.state.guests.get(&self.cluster) else { return Err(ApiError::no_such_path()) };
            let view = View { guest, now, cluster: &self.cluster, stale: &struck.stale };
            if ask.subresource == Some("log") {
                let pod = view.get(ask)?;
                let said = moment.in_cluster(&self.cluster, |cluster| cluster.printed(&pod)).unwrap_or_default();
                return Ok(plain(StatusCode::OK, log(&pod, ask, &said)?));
            }
            if ask.verb == Verb::Get {
                let object = view.get(ask)?;
                return Ok(match as_table {
                    true => respond(200, &table::of(ask.resource, &[object], "", Some(now))),
                    false => respond(200, &object),
                });
            }
            let mut list = view.list(ask)?;
            if as_table {
                let objects = list["items"].as_array().cloned().unwrap_or_default();
                let metadata = list["metadata"].clone();
                list = table::of(ask.resource, &objects, "", Some(now));
                crate::sim::world::guest::set(&mut list, &["metadata"], metadata);
            }
            Ok(respond(200, &list))
        })
    }
}

/// Counts the call for the rules of the document.
fn strike(moment: &mut Moment<'_>, cluster: &str, ask: &Ask, dry: bool) -> Struck {
    if moment.spec.faults.is_empty() {
        return Struck::default(); // what a call reads is only needed to match rules
    }
    let mut objects = vec![(Some(cluster.to_owned()), cluster.to_owned())];
    let mut add = |key: &str| {
        let (name, id) = named(cluster, key);
        objects.push((Some(name), id));
    };
    match &ask.name {
        Some(_) => add(&ask.key()),
        None => {
            let guest = moment.state.guests.get(cluster);
            guest.into_iter().flat_map(|guest| guest.all(ask.resource.plural)).for_each(|(key, _)| add(key));
        }
    }
    let call = ask.call();
    moment.strike(&Seen { face: Face::K8s, method: &call, write: ask.verb.writes(), dry, objects: &objects })
}

fn respond(code: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Bytes::from(format!("{body}\n")));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    whole(response)
}

fn refuse(error: &ApiError) -> Response<Body> {
    let mut response = respond(error.code, &error.body());
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from(seconds));
    }
    response
}

fn plain(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain"));
    whole(response)
}

fn stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
