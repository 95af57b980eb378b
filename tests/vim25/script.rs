//! A vCenter in a few lines: real wire bytes, in process, each test scripts what matters to it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use poolwright::base::clock::Clock;
use poolwright::base::net::{Body, Exchange, NetError};
use poolwright::model::MoRef;
use poolwright::vim25::wire::{Limits, Node};
use poolwright::vim25::{Client, Error};
use secrecy::SecretString;

pub const PASSWORD: &str = "marked-pa55<word>";

/// A request as the server sees it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Name of the call; `versions` for the list of versions.
    pub call: String,
    /// The body of the request.
    pub body: Node,
    pub cookie: Option<String>,
    /// How many requests of this name came before.
    pub nth: usize,
}

impl Seen {
    /// Type of the first object whose properties are asked for.
    pub fn asks(&self) -> &str {
        let spec = self.body.get("specSet").or_else(|| self.body.get("spec"));
        spec.and_then(|spec| spec.get("propSet")).and_then(|set| set.text_of("type")).unwrap_or_default()
    }

    /// The paths that are asked for.
    pub fn paths(&self) -> Vec<&str> {
        let spec = self.body.get("specSet").or_else(|| self.body.get("spec"));
        spec.into_iter()
            .flat_map(|spec| spec.all("propSet"))
            .flat_map(|set| set.all("pathSet"))
            .map(|path| path.text.as_str())
            .collect()
    }
}

/// What the server does.
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    after: Duration,
    broken: bool,
}

impl Reply {
    fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), after: Duration::ZERO, broken: false }
    }

    /// A page that is not SOAP.
    pub fn page(status: u16, body: &str) -> Self {
        Self::new(status, body.to_owned())
    }

    /// The answer of this call with these elements in it.
    pub fn ok(call: &str, inner: &str) -> Self {
        let body = envelope(&format!("<{call}Response xmlns=\"urn:vim25\">{inner}</{call}Response>"));
        Self::new(200, body)
    }

    /// A fault of this type with these fields.
    pub fn fault(kind: &str, fields: &str, said: &str) -> Self {
        let detail = format!(
            "<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>{said}</faultstring><detail>\
             <{kind}Fault xmlns=\"urn:vim25\" xsi:type=\"{kind}\">{fields}</{kind}Fault></detail></soapenv:Fault>"
        );
        Self::new(500, envelope(&detail))
    }

    /// The connection breaks: no answer, and nobody knows whether the server acted.
    pub fn broken() -> Self {
        Self { broken: true, ..Self::new(0, "") }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }
}

pub fn envelope(body: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<soapenv:Envelope \
         xmlns:soapenc=\"http://schemas.xmlsoap.org/soap/encoding/\"\n \
         xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"\n \
         xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\"\n xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n\
         <soapenv:Body>\n{body}\n</soapenv:Body>\n</soapenv:Envelope>"
    )
}

/// `objects` of a page: each with its reference and property values as XML.
pub fn object(kind: &str, id: &str, properties: &[(&str, &str)]) -> String {
    let sets: String =
        properties.iter().map(|(name, val)| format!("<propSet><name>{name}</name>{val}</propSet>")).collect();
    format!("<objects><obj type=\"{kind}\">{id}</obj>{sets}</objects>")
}

/// A string value.
pub fn text(value: &str) -> String {
    format!("<val xsi:type=\"xsd:string\">{value}</val>")
}

type Script = dyn FnMut(&Seen) -> Option<Reply> + Send;

/// The server: what the script does not answer is answered as a healthy vCenter would.
pub struct Server {
    script: Mutex<Box<Script>>,
    state: Mutex<State>,
    authority: String,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    logins: usize,
    /// Cookies of sessions that are logged in.
    sessions: BTreeSet<String>,
}

