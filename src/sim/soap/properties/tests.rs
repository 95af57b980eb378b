//! Values and type tables must agree: a field that the table does not have is never sent, and a typing
//! mistake would hide it without a word.

use super::super::objects::Object;
use super::super::session::Session;
use super::super::shape::shape;
use super::super::value::Value;
use super::{Source, property};
use crate::sim::World;

const WORLD: &str = r#"
apiVersion: poolwright/v1
kind: World
metadata: {name: all}
spec:
  vcenter: {address: vc.lab, options: {a: "1"}}
  datacenters:
    - path: /Folder/DC
      clusters:
        - name: c
          ha: {enabled: true}
          hosts:
            - names: esx-01
              driver: {component: D, version: "1"}
              alarms: [{name: hot, status: red}]
              fields: {note: x}
              gpus: [{model: h100-nvl-94, mode: {vgpu: {size: mixed}}}, {model: t4, numa: [1], mode: {passthrough: {label: x}}}]
          vms:
            - {name: a, host: esx-01, power: on, vcls: true, devices: [{vgpu: nvidia_h100l-47c}, {dynamicDirectPath: x}]}
            - {name: b, host: esx-01, devices: [{directPath: "0000:97:00.0"}]}
"#;

fn check(declared: Option<&str>, value: &Value, at: &str) {
    match value {
        Value::Data(kind, fields) => {
            assert!(shape().knows(kind), "{at}: no type {kind}");
            if let Some(declared) = declared {
                assert!(shape().is_a(kind, declared), "{at}: {kind} is no {declared}");
            }
            for (name, value) in fields {
                let field = shape().field(kind, name).unwrap_or_else(|| panic!("{at}: {kind} has no {name}"));
                let declared = match field.kind {
                    super::super::shape::Kind::Data(of) => Some(of),
                    _ => None,
                };
                assert_eq!(field.many, matches!(value, Value::List(_)), "{at}.{name}: list or not");
                check(declared, value, &format!("{at}.{name}"));
            }
            let missing = shape()
                .fields(kind)
                .into_iter()
                .find(|field| !field.optional && !field.many && !fields.iter().any(|(name, _)| *name == field.name));
            // What clients of ours and pyVmomi do not ask for may be left out, but never an identity.
            assert!(!missing.is_some_and(|field| ["key", "id", "name"].contains(&field.name)), "{at}: {missing:?}");
        }
        Value::List(items) => items.iter().for_each(|item| check(declared, item, at)),
        Value::Text(_) | Value::Any(..) | Value::Ref(..) | Value::Raw(_) => {}
    }
}

#[test]
fn every_value_fits_the_type_tables() {
    let world = World::parse("all", WORLD.as_bytes()).unwrap();
    let session = Session::nobody();
    let mut seen = 0;
    world.look(|moment| {
        let host = *moment.state.hosts.keys().next().unwrap();
        moment.enter_maintenance(host, "x", 0, crate::sim::behaviour::TaskFate::default()).unwrap();
    });
    world.look(|moment| {
        let from = Source { state: moment.state, spec: moment.spec, session: Some(&session) };
        let mut objects =
            vec![Object::ServiceInstance, Object::CustomFieldsManager, Object::OptionManager, Object::TaskManager];
        objects.extend(from.state.folders.keys().map(|id| Object::Folder(*id)));
        objects.extend(from.state.datacenters.keys().map(|id| Object::Datacenter(*id)));
        objects.extend(from.state.clusters.keys().flat_map(|id| [Object::Cluster(*id), Object::ResourcePool(*id)]));
        objects.extend(from.state.hosts.keys().flat_map(|id| {
            let managers = [Object::GraphicsManager(*id), Object::PassthruSystem(*id), Object::ImageManager(*id)];
            [Object::Host(*id), Object::ServiceSystem(*id)].into_iter().chain(managers)
        }));
        objects.extend(from.state.vms.keys().map(|id| Object::Vm(*id)));
        objects.extend(from.state.datastores.keys().map(|id| Object::Datastore(*id)));
        objects.extend(from.state.tasks.keys().map(|id| Object::Task(*id)));
        for object in objects {
            let kind = object.kind(from.state);
            for field in shape().fields(kind) {
                if let Some(value) = property(from, &object, field.name, false) {
                    let declared = match field.kind {
                        super::super::shape::Kind::Data(of) => Some(of),
                        _ => None,
                    };
                    assert_eq!(field.many, matches!(value, Value::List(_)), "{kind}.{}: list or not", field.name);
                    check(declared, &value, &format!("{kind}.{}", field.name));
                    seen += 1;
                }
            }
        }
    });
    assert!(seen > 100, "only {seen} properties");
}
