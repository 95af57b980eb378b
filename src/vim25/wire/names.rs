//! The names of vim25 that both sides of the wire use. A name that is misspelt here is misspelt once.

/// Where SOAP requests go.
pub const SDK_PATH: &str = "/sdk";
/// Where the list of versions is; it needs no login.
pub const VERSIONS_PATH: &str = "/sdk/vimServiceVersions.xml";
/// The session cookie. Its value has quotes, which are part of it.
pub const SESSION_COOKIE: &str = "vmware_soap_session";
/// Media type of requests and answers.
pub const CONTENT_TYPE: &str = "text/xml; charset=UTF-8";

/// Methods, as the element of the request.
pub mod method {
    /// `ServiceInstance.RetrieveServiceContent`.
    pub const RETRIEVE_SERVICE_CONTENT: &str = "RetrieveServiceContent";
    /// `ServiceInstance.CurrentTime`.
    pub const CURRENT_TIME: &str = "CurrentTime";
    /// `SessionManager.Login`.
    pub const LOGIN: &str = "Login";
    /// `SessionManager.Logout`.
    pub const LOGOUT: &str = "Logout";
    /// `ViewManager.CreateContainerView`.
    pub const CREATE_CONTAINER_VIEW: &str = "CreateContainerView";
    /// `View.DestroyView`.
    pub const DESTROY_VIEW: &str = "DestroyView";
    /// `PropertyCollector.RetrievePropertiesEx`.
    pub const RETRIEVE_PROPERTIES_EX: &str = "RetrievePropertiesEx";
    /// `PropertyCollector.ContinueRetrievePropertiesEx`.
    pub const CONTINUE_RETRIEVE_PROPERTIES_EX: &str = "ContinueRetrievePropertiesEx";
    /// `PropertyCollector.CancelRetrievePropertiesEx`.
    pub const CANCEL_RETRIEVE_PROPERTIES_EX: &str = "CancelRetrievePropertiesEx";
    /// `PropertyCollector.CreateFilter`.
    pub const CREATE_FILTER: &str = "CreateFilter";
    /// `PropertyFilter.DestroyPropertyFilter`.
    pub const DESTROY_PROPERTY_FILTER: &str = "DestroyPropertyFilter";
    /// `PropertyCollector.WaitForUpdatesEx`.
    pub const WAIT_FOR_UPDATES_EX: &str = "WaitForUpdatesEx";
    /// `PropertyCollector.WaitForUpdates`: the older form, which pyVim uses.
    pub const WAIT_FOR_UPDATES: &str = "WaitForUpdates";
    /// `PropertyCollector.CancelWaitForUpdates`.
    pub const CANCEL_WAIT_FOR_UPDATES: &str = "CancelWaitForUpdates";
    /// One property of one object: how pyVmomi reads.
    pub const FETCH: &str = "Fetch";
    /// `HostSystem.EnterMaintenanceMode_Task`.
    pub const ENTER_MAINTENANCE: &str = "EnterMaintenanceMode_Task";
    /// `HostSystem.ExitMaintenanceMode_Task`.
    pub const EXIT_MAINTENANCE: &str = "ExitMaintenanceMode_Task";
    /// `HostSystem.RebootHost_Task`.
    pub const REBOOT_HOST: &str = "RebootHost_Task";
    /// `HostGraphicsManager.UpdateGraphicsConfig`.
    pub const UPDATE_GRAPHICS_CONFIG: &str = "UpdateGraphicsConfig";
    /// `HostGraphicsManager.RefreshGraphicsManager`.
    pub const REFRESH_GRAPHICS_MANAGER: &str = "RefreshGraphicsManager";
    /// `HostPciPassthruSystem.UpdatePassthruConfig`.
    pub const UPDATE_PASSTHRU_CONFIG: &str = "UpdatePassthruConfig";
    /// `HostPciPassthruSystem.Refresh`.
    pub const REFRESH: &str = "Refresh";
    /// `HostImageConfigManager.fetchSoftwarePackages`, in lower case on the wire.
    pub const FETCH_SOFTWARE_PACKAGES: &str = "fetchSoftwarePackages";
    /// `CustomFieldsManager.AddCustomFieldDef`.
    pub const ADD_CUSTOM_FIELD_DEF: &str = "AddCustomFieldDef";
    /// `CustomFieldsManager.SetField`.
    pub const SET_FIELD: &str = "SetField";
    /// `Task.CancelTask`.
    pub const CANCEL_TASK: &str = "CancelTask";
    /// `TaskManager.CreateCollectorForTasks`.
    pub const CREATE_COLLECTOR_FOR_TASKS: &str = "CreateCollectorForTasks";
    /// `TaskHistoryCollector.ReadNextTasks`.
    pub const READ_NEXT_TASKS: &str = "ReadNextTasks";
    /// `HistoryCollector.DestroyCollector`.
    pub const DESTROY_COLLECTOR: &str = "DestroyCollector";
    /// `EventManager.LogUserEvent`.
    pub const LOG_USER_EVENT: &str = "LogUserEvent";
    /// `VirtualMachine.PowerOnVM_Task`.
    pub const POWER_ON: &str = "PowerOnVM_Task";
    /// `VirtualMachine.PowerOffVM_Task`.
    pub const POWER_OFF: &str = "PowerOffVM_Task";
    /// `VirtualMachine.ShutdownGuest`: asks the guest; void.
    pub const SHUTDOWN_GUEST: &str = "ShutdownGuest";
    /// `OptionManager.QueryOptions`.
    pub const QUERY_OPTIONS: &str = "QueryOptions";
    /// `HostServiceSystem.StartService`.
    pub const START_SERVICE: &str = "StartService";
    /// `HostServiceSystem.StopService`.
    pub const STOP_SERVICE: &str = "StopService";
}

