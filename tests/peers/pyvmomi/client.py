"""What an engineer would do with pyVmomi alone, against the simulator on a real port.

    client.py PORT CERTIFICATE walk
    client.py PORT CERTIFICATE convert HOST
    client.py PORT CERTIFICATE faults HOST
    client.py PORT CERTIFICATE vms HOST

Prints what it saw as JSON; ends with a traceback and a status if anything is not as pyVmomi expects.
"""

import json
import ssl
import sys
import time

from pyVim.connect import Disconnect, SmartConnect
from pyVim.task import WaitForTask
from pyVmomi import vim, vmodl

USER, PASSWORD = "pw@vsphere.local", "lab"


def connect(port, certificate, password=PASSWORD):
    context = ssl.create_default_context(cafile=certificate)
    return SmartConnect(host="127.0.0.1", port=port, user=USER, pwd=password, sslContext=context)


def collect(content, kind, paths):
    """All objects of a type with these properties, by a container view and the property collector."""
    view = content.viewManager.CreateContainerView(content.rootFolder, [kind], True)
    collector = content.propertyCollector
    spec = vmodl.query.PropertyCollector.FilterSpec(
        objectSet=[
            vmodl.query.PropertyCollector.ObjectSpec(
                obj=view,
                skip=True,
                selectSet=[
                    vmodl.query.PropertyCollector.TraversalSpec(
                        name="view", type=vim.view.ContainerView, path="view", skip=False
                    )
                ],
            )
        ],
        propSet=[vmodl.query.PropertyCollector.PropertySpec(type=kind, all=False, pathSet=paths)],
    )
    found = {}
    page = collector.RetrievePropertiesEx([spec], vmodl.query.PropertyCollector.RetrieveOptions(maxObjects=1))
    pages = 1
    while page is not None:
        for each in page.objects:
            found[each.obj] = {change.name: change.val for change in each.propSet}
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None
        pages += page is not None
    view.Destroy()
    return found, pages


def folders(entity, path=""):
    """The inventory, walked object by object."""
    here = f"{path}/{entity.name}"
    yield here
    children = []
    if isinstance(entity, vim.Folder):
        children = entity.childEntity
    elif isinstance(entity, vim.Datacenter):
        children = [entity.hostFolder, entity.vmFolder, entity.datastoreFolder]
    elif isinstance(entity, vim.ComputeResource):
        children = entity.host
    for child in children:
        yield from folders(child, here)


def gpus(host):
    """Address -> configured type, active type, active mode, passthrough enabled and active."""
    config, info = host.config.graphicsConfig, host.config.graphicsInfo or []
    types = {entry.deviceId: entry.graphicsType for entry in config.deviceType or []}
    passed = {entry.id: entry for entry in host.config.pciPassthruInfo}
    return {
        gpu.pciId: [
            types.get(gpu.pciId),
            gpu.graphicsType,
            gpu.vgpuMode,
            passed[gpu.pciId].passthruEnabled,
            passed[gpu.pciId].passthruActive,
        ]
        for gpu in info
    }


def walk(service):
    content = service.RetrieveContent()
    hosts, pages = collect(
        content,
        vim.HostSystem,
        ["name", "runtime.connectionState", "config.graphicsInfo", "hardware.pciDevice", "hardware.numaInfo", "summary"],
    )
    vms, _ = collect(content, vim.VirtualMachine, ["name", "runtime.powerState", "config.hardware.device"])
    seen = {}
    for host, values in hosts.items():
        devices = values["hardware.pciDevice"]
        seen[values["name"]] = {
            "state": values["runtime.connectionState"],
            "nvidia": [device.id for device in devices if device.vendorId == 0x10DE],
            "intel": sum(device.vendorId == 0x8086 - 0x10000 for device in devices),
            "sriov": sum(isinstance(info, vim.host.SriovInfo) for info in host.config.pciPassthruInfo),
            "gpus": gpus(host),
            "numa": [node.typeId for node in values["hardware.numaInfo"].numaNode],
            "maintenance": values["summary"].runtime.inMaintenanceMode,
        }
    return {
        "version": content.about.version,
        "user": content.sessionManager.currentSession.userName,
        "paths": list(folders(content.rootFolder)),
        "pages": pages,
        "hosts": seen,
        "vms": {
            values["name"]: [type(device.backing).__name__ for device in values["config.hardware.device"]]
            for values in vms.values()
        },
    }


