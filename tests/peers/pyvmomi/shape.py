"""Prints src/sim/soap/shape.txt from pyVmomi's type tables.

The simulator must know which property a server of some version has, in which order the fields of
a type are sent and what a request may hold. VMware's own tables say so; nobody should type them.

    target/peers/pyvmomi/bin/python tests/peers/pyvmomi/shape.py > src/sim/soap/shape.txt
"""

from pyVmomi import Version, VmomiSupport as V, vim, vmodl

MANAGED = """
ServiceInstance SessionManager ViewManager View ManagedObjectView ContainerView ListView PropertyCollector PropertyFilter
ManagedEntity ExtensibleManagedObject Folder Datacenter ComputeResource ClusterComputeResource HostSystem VirtualMachine
Datastore Network ResourcePool Task TaskManager HistoryCollector TaskHistoryCollector EventManager AlarmManager Alarm
CustomFieldsManager OptionManager HostGraphicsManager HostPciPassthruSystem HostImageConfigManager HostServiceSystem
EnvironmentBrowser SearchIndex
""".split()

DATA = """
ServiceContent AboutInfo UserSession
HostListSummary HostHardwareSummary HostRuntimeInfo HostConfigSummary HostConfigInfo HostNetworkInfo PhysicalNic
PhysicalNicLinkInfo HostCapability HostConfigManager HostHardwareInfo HostSystemInfo HostNumaInfo HostNumaNode
HostPciDevice HostPciPassthruInfo HostSriovInfo HostGraphicsInfo HostGraphicsConfig HostGraphicsConfigDeviceType
HostSharedGpuCapabilities HostCpuInfo ClusterDasFdmHostState HostAssignableHardwareConfig
HostPciPassthruConfig HostSriovConfig HostMaintenanceSpec VsanHostDecommissionMode HostEvacModeSpec
HostDateTimeInfo HostListSummaryQuickStats HostServiceInfo HostService HostServiceSourcePackage
VirtualMachineConfigInfo VirtualMachineRuntimeInfo VirtualMachineSummary VirtualMachineConfigSummary VirtualHardware
VirtualDevice VirtualPCIPassthrough VirtualDeviceBackingInfo VirtualDeviceDeviceBackingInfo
VirtualPCIPassthroughDeviceBackingInfo VirtualPCIPassthroughVmiopBackingInfo VirtualPCIPassthroughDynamicBackingInfo
VirtualPCIPassthroughDvxBackingInfo VirtualPCIPassthroughAllowedDevice ManagedByInfo OptionValue Description
VirtualPCIPassthroughPluginBackingInfo VirtualDevicePciBusSlotInfo ResourceAllocationInfo SharesInfo ResourceConfigSpec GuestInfo
ComputeResourceSummary ClusterComputeResourceSummary ComputeResourceConfigInfo ClusterConfigInfoEx ClusterDasConfigInfo
ClusterDrsConfigInfo ClusterDrsVmConfigInfo ClusterDasAdmissionControlPolicy
ClusterFailoverHostAdmissionControlPolicy ClusterFailoverLevelAdmissionControlPolicy
ClusterFailoverResourcesAdmissionControlPolicy ClusterDrsFaults ClusterDrsFaultsFaultsByVm
ClusterRecommendation ClusterAction ClusterMigrationAction ClusterDrsMigration DatacenterConfigInfo DatastoreSummary NetworkSummary ResourcePoolSummary
TaskInfo TaskReason TaskReasonUser TaskReasonSystem LocalizedMethodFault MethodFault LocalizableMessage KeyAnyValue
TaskFilterSpec TaskFilterSpecByEntity TaskFilterSpecByTime TaskFilterSpecByUsername
EventFilterSpec EventFilterSpecByEntity EventFilterSpecByTime EventFilterSpecByUsername Event EventEx
GeneralUserEvent GeneralEvent HostEvent EnteringMaintenanceModeEvent EnteredMaintenanceModeEvent ExitMaintenanceModeEvent
HostConnectionLostEvent HostConnectedEvent HostDisconnectedEvent VmEvent VmPoweredOnEvent VmPoweredOffEvent VmMigratedEvent
VmFailedMigrateEvent NoMaintenanceModeDrsRecommendationForVM VmEventArgument EntityEventArgument HostEventArgument ManagedEntityEventArgument
AlarmState AlarmInfo AlarmSpec CustomFieldDef CustomFieldValue CustomFieldStringValue PrivilegePolicyDef
SoftwarePackage SoftwarePackageCapability Relation VirtualMachineVgpuDeviceInfo VirtualMachineVgpuProfileInfo VirtualMachineTargetInfo
PropertyFilterSpec PropertySpec ObjectSpec SelectionSpec TraversalSpec RetrieveOptions RetrieveResult ObjectContent
MissingProperty WaitOptions UpdateSet PropertyFilterUpdate ObjectUpdate PropertyChange DynamicProperty MissingObject
VirtualMachineDeviceRuntimeInfo
RuntimeFault SecurityError NoPermission NotAuthenticated VimFault InvalidState InvalidLogin Timedout TaskInProgress
InvalidProperty InvalidArgument InvalidRequest InvalidName DuplicateName NotSupported ManagedObjectNotFound NotFound
HostConfigFault PlatformConfigFault HostConnectFault HostCommunication HostNotConnected HostNotReachable RequestCanceled
SystemError InvalidCollectorVersion InvalidType ResourceInUse NotEnoughLicenses NotImplemented MethodNotFound
GenericVmConfigFault InvalidPowerState InvalidHostState HostPowerOpFailed ConcurrentAccess UnexpectedFault
RestrictedVersion InvalidHostConnectionState
InsufficientResourcesFault InsufficientGraphicsResourcesFault InsufficientMemoryResourcesFault NoCompatibleHost
DrsDisabledOnVm DrsVmotionIncompatibleFault InsufficientFailoverResourcesFault GenericDrsFault DeviceNotSupported
MigrationFeatureNotSupported ToolsUnavailable
VmConfigFault InvalidVmConfig InvalidDeviceSpec VirtualMachineConfigSpec VirtualDeviceConfigSpec
VirtualMachineRelocateSpec VirtualMachineVMotionStunTimeInfo VirtualMachineGuestSummary
""".split()

