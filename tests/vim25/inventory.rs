//! Properties: page by page, whatever happens between the pages.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use poolwright::base::clock::Clock;
use poolwright::base::net::{Body, Exchange, NetError};
use poolwright::model::{Fact, MoRef};
use poolwright::vim25::wire::{Limits, Node, decode};
use poolwright::vim25::{Client, ObjectContent, PropertySet, Retrieved, Scope};
use secrecy::SecretString;

use super::script::{Reply, Seen, Server, host, object, says, text, versions};

/// A page of these hosts; a token if there is more.
fn page(call: &str, hosts: std::ops::Range<usize>, token: Option<&str>) -> Reply {
    let objects: String =
        hosts.map(|n| object("HostSystem", &format!("host-{n}"), &[("name", &text(&format!("esx-{n}")))])).collect();
    let token = token.map(|token| format!("<token>{token}</token>")).unwrap_or_default();
    Reply::ok(call, &format!("<returnval>{token}{objects}</returnval>"))
}

/// Three pages of 100, 100 and 50 hosts.
fn pages(seen: &Seen) -> Option<Reply> {
    match (seen.call.as_str(), seen.body.text_of("token")) {
        ("RetrievePropertiesEx", _) if seen.asks() == "HostSystem" => Some(page(&seen.call, 0..100, Some("t1"))),
        ("ContinueRetrievePropertiesEx", Some("t1")) => Some(page(&seen.call, 100..200, Some("t2"))),
        ("ContinueRetrievePropertiesEx", Some("t2")) => Some(page(&seen.call, 200..250, None)),
        _ => None,
    }
}

async fn names(client: &Client) -> (Vec<String>, Result<Retrieved, poolwright::vim25::Error>) {
    let mut names = Vec::new();
    let sets = [PropertySet::new("HostSystem", &["name"])];
    let scope = Scope::Below(client.root_folder().clone());
    let result = client
        .retrieve(&scope, &sets, |page| {
            names.extend(page.iter().map(|content| content.get("name").unwrap().text.clone()));
        })
        .await;
    (names, result)
}