/// Managed types, as `type` of a reference.
pub mod managed {
    /// The root of everything.
    pub const SERVICE_INSTANCE: &str = "ServiceInstance";
    /// Sessions.
    pub const SESSION_MANAGER: &str = "SessionManager";
    /// Views.
    pub const VIEW_MANAGER: &str = "ViewManager";
    /// A view of everything below a container.
    pub const CONTAINER_VIEW: &str = "ContainerView";
    /// Properties.
    pub const PROPERTY_COLLECTOR: &str = "PropertyCollector";
    /// What a collector watches.
    pub const PROPERTY_FILTER: &str = "PropertyFilter";
    /// A folder of the inventory.
    pub const FOLDER: &str = "Folder";
    /// A datacenter.
    pub const DATACENTER: &str = "Datacenter";
    /// A compute resource: a standalone host's.
    pub const COMPUTE_RESOURCE: &str = "ComputeResource";
    /// A cluster.
    pub const CLUSTER: &str = "ClusterComputeResource";
    /// A host.
    pub const HOST_SYSTEM: &str = "HostSystem";
    /// A VM.
    pub const VIRTUAL_MACHINE: &str = "VirtualMachine";
    /// A datastore.
    pub const DATASTORE: &str = "Datastore";
    /// A task.
    pub const TASK: &str = "Task";
    /// Tasks of the past.
    pub const TASK_MANAGER: &str = "TaskManager";
    /// A page through tasks of the past.
    pub const TASK_HISTORY_COLLECTOR: &str = "TaskHistoryCollector";
    /// Events.
    pub const EVENT_MANAGER: &str = "EventManager";
    /// Custom fields.
    pub const CUSTOM_FIELDS_MANAGER: &str = "CustomFieldsManager";
    /// Graphics of a host.
    pub const GRAPHICS_MANAGER: &str = "HostGraphicsManager";
    /// Passthrough of a host.
    pub const PCI_PASSTHRU_SYSTEM: &str = "HostPciPassthruSystem";
    /// Image of a host.
    pub const IMAGE_CONFIG_MANAGER: &str = "HostImageConfigManager";
    /// Services of a host.
    pub const SERVICE_SYSTEM: &str = "HostServiceSystem";
    /// Settings of the vCenter.
    pub const OPTION_MANAGER: &str = "OptionManager";
}

