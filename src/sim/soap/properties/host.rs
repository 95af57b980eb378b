//! `HostSystem`: everything but its `config`.

use super::super::objects::{Object, connection};
use super::super::value::{Data, Value, text};
use super::Source;
use super::entity::references;
use super::host_config::{self, View};
use crate::sim::document::{Connection, HaInMaintenance, StartPower};
use crate::sim::seats;
use crate::sim::world::state::{Host, State};

/// `bootTime` drifts by fractions of a second between reads, since the host's clock is set by NTP
/// (vsphere-gpu §3.5): the drift follows the world's seconds.
fn boot_time(state: &State, host: &Host) -> jiff::Timestamp {
    let drift = state.time.as_second().rem_euclid(7) * 113;
    host.boot_seen.checked_add(jiff::SignedDuration::from_millis(drift)).unwrap_or(host.boot_seen)
}

pub(super) fn property(from: Source<'_>, id: u32, name: &str, stale: bool) -> Option<Value> {
    let state = from.state;
    let host = state.hosts.get(&id)?;
    let view = View::of(state, id, host, stale);
    match name {
        "runtime" => Some(runtime(from, host, &view)),
        "summary" => Some(summary(from, id, host, &view)),
        "hardware" => Some(hardware(host, &view)),
        "config" => Some(host_config::config(id, host, &view)),
        "capability" => Some(capability(host)),
        "configManager" => Some(config_manager(id)),
        "vm" => {
            let vms = state.vms.iter().filter(|(_, vm)| vm.host == id);
            Some(references(state, vms.map(|(id, _)| Object::Vm(*id))))
        }
        "datastore" => {
            let stores = host.datastores.iter().filter(|_| host.storage);
            Some(references(state, stores.map(|id| Object::Datastore(*id))))
        }
        "network" => Some(Value::List(Vec::new())),
        _ => None,
    }
}

fn runtime(from: Source<'_>, host: &Host, view: &View<'_>) -> Value {
    let power = match (host.connection, host.power) {
        (_, StartPower::Standby) => "standBy",
        (Connection::Connected, StartPower::On) => "poweredOn",
        // vCenter does not know.
        (_, StartPower::On) => "unknown",
    };
    // The API reference: unset if HA is off, in maintenance or standby, and if vCenter disconnected the
    // host.
    let at_rest = view.maintenance && from.spec.readings.ha_in_maintenance == HaInMaintenance::Unset
        || host.connection == Connection::Disconnected
        || host.power == StartPower::Standby;
    let agent = host.ha_agent.as_ref().filter(|_| !at_rest);
    let agent = agent.map(|agent| Data::of("ClusterDasFdmHostState").text("state", agent).done());
    Data::of("HostRuntimeInfo")
        .text("connectionState", connection(host))
        .text("powerState", power)
        .text("standbyMode", if host.power == StartPower::Standby { "in" } else { "none" })
        .text("inMaintenanceMode", view.maintenance)
        .text("inQuarantineMode", false)
        .text("bootTime", boot_time(from.state, host))
        .some("dasHostState", agent)
        .text("cryptoState", &host.crypto)
        .done()
}

fn summary(from: Source<'_>, id: u32, host: &Host, view: &View<'_>) -> Value {
    let hardware = Data::of("HostHardwareSummary")
        .text("vendor", "Poolwright")
        .text("model", "Simulated GPU server")
        .text("uuid", &host.uuid)
        .text("memorySize", u64::from(host.memory_gib) << 30)
        .text("cpuModel", "Simulated CPU")
        .text("cpuMhz", 2000)
        .text("numCpuPkgs", 2)
        .text("numCpuCores", 64)
        .text("numCpuThreads", 128)
        .text("numNics", host.uplinks)
        .text("numHBAs", 1)
        .done();
    let config = Data::of("HostConfigSummary")
        .text("name", &host.name)
        .text("port", 443)
        .set("product", host_config::product(host))
        .text("vmotionEnabled", true)
        .text("faultToleranceEnabled", false)
        .done();
    let memory = u64::from(seats::reserved(from.state, id)) * 1024; // MB, of what VMs reserve
    let uptime = from.state.time.duration_since(host.boot_seen).as_secs();
    Data::of("HostListSummary")
        .reference("host", "HostSystem", format!("host-{id}"))
        .set("hardware", hardware)
        .set("runtime", runtime(from, host, view))
        .set("config", config)
        .set(
            "quickStats",
            Data::of("HostListSummaryQuickStats").text("overallMemoryUsage", memory).text("uptime", uptime).done(),
        )
        .text("overallStatus", if host.alarms.iter().any(|alarm| alarm.status == "red") { "red" } else { "green" })
        // Not known to be set by graphics and passthrough changes (§3.1 [U]): here it never is, so that
        // nobody relies on it.
        .text("rebootRequired", false)
        .text("managementServerIp", &from.spec.vcenter.address)
        .done()
}

