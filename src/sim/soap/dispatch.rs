//! What each method does.

use super::collector::{fetch, page};
use super::esxcli;
use super::filter::Filter;
use super::lists::{create_collector, query_events, read_next};
use super::objects::{Object, at_path};
use super::properties::{Source, devices, option, profiles, service_content, software};
use super::request::{Call, boolean, reference};
use super::select::{Plan, select};
use super::session::{Collector, PROPERTY, Session, View};
use super::shape::Kind;
use super::value::{Value, returned};
use crate::model::MoRef;
use crate::sim::behaviour::{Moment, NewWrite, SentDevice, SentGraphics, SentPassthru};
use crate::sim::fault::VimFault;
use crate::sim::faults::Struck;
use crate::vim25::wire::Node;

/// Methods that change the fleet or what is written on it: they are in the world's log.
const WRITES: [&str; 22] = [
    "EnterMaintenanceMode_Task",
    "ExitMaintenanceMode_Task",
    "RebootHost_Task",
    "ReconnectHost_Task",
    "UpdateGraphicsConfig",
    "UpdatePassthruConfig",
    "CancelTask",
    "AddCustomFieldDef",
    "RemoveCustomFieldDef",
    "SetField",
    "LogUserEvent",
    "StartService",
    "StopService",
    "RestartService",
    "UpdateServicePolicy",
    "PowerOnVM_Task",
    "PowerOffVM_Task",
    "ShutdownGuest",
    "RelocateVM_Task",
    "ReconfigVM_Task",
    "UpdateOptions",
    "ExecuteSoap",
];

/// Whether a method changes something.
pub(super) fn is_write(method: &str) -> bool {
    WRITES.contains(&method)
}

/// One call, with everything it may touch.
pub(super) struct Doing<'a, 'm> {
    pub moment: &'a mut Moment<'m>,
    pub session: &'a mut Session,
    pub call: &'a Call,
    pub object: Object,
    pub struck: &'a Struck,
    /// Login name of the caller.
    pub who: &'a str,
    /// The caller as tasks show it.
    pub user: &'a str,
    /// A write was answered well and has changed nothing.
    pub idle: bool,
}

/// What a call is about: name and id of the object that it changes.
pub(super) fn subject(moment: &Moment<'_>, call: &Call, object: &Object) -> (Option<String>, String) {
    let entity = call.get("entity").and_then(reference).filter(|_| is_write(&call.method));
    let about = match (entity.and_then(|entity| Object::find(moment.state, None, &entity)), object) {
        (Some(entity), _) => entity,
        (None, Object::Task(number)) => {
            let task = moment.state.tasks.get(number);
            let of = task.map(|task| task.vm.map_or(Object::Host(task.host), Object::Vm));
            let name = of.and_then(|of| of.name(moment.state).map(str::to_owned));
            return (name, format!("task-{number}"));
        }
        (None, object) => object.clone(),
    };
    let host = about.host().map(Object::Host).unwrap_or(about);
    (host.name(moment.state).map(str::to_owned), host.reference(moment.state).id)
}

/// Lists a write in the world's log.
pub(super) fn log_write(moment: &mut Moment<'_>, who: &str, call: &Call, object: &Object, effect: bool) {
    let (name, id) = subject(moment, call, object);
    let name = name.unwrap_or_else(|| id.clone());
    let arguments = call.arguments();
    moment.wrote(NewWrite { who, object: &name, id: &id, call: &call.method, arguments, effect });
    if effect {
        moment.count_call(&call.method, &name);
    }
}

impl Doing<'_, '_> {
    /// Does it; the results are the elements of the answer.
    pub fn run(mut self) -> Result<Vec<Node>, VimFault> {
        if !is_write(&self.call.method) || esxcli::only_reads(self.call) {
            return self.read();
        }
        let before = self.moment.state.next;
        let result = self.write();
        // A task that is going to fail changes nothing.
        let doomed = self.moment.state.tasks.range(before..).any(|(_, task)| task.doomed.is_some());
        let effect = result.is_ok() && !self.struck.hollow && !doomed && !self.idle;
        log_write(self.moment, self.who, self.call, &self.object, effect);
        result
    }