def wait_for(what, condition, seconds=60):
    """Waits for a state that comes by itself."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.05)


def reboot(host):
    before = host.runtime.bootTime
    WaitForTask(host.RebootHost_Task(force=False))
    wait_for(
        "the reboot",
        lambda: host.runtime.connectionState == "connected" and (host.runtime.bootTime - before).total_seconds() > 60,
    )


def convert(service, name):
    """Passthrough to time-sliced vGPU, the order of the reference's section 3.3-1."""
    content = service.RetrieveContent()
    hosts, _ = collect(content, vim.HostSystem, ["name"])
    host = next(host for host, values in hosts.items() if values["name"] == name)
    addresses = sorted(gpus(host))
    steps = [["found", gpus(host)]]
    WaitForTask(host.EnterMaintenanceMode_Task(timeout=600, evacuatePoweredOffVms=False))
    assert host.runtime.inMaintenanceMode
    passthru, graphics = host.configManager.pciPassthruSystem, host.configManager.graphicsManager
    passthru.UpdatePassthruConfig(
        [vim.host.PciPassthruConfig(id=address, passthruEnabled=False, hardwareLabel="") for address in addresses]
    )

    def share():
        graphics.UpdateGraphicsConfig(
            vim.host.GraphicsConfig(
                hostDefaultGraphicsType="sharedDirect",
                sharedPassthruAssignmentPolicy="performance",
                deviceType=[
                    vim.host.GraphicsConfig.DeviceType(
                        deviceId=address, graphicsType="sharedDirect", vgpuMode="mixedSize"
                    )
                    for address in addresses
                ],
            )
        )

    share()
    steps.append(["configured", gpus(host)])
    reboot(host)
    wait_for("fresh PCI state", lambda: not any(gpu[4] for gpu in gpus(host).values()))
    steps.append(["rebooted", gpus(host)])
    # While they were passed through the entries may have been ignored: sent again, they hold.
    share()
    steps.append(["sent again", gpus(host)])
    WaitForTask(host.ExitMaintenanceMode_Task(timeout=0))
    assert not host.runtime.inMaintenanceMode
    fields = content.customFieldsManager
    field = fields.AddCustomFieldDef("converted.by", vim.HostSystem)
    fields.SetField(host, field.key, "pyVmomi")
    values = {value.key: value.value for value in host.customValue}
    return {"steps": steps, "types": list(host.config.sharedPassthruGpuTypes), "field": values[field.key]}


