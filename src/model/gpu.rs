//! GPU modes: what a profile asks for, and what vim25 says of a GPU.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a profile asks of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// DirectPath I/O passthrough, with the label that Dynamic DirectPath matches.
    Passthrough {
        /// `hardwareLabel`; none leaves the label of the device empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// Time-sliced vGPU.
    Vgpu {
        /// Whether all vGPUs of a GPU have one framebuffer size.
        size: VgpuSize,
    },
    /// MIG-backed vGPU.
    MigVgpu,
}

impl Mode {
    /// The mode without its options, as the catalogue and reports name it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passthrough { .. } => "passthrough",
            Self::Vgpu { size: VgpuSize::Same } => "same size",
            Self::Vgpu { size: VgpuSize::Mixed } => "mixed size",
            Self::MigVgpu => "MIG",
        }
    }

    /// Whether the host driver owns a GPU of this mode, and gives it to VMs in parts.
    pub fn needs_driver(&self) -> bool {
        match self {
            Self::Passthrough { .. } => false,
            Self::Vgpu { .. } | Self::MigVgpu => true,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passthrough { label: Some(label) } => write!(f, "passthrough (label {label})"),
            Self::Passthrough { label: None } => f.write_str("passthrough"),
            Self::Vgpu { size: VgpuSize::Same } => f.write_str("time-sliced vGPU, same size"),
            Self::Vgpu { size: VgpuSize::Mixed } => f.write_str("time-sliced vGPU, mixed size"),
            Self::MigVgpu => f.write_str("MIG-backed vGPU"),
        }
    }
}

/// Where a GPU keeps MIG (vsphere-gpu §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MigKind {
    /// On the board (Ampere): a switch takes effect with the next reboot, and outlives reboots and the
    /// change to passthrough, which hides it.
    Board,
    /// In the driver (Hopper and later): a switch takes effect at once on a GPU that nobody uses, and
    /// every reboot loses it.
    Driver,
}

/// Whether the vGPUs of one GPU share one framebuffer size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VgpuSize {
    /// One size a GPU (the default of ESXi); the first VM powered on fixes it.
    Same,
    /// Different sizes beside each other (vSphere 8.0U3 and later, Ampere and later).
    Mixed,
}

/// An enumeration of vim25: on the wire a string, so a later server may send a value we do not
/// know. It is kept as it is and never fails a decode.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $wire:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
            /// A value of a later server, kept as received.
            Other(String),
        }

        impl $name {
            /// The value as vim25 writes it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $wire,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($wire => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(<String as ::serde::Deserialize>::deserialize(deserializer)?.as_str()))
            }
        }
    };
}
pub(super) use wire_enum;

wire_enum! {
    /// `graphicsType`: observed values of `HostGraphicsInfoGraphicsType`; only `shared` and
    /// `sharedDirect` can be set (vsphere-gpu §1.2).
    GraphicsType {
        /// No host driver.
        Basic = "basic",
        /// vSGA.
        Shared = "shared",
        /// Passthrough.
        Direct = "direct",
        /// vGPU.
        SharedDirect = "sharedDirect",
    }
}

wire_enum! {
    /// `vgpuMode`: observed values of `HostGraphicsInfoVgpuMode`; only `sameSize` and `mixedSize`
    /// can be set (vsphere-gpu §1.2).
    VgpuMode {
        /// Does not apply.
        None = "none",
        /// Time-sliced, one size.
        SameSize = "sameSize",
        /// Time-sliced, different sizes.
        MixedSize = "mixedSize",
        /// MIG; reported only.
        MultiInstanceGpu = "multiInstanceGpu",
    }
}

wire_enum! {
    /// `sharedPassthruAssignmentPolicy`: how vGPU VMs are spread over the GPUs of a host.
    AssignmentPolicy {
        /// Breadth first: the GPU with the fewest VMs.
        Performance = "performance",
        /// Depth first: one GPU is filled before the next.
        Consolidation = "consolidation",
    }
}

impl From<VgpuSize> for VgpuMode {
    fn from(size: VgpuSize) -> Self {
        match size {
            VgpuSize::Same => Self::SameSize,
            VgpuSize::Mixed => Self::MixedSize,
        }
    }
}