impl Server {
    pub fn new(script: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(Box::new(script)),
            state: Mutex::default(),
            authority: "vc.test".to_owned(),
        })
    }

    pub async fn connect(self: &Arc<Self>) -> Result<Client, Error> {
        self.connect_pinned(None).await
    }

    /// Connects to the vCenter with this instance UUID.
    pub async fn connect_pinned(self: &Arc<Self>, pin: Option<&str>) -> Result<Client, Error> {
        let exchange: Arc<dyn Exchange> = Arc::new(Way(Arc::clone(self)));
        let clock = Clock::starting_at("2026-11-30T20:00:00Z".parse().unwrap());
        Client::connect(exchange, "vc.test", pin, "pw@vsphere.local", SecretString::from(PASSWORD), clock).await
    }

    /// The server forgets every session.
    pub fn forget_sessions(&self) {
        self.state.lock().unwrap().sessions.clear();
    }

    /// Names of the calls so far.
    pub fn calls(&self) -> Vec<String> {
        self.state.lock().unwrap().seen.iter().map(|seen| seen.call.clone()).collect()
    }

    pub fn count(&self, call: &str) -> usize {
        self.calls().iter().filter(|seen| *seen == call).count()
    }

    pub fn seen(&self, call: &str) -> Vec<Seen> {
        self.state.lock().unwrap().seen.iter().filter(|seen| seen.call == call).cloned().collect()
    }

    /// Status, headers and body of the answer to this request, at once.
    pub fn bytes(&self, request: &Request<Bytes>) -> (u16, http::HeaderMap, Vec<u8>) {
        let reply = self.answer(request);
        let headers = reply
            .headers
            .into_iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_str(&value).unwrap()));
        (reply.status, headers.collect(), reply.body.to_vec())
    }

    fn answer(&self, request: &Request<Bytes>) -> Reply {
        let cookie = request.headers().get("cookie").map(|value| value.to_str().unwrap().to_owned());
        let (call, body) = if request.method() == http::Method::GET {
            assert_eq!(request.uri().path(), "/sdk/vimServiceVersions.xml");
            ("versions".to_owned(), Node::new("versions"))
        } else {
            assert_eq!(request.uri().path(), "/sdk");
            let tree = Node::parse(request.body(), Limits::default()).unwrap();
            let body = tree.get("Body").unwrap().children[0].clone();
            (body.name.clone(), body)
        };
        let nth = self.count(&call);
        let seen = Seen { call, body, cookie, nth };
        self.state.lock().unwrap().seen.push(seen.clone());
        let scripted = (self.script.lock().unwrap())(&seen);
        scripted.unwrap_or_else(|| self.healthy(&seen))
    }

    fn healthy(&self, seen: &Seen) -> Reply {
        let mut state = self.state.lock().unwrap();
        let logged_in = seen.cookie.as_ref().is_some_and(|cookie| state.sessions.contains(cookie));
        match seen.call.as_str() {
            "versions" => versions("8.0.3.0"),
            "RetrieveServiceContent" => service_content("VirtualCenter"),
            "Login" => {
                state.logins += 1;
                let cookie = format!("vmware_soap_session=\"s{:04}\"", state.logins);
                state.sessions.insert(cookie.clone());
                Reply::ok(
                    "Login",
                    "<returnval><key>k</key><userName>VSPHERE.LOCAL\\pw</userName><fullName>pw</fullName>\
                     <loginTime>2026-11-30T20:00:05.25Z</loginTime></returnval>",
                )
                .header("set-cookie", format!("{cookie}; Path=/; HttpOnly; Secure;"))
            }
            "RetrievePropertiesEx" if seen.asks() == "SessionManager" => {
                let session = "<val xsi:type=\"UserSession\"><key>k</key></val>";
                let properties: &[(&str, &str)] = if logged_in { &[("currentSession", session)] } else { &[] };
                let object = object("SessionManager", "SessionManager", properties);
                Reply::ok(&seen.call, &format!("<returnval>{object}</returnval>"))
            }
            _ if !logged_in => Reply::fault(
                "NotAuthenticated",
                "<object type=\"Folder\">group-d1</object><privilegeId>System.View</privilegeId>",
                "The session is not authenticated.",
            ),
            "Logout" => {
                state.sessions.remove(seen.cookie.as_deref().unwrap_or_default());
                Reply::ok("Logout", "")
            }
            "CurrentTime" => {
                let time = "<returnval xsi:type=\"xsd:dateTime\">2026-11-30T20:00:06Z</returnval>";
                Reply::ok("CurrentTime", time)
            }
            "CreateContainerView" => {
                let view = format!("<returnval type=\"ContainerView\">session[x]view-{}</returnval>", seen.nth);
                Reply::ok(&seen.call, &view)
            }
            "CreateFilter" => {
                let filter = format!("<returnval type=\"PropertyFilter\">session[x]filter-{}</returnval>", seen.nth);
                Reply::ok(&seen.call, &filter)
            }
            // No setting is set.
            "QueryOptions" => Reply::fault("InvalidName", "<name>x</name>", "The name is invalid."),
            "DestroyView" | "DestroyPropertyFilter" | "CancelRetrievePropertiesEx" | "DestroyCollector" => {
                Reply::ok(&seen.call, "")
            }
            other => panic!("the script has no answer to {other}"),
        }
    }
}