def faults(service, port, certificate, name):
    content = service.RetrieveContent()
    hosts, _ = collect(content, vim.HostSystem, ["name"])
    host = next(host for host, values in hosts.items() if values["name"] == name)
    seen = []
    attempts = {
        "exit": lambda: host.ExitMaintenanceMode_Task(0),
        "reboot": lambda: host.RebootHost_Task(False),
        "option": lambda: content.setting.QueryOptions("no.such.key"),
        "property": lambda: collect(content, vim.HostSystem, ["config.nonsense"]),
        "login": lambda: connect(port, certificate, "wrong"),
        "in use": lambda: host.configManager.pciPassthruSystem.UpdatePassthruConfig(
            [vim.host.PciPassthruConfig(id="0000:00:00.0", passthruEnabled=True)]
        ),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
            seen.append([what, None])
        except vmodl.MethodFault as fault:
            seen.append([what, type(fault).__name__])
    # A task that fails says so in its info, and pyVim raises it.
    task = host.EnterMaintenanceMode_Task(600)
    task.CancelTask()
    try:
        WaitForTask(task)
        seen.append(["task", None])
    except vmodl.MethodFault as fault:
        seen.append(["task", type(fault).__name__])
    return {"faults": seen}


def named(content, kind, name):
    found, _ = collect(content, kind, ["name"])
    return next(each for each, values in found.items() if values["name"] == name)


def failure(act):
    """The type of the fault with which a call or its task ends, and its sentence."""
    try:
        WaitForTask(act())
        return None
    except vmodl.MethodFault as fault:
        return [type(fault).__name__, fault.msg]


def vms(service, name):
    """Powers VMs on where they are to run, and empties the host again."""
    content = service.RetrieveContent()
    host = named(content, vim.HostSystem, name)
    pinned, passed, late = (named(content, vim.VirtualMachine, vm) for vm in ("pinned", "passed", "late"))
    cluster = host.parent
    seen = {}
    before = passed.config.hardware.device[0].backing.assignedId
    for vm in (pinned, passed):
        WaitForTask(vm.PowerOnVM_Task(host=host))
        assert vm.runtime.host == host and vm.runtime.powerState == "poweredOn", vm.name
    device = pinned.config.hardware.device[0]
    seen["device"] = [device.backing.vgpu, device.backing.migrateSupported, device.deviceInfo.label]
    seen["assigned"] = [before, passed.config.hardware.device[0].backing.assignedId]
    seen["users"] = [[vm.name for vm in gpu.vm] for gpu in host.config.graphicsInfo]
    seen["profiles"] = len(host.configManager.graphicsManager.RetrieveVgpuProfileInfo())
    seen["devices"] = [
        [each.deviceVendorId & 0xFFFF, each.timeSlicedCapable]
        for each in host.configManager.graphicsManager.RetrieveVgpuDeviceInfo()
    ]
    drs = cluster.configurationEx.drsConfig
    seen["drs"] = [drs.enabled, drs.defaultVmBehavior, {option.key: option.value for option in drs.option}]
    seen["memory"] = [
        pinned.config.hardware.memoryMB,
        pinned.config.memoryAllocation.reservation,
        {option.key: option.value for option in passed.config.extraConfig}["pciPassthru.use64bitMMIO"],
    ]
    closing = host.EnterMaintenanceMode_Task(timeout=0, evacuatePoweredOffVms=False)
    wait_for("reasons of DRS", lambda: cluster.drsFault and closing.info.progress == 2)
    seen["stay"] = {
        by_vm.vm.name: [type(fault).__name__ for fault in by_vm.fault]
        for run in cluster.drsFault
        for by_vm in run.faultsByVm
    }
    seen["closing"] = [failure(lambda: late.PowerOnVM_Task(host=host)), host.runtime.inMaintenanceMode]
    for vm in (pinned, passed):
        vm.ShutdownGuest()
    WaitForTask(closing)
    seen["closed"] = [host.runtime.inMaintenanceMode, [vm.runtime.powerState for vm in (pinned, passed)], cluster.drsFault]
    return seen


def refit(service, name):
    """Takes a VM's only device away and gives it two of another kind in one call (case A11)."""
    content = service.RetrieveContent()
    host = named(content, vim.HostSystem, name)
    machine = named(content, vim.VirtualMachine, "pinned")

    def devices():
        return [
            [each.key, each.controllerKey, each.unitNumber, each.backing.vgpu] for each in machine.config.hardware.device
        ]

    def add(key, profile):
        backing = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu=profile)
        device = vim.vm.device.VirtualPCIPassthrough(key=key, backing=backing)
        return vim.vm.device.VirtualDeviceSpec(operation="add", device=device)

    def remove(key):
        device = vim.vm.device.VirtualPCIPassthrough(key=key)
        return vim.vm.device.VirtualDeviceSpec(operation="remove", device=device)

    def reconfigure(*changes, version=None):
        spec = vim.vm.ConfigSpec(deviceChange=list(changes), changeVersion=version)
        return lambda: machine.ReconfigVM_Task(spec=spec)

    seen = {"before": devices()}
    version = machine.config.changeVersion
    seen["doubled"] = failure(reconfigure(add(-101, "nvidia_h100l-23c"), add(-101, "nvidia_h100l-23c")))
    seen["gone"] = failure(reconfigure(remove(13_007)))
    seen["unchanged"] = devices() == seen["before"]
    two = [add(key, "nvidia_h100l-23c") for key in (-101, -102)]
    WaitForTask(reconfigure(remove(13_000), *two, version=version)())
    seen["after"] = devices()
    seen["stale"] = failure(reconfigure(remove(13_000), version=version))
    WaitForTask(machine.PowerOnVM_Task(host=host))
    seen["runs"] = [[user.name for user in gpu.vm] for gpu in host.config.graphicsInfo]
    seen["powered on"] = failure(reconfigure(remove(13_000)))
    return seen


def services(service, name):
    """Starts the SSH service of a host, lets it start with the host, and stops it again."""
    host = named(service.RetrieveContent(), vim.HostSystem, name)
    system = host.configManager.serviceSystem

    def ssh():
        found = next(each for each in host.config.service.service if each.key == "TSM-SSH")
        listed = next(each for each in system.serviceInfo.service if each.key == "TSM-SSH")
        assert (found.running, found.policy) == (listed.running, listed.policy)
        return [found.label, found.running, found.policy]

    def refused(act):
        try:
            act()
        except vmodl.MethodFault as fault:
            return type(fault).__name__

    steps = [ssh()]
    system.StartService(id="TSM-SSH")
    steps.append(ssh())
    system.UpdateServicePolicy(id="TSM-SSH", policy="on")
    steps.append(ssh())
    system.StopService(id="TSM-SSH")
    steps.append(ssh())
    again = refused(lambda: system.StopService(id="TSM-SSH"))
    unknown = refused(lambda: system.StartService(id="nobody"))
    return {"steps": steps, "refused": [again, unknown], "lockdown": host.config.lockdownMode}


def main():
    port, certificate, what = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    service = connect(port, certificate)
    try:
        if what == "walk":
            result = walk(service)
        elif what == "convert":
            result = convert(service, sys.argv[4])
        elif what == "services":
            result = services(service, sys.argv[4])
        elif what == "refit":
            result = refit(service, sys.argv[4])
        elif what == "vms":
            result = vms(service, sys.argv[4])
        else:
            result = faults(service, port, certificate, sys.argv[4])
    finally:
        Disconnect(service)
    json.dump(result, sys.stdout)


main()