fn hardware(host: &Host, view: &View<'_>) -> Value {
    let system = Data::of("HostSystemInfo")
        .text("vendor", "Poolwright")
        .text("model", "Simulated GPU server")
        .text("uuid", &host.uuid)
        .done();
    let most = view.functions.iter().map(|function| function.numa).max().unwrap_or(0).max(1);
    let node = |id: u32| {
        let devices = view.functions.iter().filter(|function| function.numa == id);
        Data::of("HostNumaNode")
            .text("typeId", id)
            .set("cpuID", Value::List((id * 32..id * 32 + 32).map(text).collect()))
            .text("memoryRangeBegin", 0)
            .text("memoryRangeLength", (u64::from(host.memory_gib) << 30) / u64::from(most + 1))
            .set("pciId", Value::List(devices.map(|function| text(function.address)).collect()))
            .done()
    };
    let numa = Data::of("HostNumaInfo")
        .text("type", "NUMA")
        .text("numNodes", most + 1)
        .set("numaNode", Value::List((0..=most).map(node).collect()))
        .done();
    Data::of("HostHardwareInfo")
        .set("systemInfo", system)
        .text("memorySize", u64::from(host.memory_gib) << 30)
        .set("numaInfo", numa)
        .set("pciDevice", view.pci_devices())
        .done()
}

fn capability(host: &Host) -> Value {
    Data::of("HostCapability")
        .text("rebootSupported", true)
        .text("shutdownSupported", true)
        .text("maintenanceModeSupported", true)
        .text("assignableHardwareSupported", true)
        .text("deviceRebindWithoutRebootSupported", host.rebind_supported)
        .text("assignHwPciConfigSupported", host.label_supported)
        .done()
}

/// The number is that of the host, and nobody may rely on it (§1.1).
fn config_manager(id: u32) -> Value {
    let system = |data: Data, name, kind, stem: &str| data.reference(name, kind, format!("{stem}-{id}"));
    let data = Data::of("HostConfigManager");
    let data = system(data, "serviceSystem", "HostServiceSystem", "serviceSystem");
    let data = system(data, "imageConfigManager", "HostImageConfigManager", "imageConfigManager");
    let data = system(data, "pciPassthruSystem", "HostPciPassthruSystem", "pciPassthruSystem");
    system(data, "graphicsManager", "HostGraphicsManager", "graphicsManager").done()
}

/// `fetchSoftwarePackages`: what every ESXi has, and the NVIDIA driver if it is installed.
pub(in super::super) fn software(host: &Host) -> Vec<Value> {
    let package = |name: &str, version: &str, vendor: &str| {
        Data::of("SoftwarePackage")
            .text("name", name)
            .text("version", version)
            .text("type", "vib")
            .text("vendor", vendor)
            .text("acceptanceLevel", "partner_supported")
            .text("summary", name)
            .text("description", name)
            .text("creationDate", "2025-09-01T00:00:00Z")
            .text("maintenanceModeRequired", true)
            .text("hardwarePlatformsRequired", "")
            .set("capability", Data::of("SoftwarePackageCapability").text("liveInstallAllowed", false).done())
            .done()
    };
    let base =
        ["esx-base", "esx-update", "vsan"].map(|name| package(name, &format!("{}-0.0.1", host.version), "VMware"));
    let driver = host
        .driver
        .iter()
        .map(|driver| package(&driver.component, &format!("{}-1OEM.800.1.0.20613240", driver.version), "NVIDIA"));
    base.into_iter().chain(driver).collect()
}