/// Property paths.
pub mod path {
    /// Name of any entity; `%`, `/` and `\` come escaped.
    pub const NAME: &str = "name";
    /// Where an entity hangs.
    pub const PARENT: &str = "parent";
    /// Hosts of a compute resource.
    pub const HOST: &str = "host";
    /// VMs of a host.
    pub const VM: &str = "vm";
    /// Datastores of a host.
    pub const DATASTORE: &str = "datastore";
    /// Tasks of an entity, recent ones.
    pub const RECENT_TASK: &str = "recentTask";
    /// Values of custom fields.
    pub const CUSTOM_VALUE: &str = "customValue";
    /// Alarms that are triggered.
    pub const TRIGGERED_ALARM_STATE: &str = "triggeredAlarmState";
    /// Graphics manager of a host.
    pub const GRAPHICS_MANAGER: &str = "configManager.graphicsManager";
    /// Passthrough system of a host.
    pub const PCI_PASSTHRU_SYSTEM: &str = "configManager.pciPassthruSystem";
    /// Image manager of a host.
    pub const IMAGE_CONFIG_MANAGER: &str = "configManager.imageConfigManager";
    /// Service system of a host.
    pub const SERVICE_SYSTEM: &str = "configManager.serviceSystem";
    /// Who may log in on the host itself.
    pub const LOCKDOWN_MODE: &str = "config.lockdownMode";
    /// Memory of a host, in bytes.
    pub const MEMORY_SIZE: &str = "hardware.memorySize";
    /// Services of a service system.
    pub const SERVICE_INFO: &str = "serviceInfo";
    /// Configured graphics.
    pub const GRAPHICS_CONFIG: &str = "config.graphicsConfig";
    /// Active graphics.
    pub const GRAPHICS_INFO: &str = "config.graphicsInfo";
    /// vGPU types that can be started now.
    pub const SHARED_PASSTHRU_GPU_TYPES: &str = "config.sharedPassthruGpuTypes";
    /// Passthrough, configured and active.
    pub const PCI_PASSTHRU_INFO: &str = "config.pciPassthruInfo";
    /// Version of ESXi.
    pub const PRODUCT: &str = "config.product";
    /// Physical NICs.
    pub const PNIC: &str = "config.network.pnic";
    /// PCI devices.
    pub const PCI_DEVICE: &str = "hardware.pciDevice";
    /// NUMA nodes with their PCI devices.
    pub const NUMA_NODE: &str = "hardware.numaInfo.numaNode";
    /// UUID of the machine.
    pub const HOST_UUID: &str = "hardware.systemInfo.uuid";
    /// Whether vCenter talks to the host; also of VMs.
    pub const CONNECTION_STATE: &str = "runtime.connectionState";
    /// Power of a host or VM.
    pub const POWER_STATE: &str = "runtime.powerState";
    /// Not set while entering.
    pub const IN_MAINTENANCE_MODE: &str = "runtime.inMaintenanceMode";
    /// When the host booted.
    pub const BOOT_TIME: &str = "runtime.bootTime";
    /// HA agent.
    pub const DAS_HOST_STATE: &str = "runtime.dasHostState";
    /// Encryption mode.
    pub const CRYPTO_STATE: &str = "runtime.cryptoState";
    /// Whether the host says that it needs a reboot.
    pub const REBOOT_REQUIRED: &str = "summary.rebootRequired";
    /// Whether a datastore can be reached.
    pub const ACCESSIBLE: &str = "summary.accessible";
    /// Whether devices can be rebound without a reboot.
    pub const REBIND_WITHOUT_REBOOT: &str = "capability.deviceRebindWithoutRebootSupported";
    /// Whether hardware labels can be set.
    pub const ASSIGN_HW_PCI_CONFIG: &str = "capability.assignHwPciConfigSupported";
    /// Devices of a VM.
    pub const VM_DEVICES: &str = "config.hardware.device";
    /// Whether a VM is a template.
    pub const VM_TEMPLATE: &str = "config.template";
    /// Who manages a VM.
    pub const VM_MANAGED_BY: &str = "config.managedBy";
    /// Memory of a VM, in MiB.
    pub const VM_MEMORY: &str = "config.hardware.memoryMB";
    /// Memory that is reserved for a VM, in MiB.
    pub const VM_RESERVATION: &str = "config.memoryAllocation.reservation";
    /// Firmware of a VM.
    pub const VM_FIRMWARE: &str = "config.firmware";
    /// Entries of a VM's configuration file; among them are secrets of guests.
    pub const VM_EXTRA: &str = "config.extraConfig";
    /// UUID that the guest sees.
    pub const VM_BIOS_UUID: &str = "config.uuid";
    /// UUID that is unique on a vCenter.
    pub const VM_INSTANCE_UUID: &str = "config.instanceUuid";
    /// Whether the tools of a guest run.
    pub const VM_TOOLS: &str = "guest.toolsRunningStatus";
    /// Host that a VM runs on or is registered on.
    pub const VM_HOST: &str = "runtime.host";
    /// vApp that a VM is in; it then has no `parent`.
    pub const VM_PARENT_VAPP: &str = "parentVApp";
    /// How a cluster is set. A cluster has more of it than the declared type, so it is read whole.
    pub const CONFIGURATION_EX: &str = "configurationEx";
    /// What DRS complains of.
    pub const DRS_FAULT: &str = "drsFault";
    /// Session of the caller; unset if there is none.
    pub const CURRENT_SESSION: &str = "currentSession";
    /// Custom field definitions.
    pub const FIELD: &str = "field";
    /// A task.
    pub const TASK_INFO: &str = "info";
    /// State of a task.
    pub const TASK_STATE: &str = "info.state";
    /// Progress of a task in percent.
    pub const TASK_PROGRESS: &str = "info.progress";
    /// Why a task failed.
    pub const TASK_ERROR: &str = "info.error";
    /// What a task gave.
    pub const TASK_RESULT: &str = "info.result";
}