    fn source(&self) -> Source<'_> {
        Source { state: self.moment.state, spec: self.moment.spec, session: Some(self.session) }
    }

    fn host(&self) -> Result<u32, VimFault> {
        self.object.host().ok_or_else(|| VimFault::named("NotSupported"))
    }

    fn write(&mut self) -> Result<Vec<Node>, VimFault> {
        let call = self.call;
        let fate = self.struck.fate.clone();
        let (user, hollow) = (self.user.to_owned(), self.struck.hollow);
        match call.method.as_str() {
            "EnterMaintenanceMode_Task" => {
                let (host, timeout) = (self.host()?, call.number("timeout").unwrap_or(0));
                task(self.moment.enter_maintenance(host, &user, timeout, fate)?)
            }
            "ExitMaintenanceMode_Task" => {
                let (host, timeout) = (self.host()?, call.number("timeout").unwrap_or(0));
                task(self.moment.exit_maintenance(host, &user, timeout, fate)?)
            }
            "RebootHost_Task" => {
                let (host, force) = (self.host()?, call.flag("force").unwrap_or(false));
                task(self.moment.reboot(host, &user, force, fate)?)
            }
            "ReconnectHost_Task" => task(self.moment.reconnect(self.host()?, &user, fate)?),
            "PowerOnVM_Task" => self.power_on(),
            "PowerOffVM_Task" => self.power_off(),
            "RelocateVM_Task" => self.relocate(),
            "ReconfigVM_Task" => self.reconfigure(),
            // From here on a lie is an answer without anything else.
            "AddCustomFieldDef" if hollow => Ok(vec![field_def(101, call)]),
            _ if hollow => Ok(Vec::new()),
            "UpdateGraphicsConfig" => {
                let host = self.host()?;
                self.moment.update_graphics(host, &graphics(call)?).map(|()| Vec::new())
            }
            "UpdatePassthruConfig" => {
                let host = self.host()?;
                let entries: Vec<SentPassthru> = call.body.all("config").map(passthru).collect();
                self.moment.update_passthru(host, &entries).map(|()| Vec::new())
            }
            "StartService" | "StopService" => {
                let (host, run) = (self.host()?, call.method == "StartService");
                self.moment.run_service(host, call.text("id").unwrap_or_default(), run).map(|()| Vec::new())
            }
            "RestartService" => {
                let (host, id) = (self.host()?, call.text("id").unwrap_or_default());
                self.moment.run_service(host, id, false)?;
                self.moment.run_service(host, id, true).map(|()| Vec::new())
            }
            "UpdateServicePolicy" => {
                let (host, policy) = (self.host()?, call.text("policy").unwrap_or_default());
                self.moment.service_policy(host, call.text("id").unwrap_or_default(), policy).map(|()| Vec::new())
            }
            "CancelTask" => match self.object {
                Object::Task(number) => self.moment.cancel_task(number).map(|()| Vec::new()),
                _ => Err(VimFault::named("NotSupported")),
            },
            "AddCustomFieldDef" => {
                let key = self.moment.add_field(call.text("name").unwrap_or_default(), call.text("moType"))?;
                Ok(vec![field_def(key, call)])
            }
            "RemoveCustomFieldDef" => self.moment.remove_field(key(call)).map(|()| Vec::new()),
            "SetField" => {
                let host = self.entity_host()?;
                self.moment.set_field(host, key(call), call.text("value").unwrap_or_default()).map(|()| Vec::new())
            }
            "ShutdownGuest" => self.shutdown_guest(),
            "UpdateOptions" => self.update_options(),
            "ExecuteSoap" => {
                let host = self.host()?;
                let (effect, answer) = esxcli::run(self.moment, host, call)?;
                self.idle = !effect;
                Ok(answer)
            }
            "LogUserEvent" => {
                let host = self.entity_host()?;
                let message = call.text("msg").unwrap_or_default().to_owned();
                self.moment.event("GeneralUserEvent", Some(host), &user, message);
                Ok(Vec::new())
            }
            _ => Err(VimFault::named("NotSupported")),
        }
    }

    fn entity_host(&self) -> Result<u32, VimFault> {
        let entity = self.call.get("entity").and_then(reference).ok_or_else(|| VimFault::argument("entity"))?;
        let object = Object::find(self.moment.state, None, &entity);
        object.as_ref().and_then(Object::host).ok_or_else(|| VimFault::gone(&entity.kind, &entity.id))
    }

    fn read(&mut self) -> Result<Vec<Node>, VimFault> {
        let call = self.call;
        let version = call.version;
        match call.method.as_str() {
            "RetrieveServiceContent" => {
                Ok(returned(Kind::Data("ServiceContent"), &service_content(self.moment.spec), version))
            }
            "FindByInventoryPath" => {
                let found = at_path(self.moment.state, call.text("inventoryPath").unwrap_or_default());
                // Nothing there is no result, and no fault.
                let found = found.map(|object| object.reference(self.moment.state));
                Ok(found.map(|found| Node::reference("returnval", &found.kind, &found.id)).into_iter().collect())
            }
            "CurrentTime" => Ok(vec![Node::leaf("returnval", self.moment.state.time.to_string())]),
            "Fetch" => {
                let name = call.text("prop").unwrap_or_default();
                Ok(fetch(self.source(), &self.object, name, self.struck, version)?.into_iter().collect())
            }
            "RetrieveManagedMethodExecuter" => Ok(vec![Node::reference(
                "returnval",
                "ManagedMethodExecuter",
                &format!("methodExecuter-{}", self.host()?),
            )]),
            // Nobody here asks it for anything.
            "RetrieveDynamicTypeManager" => Ok(vec![Node::reference(
                "returnval",
                "DynamicTypeManager",
                &format!("dynamicTypeManager-{}", self.host()?),
            )]),
            "ExecuteSoap" => Ok(esxcli::info(call)),
            "CreateContainerView" => self.create_view(),
            "CreateListView" => {
                let id = self.session.id("list");
                self.session.lists.insert(id.clone(), Vec::new());
                self.list(&id, "obj");
                Ok(vec![Node::reference("returnval", "ListView", &id)])
            }
            "ModifyListView" | "ResetListView" => self.change_list(),
            "DestroyView" => {
                self.session.views.remove(&call.this.id);
                self.session.lists.remove(&call.this.id);
                Ok(Vec::new())
            }
            "RetrieveProperties" => {
                let plan = self.plan()?;
                let everything = Plan { most: plan.items.len(), ..plan };
                let (objects, _) = page(self.source(), everything, self.struck, version);
                Ok(objects.into_iter().map(|object| Node { name: "returnval".to_owned(), ..object }).collect())
            }
            "RetrievePropertiesEx" => {
                let plan = self.plan()?;
                let asked = call.get("options").and_then(|options| options.text_of("maxObjects"));
                let asked: Option<usize> = asked.and_then(|count| count.trim().parse().ok());
                let most = self.moment.spec.vcenter.page as usize;
                let most = asked.filter(|asked| *asked > 0).map_or(most, |asked| asked.min(most));
                self.next_page(Plan { most, ..plan })
            }
            "ContinueRetrievePropertiesEx" => {
                let token = call.text("token").unwrap_or_default();
                let plan = self.session.pages.remove(token).ok_or_else(|| VimFault::argument("token"))?;
                self.next_page(plan)
            }
            "CancelRetrievePropertiesEx" => {
                self.session.pages.remove(call.text("token").unwrap_or_default());
                Ok(Vec::new())
            }
            "CreateFilter" => self.create_filter(),
            "DestroyPropertyFilter" => {
                self.session.property.values_mut().for_each(|collector| drop(collector.filters.remove(&call.this.id)));
                Ok(Vec::new())
            }
            "CreatePropertyCollector" => {
                let id = self.session.id("pc");
                self.session.property.insert(id.clone(), Collector::default());
                Ok(vec![Node::reference("returnval", "PropertyCollector", &id)])
            }
            "DestroyPropertyCollector" if call.this.id != PROPERTY => {
                self.session.property.remove(&call.this.id);
                self.moment.changed = true;
                Ok(Vec::new())
            }
            "CancelWaitForUpdates" => {
                self.collector()?.canceled += 1;
                self.moment.changed = true;
                Ok(Vec::new())
            }
            "CreateCollectorForTasks" => create_collector(self.moment.state, self.session, call),
            "ReadNextTasks" => {
                let history = self.session.collectors.get_mut(&call.this.id);
                let history = history.ok_or_else(|| VimFault::gone(&call.this.kind, &call.this.id))?;
                let from = Source { state: self.moment.state, spec: self.moment.spec, session: None };
                Ok(read_next(from, history, call))
            }
            "DestroyCollector" => {
                self.session.collectors.remove(&call.this.id);
                Ok(Vec::new())
            }
            "QueryEvents" => query_events(self.moment.state, call),
            "QueryOptions" => self.query_options(),
            "fetchSoftwarePackages" => {
                let host = self.host()?;
                let packages = software(self.moment.host(host)?);
                Ok(returned(Kind::Data("SoftwarePackage"), &Value::List(packages), version))
            }
            "RetrieveVgpuProfileInfo" | "RetrieveVgpuDeviceInfo" => {
                let host = self.host()?;
                let (kind, found) = if call.method == "RetrieveVgpuProfileInfo" {
                    ("VirtualMachineVgpuProfileInfo", profiles(self.moment.state, host))
                } else {
                    ("VirtualMachineVgpuDeviceInfo", devices(self.moment.state, host))
                };
                Ok(returned(Kind::Data(kind), &Value::List(found), version))
            }
            // After a boot these calls do not help: the worst case.
            "RefreshGraphicsManager" => {
                let host = self.host()?;
                self.moment.host(host)?;
                self.moment.notice_mig(host);
                Ok(Vec::new())
            }
            "Refresh" | "RefreshServices" => {
                let host = self.host()?;
                self.moment.host(host).map(|_| Vec::new())
            }
            _ => Err(VimFault::named("NotSupported")),
        }
    }

    fn create_view(&mut self) -> Result<Vec<Node>, VimFault> {
        let container =
            self.call.get("container").and_then(reference).ok_or_else(|| VimFault::argument("container"))?;
        if Object::find(self.moment.state, None, &container).is_none() {
            return Err(VimFault::gone(&container.kind, &container.id));
        }
        let kinds = self.call.body.all("type").map(|kind| kind.text.clone()).collect();
        let recursive = self.call.flag("recursive").unwrap_or(false);
        let id = self.session.id("view");
        self.session.views.insert(id.clone(), View { container, kinds, recursive });
        Ok(vec![Node::reference("returnval", "ContainerView", &id)])
    }

    /// `ResetListView` and `ModifyListView`: the answer names what is not there.
    fn change_list(&mut self) -> Result<Vec<Node>, VimFault> {
        let call = self.call;
        let MoRef { kind, id } = &call.this;
        let gone: Vec<MoRef> = call.body.all("remove").filter_map(reference).collect();
        let listed = self.session.lists.get_mut(id).ok_or_else(|| VimFault::gone(kind, id))?;
        let field = match call.method.as_str() {
            "ResetListView" => {
                listed.clear();
                "obj"
            }
            _ => {
                listed.retain(|one| !gone.contains(one));
                "add"
            }
        };
        let unresolved = self.list(id, field);
        self.moment.changed = true;
        Ok(unresolved.iter().map(|one| Node::reference("returnval", &one.kind, &one.id)).collect())
    }

    /// Adds what a field of the call names to a list view, and says what of it is not there.
    fn list(&mut self, id: &str, field: &str) -> Vec<MoRef> {
        let named: Vec<MoRef> = self.call.body.all(field).filter_map(reference).collect();
        let there = |one: &MoRef| Object::find(self.moment.state, Some(self.session), one).is_some();
        let (known, unresolved): (Vec<MoRef>, Vec<MoRef>) = named.into_iter().partition(there);
        if let Some(listed) = self.session.lists.get_mut(id) {
            known.into_iter().for_each(|one| {
                if !listed.contains(&one) {
                    listed.push(one)
                }
            });
        }
        unresolved
    }

    /// What all `specSet`s select.
    fn plan(&self) -> Result<Plan, VimFault> {
        let mut plan = Plan::default();
        for spec in self.call.body.all("specSet") {
            plan.items.extend(select(self.source(), spec, self.call.version)?.items);
        }
        Ok(plan)
    }

    fn next_page(&mut self, plan: Plan) -> Result<Vec<Node>, VimFault> {
        if plan.items.is_empty() {
            return Ok(Vec::new()); // no result at all, not an empty one
        }
        let (objects, rest) = page(self.source(), plan, self.struck, self.call.version);
        let mut result = Node::new("returnval");
        if !rest.items.is_empty() {
            let token = self.session.id("page");
            result.children.push(Node::leaf("token", &token));
            self.session.pages.insert(token, rest);
        }
        Ok(vec![result.with_all(objects)])
    }

    fn create_filter(&mut self) -> Result<Vec<Node>, VimFault> {
        let spec = self.call.get("spec").cloned().ok_or_else(|| VimFault::argument("spec"))?;
        select(self.source(), &spec, self.call.version)?;
        let id = self.session.id("filter");
        let filter = Filter::new(spec, self.call.version);
        self.collector()?.filters.insert(id.clone(), filter);
        Ok(vec![Node::reference("returnval", "PropertyFilter", &id)])
    }

    /// The property collector of the call.
    fn collector(&mut self) -> Result<&mut Collector, VimFault> {
        let MoRef { kind, id } = &self.call.this;
        self.session.property.get_mut(id).ok_or_else(|| VimFault::gone(kind, id))
    }

    fn query_options(&self) -> Result<Vec<Node>, VimFault> {
        let wanted = self.call.text("name");
        let matches = |key: &str| {
            wanted.is_none_or(|name| key == name || key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
        };
        let found: Vec<Value> = self
            .moment
            .state
            .options
            .iter()
            .filter(|(key, _)| matches(key))
            .map(|(key, value)| option(key, value))
            .collect();
        match wanted {
            // An unknown key is a fault, not an empty answer (§1.10).
            Some(name) if found.is_empty() => Err(VimFault::named("InvalidName")
                .saying(format!("'{name}' is invalid."))
                .with(Node::leaf("name", name))),
            _ => Ok(returned(Kind::Data("OptionValue"), &Value::List(found), self.call.version)),
        }
    }
}