METHODS = """
RetrieveServiceContent CurrentTime Login Logout SessionIsActive CreateContainerView CreateListView ModifyListView ResetListView
DestroyView
RetrievePropertiesEx ContinueRetrievePropertiesEx CancelRetrievePropertiesEx RetrieveProperties CreateFilter
DestroyPropertyFilter CreatePropertyCollector DestroyPropertyCollector
WaitForUpdatesEx WaitForUpdates CheckForUpdates CancelWaitForUpdates
EnterMaintenanceMode_Task ExitMaintenanceMode_Task RebootHost_Task ReconnectHost_Task
UpdateGraphicsConfig RefreshGraphicsManager RetrieveVgpuDeviceInfo RetrieveVgpuProfileInfo UpdatePassthruConfig Refresh
fetchSoftwarePackages CancelTask CreateCollectorForTasks ReadNextTasks DestroyCollector
PowerOnVM_Task PowerOffVM_Task ShutdownGuest RelocateVM_Task ReconfigVM_Task
AddCustomFieldDef RemoveCustomFieldDef SetField QueryOptions UpdateOptions LogUserEvent QueryEvents
StartService StopService RestartService UpdateServicePolicy RefreshServices FindByInventoryPath
""".split()

STRINGS = {"TypeName", "MethodName", "PropertyPath"}
PRIMITIVE = {"boolean", "byte", "short", "int", "long", "float", "double", "string", "dateTime", "anyURI", "base64Binary", "anyType"}


def kind(cls):
    """The type as one word: xsd name, >Managed, =Enum or Data; and whether it is a list."""
    many = issubclass(cls, V.Array)
    if many:
        cls = cls.Item
    name = V.GetWsdlName(cls)
    if issubclass(cls, V.ManagedObject):
        return ">" + name, many
    if name in STRINGS:
        return "string", many
    if name in PRIMITIVE:
        return name, many
    if issubclass(cls, str):
        # Names of types and methods, URIs and enumerations are strings; only the last have a name.
        return ("=" + name if issubclass(cls, V.Enum) else "string"), many
    return name, many


def since(version):
    return V.versionIdMap.get(version) or "2.0"


def field(info, name=None):
    word, many = kind(info.type)
    marks = ("?" if info.flags & V.F_OPTIONAL else "") + ("[]" if many else "")
    return f" {name or info.name}{marks} {word} {since(info.version)}"


def base(cls):
    for parent in cls.__mro__[1:]:
        if parent in (V.DataObject, V.ManagedObject, object) or parent.__name__ in ("vmodl.DynamicData", "vmodl.ManagedObject"):
            return "-"
        if issubclass(parent, (V.DataObject, V.ManagedObject, Exception)):
            return V.GetWsdlName(parent)
    return "-"


def main():
    print(f"# Types of vim25 as pyVmomi 9.1.1.0 lists them (made by tests/peers/pyvmomi/shape.py): fields in the order of the")
    print("# wire, `?` optional, `[]` list, the type (xsd name, >managed, =enumeration, else data) and the version that has it.")
    for name in MANAGED + DATA:
        try:
            cls = V.GetWsdlType("urn:vim25", name)
        except Exception:
            continue
        mark = "managed" if issubclass(cls, V.ManagedObject) else "data"
        own = [p for p in cls._propInfo.values()]
        print(f"{mark} {name} {base(cls)}")
        for info in own:
            info = info.__get__(None) if hasattr(info, "__get__") and not hasattr(info, "name") else info
            if info.name in ("dynamicType", "dynamicProperty"):
                continue
            print(field(info))
        if mark == "managed":
            for info in cls._methodInfo.values():
                if info.wsdlName not in METHODS:
                    continue
                print(f"method {info.wsdlName} {since(info.version)}")
                for param in info.params:
                    print(field(param))


main()