pub fn versions(newest: &str) -> Reply {
    Reply::page(
        200,
        &format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" ?><namespaces version=\"1.0\"><namespace><name>urn:vim25</name>\
             <version>{newest}</version><priorVersions><version>7.0.0.0</version></priorVersions></namespace>\
             </namespaces>"
        ),
    )
}

pub fn service_content(api_type: &str) -> Reply {
    Reply::ok(
        "RetrieveServiceContent",
        &format!(
            "<returnval><rootFolder type=\"Folder\">group-d1</rootFolder>\
             <propertyCollector type=\"PropertyCollector\">propertyCollector</propertyCollector>\
             <viewManager type=\"ViewManager\">ViewManager</viewManager>\
             <about><name>VMware vCenter Server</name><fullName>VMware vCenter Server 8.0.3 build-1</fullName>\
             <version>8.0.3</version><build>1</build><apiType>{api_type}</apiType><apiVersion>8.0.3.0</apiVersion>\
             <instanceUuid>6f0e0000-0000-4000-8000-000000000001</instanceUuid></about>\
             <sessionManager type=\"SessionManager\">SessionManager</sessionManager>\
             <eventManager type=\"EventManager\">EventManager</eventManager>\
             <taskManager type=\"TaskManager\">TaskManager</taskManager>\
             <setting type=\"OptionManager\">VpxSettings</setting>\
             <customFieldsManager type=\"CustomFieldsManager\">CustomFieldsManager</customFieldsManager></returnval>"
        ),
    )
    // RetrieveServiceContent sets a cookie before any login; it is of no use and must not be kept.
    .header("set-cookie", "vmware_soap_session=\"before\"; Path=/; HttpOnly; Secure;")
}

pub struct Way(pub Arc<Server>);

impl Exchange for Way {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let server = Arc::clone(&self.0);
        Box::pin(async move {
            let reply = server.answer(&request);
            tokio::time::sleep(reply.after).await;
            let authority = server.authority.clone();
            if reply.broken {
                let source = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                return Err(NetError::Broken { authority, source: Box::new(source) });
            }
            let mut response = Response::builder().status(reply.status);
            for (name, value) in reply.headers {
                response = response.header(name, value);
            }
            Ok(response.body(Full::new(reply.body).map_err(|never| match never {}).boxed_unsync()).unwrap())
        })
    }
}

pub fn host(id: &str) -> MoRef {
    MoRef::new("HostSystem", id)
}

pub fn task(id: &str) -> MoRef {
    MoRef::new("Task", id)
}

/// Everything that an error says, with its causes.
pub fn says(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        said = format!("{said}: {cause}");
        next = cause.source();
    }
    said
}