pub(super) fn task(number: u64) -> Result<Vec<Node>, VimFault> {
    Ok(vec![Node::reference("returnval", "Task", &format!("task-{number}"))])
}

fn key(call: &Call) -> i32 {
    call.number("key").and_then(|key| i32::try_from(key).ok()).unwrap_or(-1)
}

fn field_def(key: i32, call: &Call) -> Node {
    Node::new("returnval")
        .with(Node::leaf("key", key.to_string()))
        .with(Node::leaf("name", call.text("name").unwrap_or_default()))
        .with(Node::leaf("type", "string"))
        .with_some(call.text("moType").map(|kind| Node::leaf("managedObjectType", kind)))
}

fn graphics(call: &Call) -> Result<SentGraphics, VimFault> {
    let config = call.get("config").ok_or_else(|| VimFault::argument("config"))?;
    let text = |node: &Node, name: &str| node.text_of(name).unwrap_or_default().to_owned();
    let devices = config.all("deviceType").map(|device| SentDevice {
        device_id: text(device, "deviceId"),
        graphics_type: text(device, "graphicsType"),
        vgpu_mode: device.text_of("vgpuMode").map(str::to_owned),
    });
    Ok(SentGraphics {
        default_type: text(config, "hostDefaultGraphicsType"),
        policy: text(config, "sharedPassthruAssignmentPolicy"),
        devices: devices.collect(),
    })
}

fn passthru(config: &Node) -> SentPassthru {
    let flag = |name: &str| config.text_of(name).and_then(boolean);
    let functions = config.text_of("numVirtualFunction").and_then(|count| count.trim().parse().ok());
    SentPassthru {
        id: config.text_of("id").unwrap_or_default().to_owned(),
        enabled: flag("passthruEnabled").unwrap_or(false),
        apply_now: flag("applyNow"),
        label: config.text_of("hardwareLabel").map(str::to_owned),
        sriov: flag("sriovEnabled").map(|on| (on, functions.unwrap_or(0))),
    }
}
