//! A client that writes envelopes as text and reads answers as text.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use poolwright::base::net::{Endpoint, Exchange, NetError, Network, Trust, collect};
use poolwright::sim::{SimNetwork, World};

/// A world of one cluster; `spec` is what stands under `spec:` beside the vCenter, `hosts` the hosts.
pub fn world_with(hosts: &str, rest: &str) -> World {
    world_of(&document(hosts, rest))
}

/// The world of a document.
pub fn world_of(text: &str) -> World {
    World::parse("lab.world.yaml", text.as_bytes()).unwrap()
}

/// The document of [`world_with`].
pub fn document(hosts: &str, rest: &str) -> String {
    format!(
        "apiVersion: poolwright/v1
kind: World
metadata: {{name: lab}}
spec:
  now: 2026-11-30T20:00:00Z
  vcenter: {{address: vc.lab, users: [{{name: pw@vsphere.local, password: lab}}], options: {{vgpu.hotmigrate.enabled: \"true\"}}}}
  datacenters:
    - path: /Prod/EU/DC1
      clusters:
        - name: gpu-a
          ha: {{enabled: true}}
          hosts:
{hosts}
{rest}
"
    )
}

/// Two H100 in passthrough on one host.
pub const PASSTHROUGH: &str = "            - {names: esx-01, driver: {component: NVD-AIE-800, version: 580.95.02}, gpus: [{model: h100-nvl-94, count: 2, mode: {passthrough: {label: train}}}]}";
/// Two H100 in time-sliced vGPU mode on one host.
pub const VGPU: &str = "            - {names: esx-01, driver: {component: NVD-AIE-800, version: 580.95.02}, gpus: [{model: h100-nvl-94, count: 2, mode: {vgpu: {size: same}}}]}";

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    pub cookie: Option<String>,
}

impl Answer {
    /// The text between the first `<tag…>` and its end.
    pub fn text(&self, tag: &str) -> String {
        element(&self.body, tag).unwrap_or_else(|| panic!("no <{tag}> in {}", self.body))
    }

    /// The answer, which must be a success.
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{}", self.body);
        self
    }

    /// The fault's `xsi:type`; the answer must be one.
    pub fn fault(&self) -> String {
        assert_eq!(self.status, 500, "{}", self.body);
        let detail = element(&self.body, "detail").expect("a detail");
        detail.split("xsi:type=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a type").to_owned()
    }
}

/// The content of the first element of this name.
pub fn element(text: &str, tag: &str) -> Option<String> {
    let open = text
        .match_indices(&format!("<{tag}"))
        .map(|(at, _)| at)
        .find(|at| text[at + tag.len() + 1..].starts_with(['>', ' ']))?;
    let start = open + text[open..].find('>')? + 1;
    let end = start + text[start..].find(&format!("</{tag}>"))?;
    Some(text[start..end].to_owned())
}

pub struct Raw {
    exchange: Arc<dyn Exchange>,
    pub cookie: Option<String>,
    pub version: String,
}

impl Raw {
    pub fn new(network: &dyn Network) -> Self {
        let endpoint = Endpoint::new("vc.lab", Trust::System);
        Self { exchange: network.open(&endpoint).unwrap(), cookie: None, version: "8.0.3.0".into() }
    }

    /// A client of its own network on this world, logged in.
    pub async fn login(world: &World) -> Self {
        let mut raw = Self::new(&SimNetwork::new(world.clone()));
        raw.log_in("pw@vsphere.local", "lab").await.ok();
        raw
    }

    pub async fn log_in(&mut self, user: &str, password: &str) -> Answer {
        let answer = self
            .call(&format!(
                "<Login xmlns=\"urn:vim25\"><_this type=\"SessionManager\">SessionManager</_this><userName>{user}</userName><password>{password}</password></Login>"
            ))
            .await;
        self.cookie = answer.cookie.clone().or(self.cookie.take());
        answer
    }

    /// One call; the connection must not break.
    pub async fn call(&self, body: &str) -> Answer {
        self.try_call(body).await.unwrap()
    }

    pub async fn try_call(&self, body: &str) -> Result<Answer, NetError> {
        let envelope = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\">\n<soapenv:Body>{body}</soapenv:Body>\n</soapenv:Envelope>"
        );
        let mut request = Request::post("/sdk")
            .header("content-type", "text/xml; charset=UTF-8")
            .header("soapaction", format!("\"urn:vim25/{}\"", self.version));
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let response = self.exchange.exchange(request.body(Bytes::from(envelope)).unwrap()).await?;
        let response = collect("vc.lab", response, 64 << 20).await?;
        let cookie = response.headers().get("set-cookie").map(|value| value.to_str().unwrap().to_owned());
        let body = String::from_utf8(response.body().to_vec()).unwrap();
        Ok(Answer { status: response.status().as_u16(), body, cookie })
    }

    /// A method without parameters beside the given ones.
    pub async fn method(&self, method: &str, kind: &str, id: &str, parameters: &str) -> Answer {
        self.call(&format!("<{method} xmlns=\"urn:vim25\"><_this type=\"{kind}\">{id}</_this>{parameters}</{method}>"))
            .await
    }

    pub async fn host_method(&self, method: &str, parameters: &str) -> Answer {
        let host = self.host("esx-01").await;
        self.method(method, "HostSystem", &host, parameters).await
    }

    pub async fn enter(&self, timeout: i64) -> Answer {
        self.host_method("EnterMaintenanceMode_Task", &format!("<timeout>{timeout}</timeout>")).await
    }

    pub async fn exit(&self) -> Answer {
        self.host_method("ExitMaintenanceMode_Task", "<timeout>0</timeout>").await
    }

    pub async fn reboot(&self) -> Answer {
        self.host_method("RebootHost_Task", "<force>false</force>").await
    }

    /// `UpdatePassthruConfig` of some devices of esx-01.
    pub async fn passthru(&self, entries: &str) -> Answer {
        let id = self.manager("pciPassthruSystem").await;
        self.method("UpdatePassthruConfig", "HostPciPassthruSystem", &id, entries).await
    }

    /// `UpdateGraphicsConfig` of esx-01.
    pub async fn graphics(&self, default: &str, devices: &str) -> Answer {
        let id = self.manager("graphicsManager").await;
        let config = format!(
            "<config><hostDefaultGraphicsType>{default}</hostDefaultGraphicsType><sharedPassthruAssignmentPolicy>performance</sharedPassthruAssignmentPolicy>{devices}</config>"
        );
        self.method("UpdateGraphicsConfig", "HostGraphicsManager", &id, &config).await
    }

    async fn manager(&self, name: &str) -> String {
        self.read("HostSystem", &self.host("esx-01").await, &[&format!("configManager.{name}")]).await.ok().text("val")
    }

    /// The id of a host by its name.
    pub async fn host(&self, name: &str) -> String {
        self.named("HostSystem", name).await
    }

    /// A method of a VM, by its name.
    pub async fn vm(&self, method: &str, name: &str, parameters: &str) -> Answer {
        let id = self.named("VirtualMachine", name).await;
        self.method(method, "VirtualMachine", &id, parameters).await
    }

    /// A method of a VM that starts a task; how the task ends, `success` or the fault's type.
    pub async fn vm_task(&self, method: &str, name: &str, parameters: &str) -> String {
        let task = self.vm(method, name, parameters).await.ok().text("returnval");
        pass(120).await;
        self.ended(&task).await
    }

    /// How a task ended: `success`, `running`, or the fault's type.
    pub async fn ended(&self, task: &str) -> String {
        let info = self.read("Task", task, &["info"]).await.ok().body;
        match element(&info, "error") {
            Some(_) => info.split("<fault xsi:type=\"").nth(1).unwrap().split('"').next().unwrap().to_owned(),
            None => element(&info, "state").unwrap(),
        }
    }

    /// One property of a VM, as its text.
    pub async fn vm_value(&self, name: &str, path: &str) -> String {
        let id = self.named("VirtualMachine", name).await;
        self.read("VirtualMachine", &id, &[path]).await.ok().text("val")
    }

    /// The host that a VM is on, and its power.
    pub async fn place(&self, name: &str) -> (String, String) {
        let host = self.vm_value(name, "runtime.host").await;
        let host = self.read("HostSystem", &host, &["name"]).await.ok().text("val");
        (host, self.vm_value(name, "runtime.powerState").await)
    }

    /// The id of an object by its name.
    pub async fn named(&self, kind: &str, name: &str) -> String {
        let answer = self.view(kind, &["name"]).await.ok();
        answer
            .body
            .split("<objects>")
            .find(|object| element(object, "val").as_deref() == Some(name))
            .and_then(|object| element(object, "obj"))
            .unwrap_or_else(|| panic!("no {kind} {name} in {}", answer.body))
    }

    /// Properties of all objects of a type, through a container view.
    pub async fn view(&self, kind: &str, paths: &[&str]) -> Answer {
        let view = self
            .method(
                "CreateContainerView",
                "ViewManager",
                "ViewManager",
                &format!(
                    "<container type=\"Folder\">group-d1</container><type>{kind}</type><recursive>true</recursive>"
                ),
            )
            .await
            .ok()
            .text("returnval");
        let paths: String = paths.iter().map(|path| format!("<pathSet>{path}</pathSet>")).collect();
        self.retrieve(&format!(
            "<specSet><propSet><type>{kind}</type>{paths}</propSet><objectSet><obj type=\"ContainerView\">{view}</obj><skip>true</skip><selectSet xsi:type=\"TraversalSpec\"><type>ContainerView</type><path>view</path><skip>false</skip></selectSet></objectSet></specSet>"
        ), 100).await
    }

    pub async fn retrieve(&self, specs: &str, most: u32) -> Answer {
        self.method(
            "RetrievePropertiesEx",
            "PropertyCollector",
            "propertyCollector",
            &format!("{specs}<options><maxObjects>{most}</maxObjects></options>"),
        )
        .await
    }

    /// Properties of one object.
    pub async fn read(&self, kind: &str, id: &str, paths: &[&str]) -> Answer {
        self.retrieve(&spec(kind, id, paths), 1).await
    }

    /// A read that may fail.
    pub async fn root(&self) -> Answer {
        self.read("Folder", "group-d1", &["name"]).await
    }

    /// Properties of esx-01.
    pub async fn esx(&self, paths: &[&str]) -> Answer {
        self.read("HostSystem", &self.host("esx-01").await, paths).await.ok()
    }

    /// One property of esx-01, as its text.
    pub async fn value(&self, path: &str) -> String {
        self.esx(&[path]).await.text("val")
    }

    /// The state of a task.
    pub async fn state(&self, task: &str) -> String {
        self.read("Task", task, &["info.state"]).await.ok().text("val")
    }

    /// Enters maintenance and waits for it.
    pub async fn close(&self) {
        let task = self.enter(0).await.ok().text("returnval");
        pass(30).await;
        assert_eq!(self.state(&task).await, "success");
    }

    /// Reboots and waits until all of it is over, less than a session may be idle.
    pub async fn boot(&self) {
        self.reboot().await.ok();
        pass(1500).await;
        assert_eq!(self.value("runtime.connectionState").await, "connected");
    }
}

/// A `specSet` of one object.
pub fn spec(kind: &str, id: &str, paths: &[&str]) -> String {
    format!("<specSet>{}</specSet>", filter(kind, id, paths))
}

/// The content of a `PropertyFilterSpec` of one object.
pub fn filter(kind: &str, id: &str, paths: &[&str]) -> String {
    let paths: String = paths.iter().map(|path| format!("<pathSet>{path}</pathSet>")).collect();
    format!("<propSet><type>{kind}</type>{paths}</propSet><objectSet><obj type=\"{kind}\">{id}</obj></objectSet>")
}

/// Lets so many seconds pass.
pub async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