fn all_250() -> Vec<String> {
    (0..250).map(|n| format!("esx-{n}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fleet_is_read_in_pages_and_the_view_given_back() {
    let server = Server::new(pages);
    let client = server.connect().await.unwrap();
    let (read, result) = names(&client).await;
    assert_eq!(read, all_250());
    assert_eq!(result.unwrap(), Retrieved { objects: 250, gone: vec![] });
    let calls = server.calls();
    let tail: Vec<&str> = calls.iter().skip(3).map(String::as_str).collect();
    let expected = [
        "CreateContainerView",
        "RetrievePropertiesEx",
        "ContinueRetrievePropertiesEx",
        "ContinueRetrievePropertiesEx",
        "DestroyView",
    ];
    assert_eq!(tail, expected);
    let options = server.seen("RetrievePropertiesEx")[0].body.get("options").unwrap().clone();
    assert_eq!(options.text_of("maxObjects"), Some("100"));
}

/// The second page fails once in each way; the reading starts anew and gives each host once.
#[tokio::test(start_paused = true)]
async fn a_reading_that_is_interrupted_goes_on_where_it_was() {
    type Answer = fn() -> Reply;
    let interruptions: [(&str, Answer); 4] = [
        ("connection", Reply::broken),
        ("restart", || Reply::page(503, "")),
        ("session", || Reply::fault("NotAuthenticated", "", "")),
        ("an object", || Reply::fault("ManagedObjectNotFound", "<obj type=\"HostSystem\">host-9999</obj>", "")),
    ];
    for (what, answer) in interruptions {
        let server = Server::new(move |seen| {
            if seen.call == "ContinueRetrievePropertiesEx" && seen.nth == 0 { Some(answer()) } else { pages(seen) }
        });
        let client = server.connect().await.unwrap();
        let (read, result) = names(&client).await;
        assert_eq!(read, all_250(), "{what}");
        let gone = if what == "an object" { vec![host("host-9999")] } else { vec![] };
        assert_eq!(result.unwrap(), Retrieved { objects: 250, gone }, "{what}");
        // What was begun is given back: the paging and both views.
        assert_eq!(server.seen("CancelRetrievePropertiesEx")[0].body.text_of("token"), Some("t1"), "{what}");
        assert_eq!((server.count("CreateContainerView"), server.count("DestroyView")), (2, 2), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reading_that_cannot_go_on_ends_with_its_reason_and_gives_back_what_it_holds() {
    let server = Server::new(|seen| {
        if seen.call == "ContinueRetrievePropertiesEx" {
            return Some(Reply::fault("NoPermission", "<privilegeId>System.Read</privilegeId>", ""));
        }
        pages(seen)
    });
    let client = server.connect().await.unwrap();
    let (read, result) = names(&client).await;
    assert_eq!(read.len(), 100);
    let said = says(&result.unwrap_err());
    assert!(said.contains("cannot read the inventory") && said.contains("privilege System.Read"), "{said}");
    assert_eq!((server.count("CancelRetrievePropertiesEx"), server.count("DestroyView")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_breaks_each_time_is_given_up() {
    let server =
        Server::new(
            |seen| {
                if seen.call == "ContinueRetrievePropertiesEx" { Some(Reply::broken()) } else { pages(seen) }
            },
        );
    let client = server.connect().await.unwrap();
    let (read, result) = names(&client).await;
    assert_eq!(read.len(), 100);
    assert!(result.is_err());
    assert!(server.count("CreateContainerView") < 30);
}

/// A VM is deleted while its properties are read, in each way that servers tell it.
#[tokio::test(start_paused = true)]
async fn d06_an_object_that_is_deleted_meanwhile_is_skipped_and_noted() {
    let vm = |id: &str| MoRef::new("VirtualMachine", id);
    for way in ["fault", "missing", "left out"] {
        let server = Server::new(move |seen| {
            if seen.asks() != "VirtualMachine" {
                return None;
            }
            let ask: Vec<String> = seen
                .body
                .get("specSet")
                .unwrap()
                .all("objectSet")
                .map(|set| set.text_of("obj").unwrap().to_owned())
                .collect();
            let deleted = "vm-2";
            if way == "fault" && ask.iter().any(|id| id == deleted) {
                let fields = format!("<obj type=\"VirtualMachine\">{deleted}</obj>");
                return Some(Reply::fault("ManagedObjectNotFound", &fields, "The object has already been deleted"));
            }
            let objects: String = ask
                .iter()
                .map(|id| match (id == deleted, way) {
                    (true, "missing") => format!(
                        "<objects><obj type=\"VirtualMachine\">{id}</obj><missingSet><path>name</path><fault>\
                         <fault xsi:type=\"ManagedObjectNotFound\"><obj type=\"VirtualMachine\">{id}</obj></fault>\
                         <localizedMessage/></fault></missingSet></objects>"
                    ),
                    (true, _) => String::new(),
                    (false, _) => object("VirtualMachine", id, &[("name", &text(id))]),
                })
                .collect();
            Some(Reply::ok(&seen.call, &format!("<returnval>{objects}</returnval>")))
        });
        let client = server.connect().await.unwrap();
        let mut read = Vec::new();
        let scope = Scope::Objects(vec![vm("vm-1"), vm("vm-2"), vm("vm-3")]);
        let sets = [PropertySet::new("VirtualMachine", &["name"])];
        let result = client.retrieve(&scope, &sets, |page| read.extend(page)).await.unwrap();
        let ids: Vec<&str> = read.iter().map(|content| content.object.id.as_str()).collect();
        assert_eq!(ids, ["vm-1", "vm-3"], "{way}");
        assert_eq!(result, Retrieved { objects: 2, gone: vec![vm("vm-2")] }, "{way}");
        // Asked for alone it is a fault, not an empty object.
        let error = client.properties(&vm("vm-2"), &["name"]).await.unwrap_err();
        assert!(error.is_fault("ManagedObjectNotFound"), "{way}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_to_read_is_not_asked_for() {
    let server = Server::new(|_| None);
    let client = server.connect().await.unwrap();
    let sets = [PropertySet::new("VirtualMachine", &["name"])];
    let result = client.retrieve(&Scope::Objects(vec![]), &sets, |_| panic!("no page")).await.unwrap();
    assert_eq!(result, Retrieved::default());
    assert_eq!(server.calls().len(), 3);
}

fn one_host(properties: &'static str) -> impl FnMut(&Seen) -> Option<Reply> + Send {
    move |seen: &Seen| {
        let object = format!("<objects><obj type=\"HostSystem\">host-1</obj>{properties}</objects>");
        (seen.asks() == "HostSystem").then(|| Reply::ok(&seen.call, &format!("<returnval>{object}</returnval>")))
    }
}

async fn read_one(properties: &'static str, paths: &[&'static str]) -> ObjectContent {
    let server = Server::new(one_host(properties));
    let client = server.connect().await.unwrap();
    client.properties(&host("host-1"), paths).await.unwrap()
}

/// One value of an unknown type, one that cannot be decoded, one that may not be read, one unset.
#[tokio::test(start_paused = true)]
async fn d07_what_is_not_understood_leaves_the_rest_alone() {
    let content = read_one(
        "<propSet><name>config.future</name><val xsi:type=\"HostFutureThing\"><deep><x>1</x></deep></val></propSet>\
         <propSet><name>hardware.pciDevice</name><val xsi:type=\"ArrayOfHostPciDevice\"><HostPciDevice><id>nonsense\
         </id></HostPciDevice></val></propSet>\
         <propSet><name>name</name><val xsi:type=\"xsd:string\">esx-1</val></propSet>\
         <propSet><name>config.graphicsConfig</name><val xsi:type=\"HostGraphicsConfig\"><hostDefaultGraphicsType>\
         newKind</hostDefaultGraphicsType><sharedPassthruAssignmentPolicy></sharedPassthruAssignmentPolicy>\
         <later>7</later></val></propSet>\
         <missingSet><path>config.pciPassthruInfo</path><fault><fault xsi:type=\"NoPermission\"><privilegeId>\
         System.Read</privilegeId></fault><localizedMessage>Permission to perform this operation was denied.\
         </localizedMessage></fault></missingSet>",
        &["name", "hardware.pciDevice", "config.graphicsConfig", "config.pciPassthruInfo", "config.graphicsInfo"],
    )
    .await;
    assert_eq!(content.fact("name", decode::string), Fact::Known("esx-1".into()));
    assert_eq!(content.get("config.future").unwrap().type_name(), Some("HostFutureThing"));
    assert_eq!(content.get("config.future").unwrap().get("deep").unwrap().text_of("x"), Some("1"));
    let Fact::Unknown { why } = content.fact("hardware.pciDevice", decode::pci_devices) else { panic!() };
    assert!(why.contains("hardware.pciDevice was not understood") && why.contains("nonsense"), "{why}");
    let Fact::Known(graphics) = content.fact("config.graphicsConfig", decode::graphics_config) else { panic!() };
    assert_eq!((graphics.default_type.as_str(), graphics.policy.as_str()), ("newKind", ""));
    let Fact::Unknown { why } = content.fact("config.pciPassthruInfo", decode::passthru_states) else { panic!() };
    assert!(why.contains("Permission to perform this operation was denied") && why.contains("System.Read"), "{why}");
    assert_eq!(content.fact("config.graphicsInfo", decode::graphics_states), Fact::Absent);
}

#[tokio::test(start_paused = true)]
async fn a_bus_above_127_is_read_from_the_address_whatever_its_sign() {
    for bus in ["-122", "134"] {
        let devices = format!(
            "<v xmlns=\"urn:vim25\"><HostPciDevice><id>0000:86:00.0</id><classId>770</classId><bus>{bus}</bus>\
             <slot>0</slot><function>0</function><vendorId>4318</vendorId><subVendorId>4318</subVendorId>\
             <vendorName>NVIDIA Corporation</vendorName><deviceId>-28671</deviceId><subDeviceId>40000</subDeviceId>\
             <deviceName>x</deviceName></HostPciDevice></v>"
        );
        let devices = Node::parse(devices.as_bytes(), Limits::default()).unwrap();
        let device = &decode::pci_devices(&devices).unwrap()[0];
        assert_eq!(device.address.bus, 0x86);
        assert_eq!((device.id.device, device.id.sub_device), (0x9001, 40000));
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_that_the_version_does_not_have_is_not_sent_and_says_so() {
    let path = "capability.assignHwPciConfigSupported";
    let server = Server::new(|seen| {
        if seen.call == "versions" {
            return Some(versions("7.0.0.0"));
        }
        one_host("<propSet><name>name</name><val xsi:type=\"xsd:string\">esx-1</val></propSet>")(seen)
    });
    let client = server.connect().await.unwrap();
    let content = client.properties(&host("host-1"), &["name", path]).await.unwrap();
    assert_eq!(server.seen("RetrievePropertiesEx")[0].paths(), ["name"]);
    assert_eq!(content.fact(path, decode::boolean), Fact::unknown(format!("vim25 7.0.0.0 does not have {path}")));
}

/// The server knows less than its version says: the others are read all the same.
#[tokio::test(start_paused = true)]
async fn a_path_that_the_server_does_not_have_costs_only_itself() {
    let server = Server::new(|seen| {
        if seen.paths().contains(&"config.graphicsInfo") {
            let fields = "<name>config.graphicsInfo</name>";
            return Some(Reply::fault("InvalidProperty", fields, ""));
        }
        one_host("<propSet><name>name</name><val xsi:type=\"xsd:string\">esx-1</val></propSet>")(seen)
    });
    let client = server.connect().await.unwrap();
    let content = client.properties(&host("host-1"), &["name", "config.graphicsInfo"]).await.unwrap();
    assert_eq!(content.fact("name", decode::string), Fact::Known("esx-1".into()));
    assert!(content.fact("config.graphicsInfo", decode::graphics_states).is_unknown());
}

type Answering = dyn FnMut(&Request<Bytes>) -> (http::HeaderMap, Vec<u8>) + Send;

/// Counts bytes of answers that are alive.
struct Counting {
    server: Mutex<Box<Answering>>,
    alive: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len(), Ordering::SeqCst);
    }
}

impl Exchange for Counting {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let (headers, body) = (self.server.lock().unwrap())(&request);
        let alive = self.alive.fetch_add(body.len(), Ordering::SeqCst) + body.len();
        self.most.fetch_max(alive, Ordering::SeqCst);
        let bytes = Bytes::from_owner(Counted(body, Arc::clone(&self.alive)));
        // Whole in one frame: what `collect` keeps is these very bytes.
        let frame = Ok::<_, NetError>(http_body::Frame::data(bytes));
        let mut response = Response::new(StreamBody::new(futures::stream::iter([frame])).boxed_unsync());
        *response.headers_mut() = headers;
        Box::pin(async move { Ok(response) })
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_one_page_of_xml_is_held() {
    let server = Server::new(pages);
    let longest = Arc::new(AtomicUsize::new(0));
    let (alive, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let page_length = Arc::clone(&longest);
    let exchange: Arc<dyn Exchange> = Arc::new(Counting {
        server: Mutex::new(Box::new(move |request| {
            let (_, headers, body) = server.bytes(request);
            page_length.fetch_max(body.len(), Ordering::SeqCst);
            (headers, body)
        })),
        alive: Arc::clone(&alive),
        most: Arc::clone(&most),
    });
    let clock = Clock::starting_at("2026-11-30T20:00:00Z".parse().unwrap());
    let client = Client::connect(exchange, "vc.test", None, "pw", SecretString::from("x"), clock).await.unwrap();
    let mut read = 0;
    let sets = [PropertySet::new("HostSystem", &["name"])];
    let held = Arc::clone(&alive);
    client
        .retrieve(&Scope::Below(client.root_folder().clone()), &sets, |page| {
            read += page.len();
            // Decoded: not even this page's XML is there any more.
            assert_eq!(held.load(Ordering::SeqCst), 0);
        })
        .await
        .unwrap();
    assert_eq!(read, 250);
    assert!(longest.load(Ordering::SeqCst) > 10_000);
    assert_eq!(most.load(Ordering::SeqCst), longest.load(Ordering::SeqCst));
}