/// Faults, as `xsi:type`.
pub mod fault {
    /// No session, or it ended.
    pub const NOT_AUTHENTICATED: &str = "NotAuthenticated";
    /// Wrong user or password.
    pub const INVALID_LOGIN: &str = "InvalidLogin";
    /// The user may not.
    pub const NO_PERMISSION: &str = "NoPermission";
    /// Not in this state.
    pub const INVALID_STATE: &str = "InvalidState";
    /// An argument is wrong.
    pub const INVALID_ARGUMENT: &str = "InvalidArgument";
    /// A property does not exist in this version.
    pub const INVALID_PROPERTY: &str = "InvalidProperty";
    /// The request has the wrong shape.
    pub const INVALID_REQUEST: &str = "InvalidRequest";
    /// The server does not have the method.
    pub const METHOD_NOT_FOUND: &str = "MethodNotFound";
    /// The collector does not know this version of its updates.
    pub const INVALID_COLLECTOR_VERSION: &str = "InvalidCollectorVersion";
    /// The object is gone.
    pub const MANAGED_OBJECT_NOT_FOUND: &str = "ManagedObjectNotFound";
    /// Another task has the object.
    pub const TASK_IN_PROGRESS: &str = "TaskInProgress";
    /// The object is in use.
    pub const RESOURCE_IN_USE: &str = "ResourceInUse";
    /// The server's deadline passed.
    pub const TIMEDOUT: &str = "Timedout";
    /// Cancelled.
    pub const REQUEST_CANCELED: &str = "RequestCanceled";
    /// The server cannot do it.
    pub const NOT_SUPPORTED: &str = "NotSupported";
    /// The name is taken.
    pub const DUPLICATE_NAME: &str = "DuplicateName";
    /// The name is not allowed or not known.
    pub const INVALID_NAME: &str = "InvalidName";
    /// Not found.
    pub const NOT_FOUND: &str = "NotFound";
    /// The host refuses the configuration.
    pub const HOST_CONFIG_FAULT: &str = "HostConfigFault";
    /// The platform refuses the configuration.
    pub const PLATFORM_CONFIG_FAULT: &str = "PlatformConfigFault";
    /// vCenter is not connected to the host.
    pub const HOST_NOT_CONNECTED: &str = "HostNotConnected";
    /// vCenter cannot reach the host.
    pub const HOST_NOT_REACHABLE: &str = "HostNotReachable";
    /// vCenter and the host do not understand each other.
    pub const HOST_COMMUNICATION: &str = "HostCommunication";
    /// Anything else inside the server.
    pub const SYSTEM_ERROR: &str = "SystemError";
}
