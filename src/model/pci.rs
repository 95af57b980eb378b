//! PCI addresses and ids as ESXi, vCenter and `nvidia-smi` print them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The address of a PCI function: segment, bus, device and function.
///
/// Written `0000:3b:00.0`. Read without regard to hex case, with a segment of four or, as
/// `nvidia-smi` prints it, eight digits. Short forms (`3b:00.0`, `6:0.0`) are refused: vSphere
/// always prints the segment, and a hand-copied `esx.conf` line has decimal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// PCI segment (domain).
    pub segment: u16,
    /// Bus.
    pub bus: u8,
    /// Device, 0 to 31.
    pub device: u8,
    /// Function, 0 to 7.
    pub function: u8,
}

/// Why a text is no PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a PCI address: {reason} (expected `0000:3b:00.0`: segment, bus, device in hex, function)")]
pub struct PciAddressError {
    /// The text as given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl PciAddress {
    /// Whether both are functions of one physical device (same segment, bus and device).
    pub fn same_device(&self, other: &Self) -> bool {
        (self.segment, self.bus, self.device) == (other.segment, other.bus, other.device)
    }
}

impl FromStr for PciAddress {
    type Err = PciAddressError;

    fn from_str(text: &str) -> Result<Self, PciAddressError> {
        let fail = |reason| PciAddressError { text: text.to_owned(), reason };
        let hex = |part: &str, digits: usize, reason| {
            if part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit()) {
                u32::from_str_radix(part, 16).map_err(|_| fail(reason))
            } else {
                Err(fail(reason))
            }
        };
        let parts: Vec<&str> = text.split(':').collect();
        let [segment, bus, rest] = parts.as_slice() else {
            return Err(fail("it does not have the three parts segment:bus:device.function"));
        };
        let Some((device, function)) = rest.split_once('.') else {
            return Err(fail("the function after the dot is missing"));
        };
        let segment = match segment.len() {
            8 if segment.starts_with("0000") => &segment[4..],
            _ => segment,
        };
        let segment = hex(segment, 4, "the segment must be four hex digits")?;
        let bus = hex(bus, 2, "the bus must be two hex digits")?;
        let device = hex(device, 2, "the device must be two hex digits")?;
        if device > 0x1f {
            return Err(fail("the device is at most 1f"));
        }
        let function = hex(function, 1, "the function must be one digit, 0 to 7")?;
        if function > 7 {
            return Err(fail("the function is at most 7"));
        }
        // Each part was checked against its width above.
        Ok(Self { segment: segment as u16, bus: bus as u8, device: device as u8, function: function as u8 })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, bus, device, function } = self;
        f.pad(&format!("{segment:04x}:{bus:02x}:{device:02x}.{function:x}"))
    }
}

impl Serialize for PciAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PciAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The identity of a PCI device: vendor and device, with the subsystem of the board.
///
/// vim25 sends each as a signed short (`-32634` is `8086`); these are the unsigned values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PciId {
    /// Vendor, 0x10de for NVIDIA.
    pub vendor: u16,
    /// Device.
    pub device: u16,
    /// Vendor of the board.
    pub sub_vendor: u16,
    /// Board.
    pub sub_device: u16,
}

impl PciId {
    /// NVIDIA's vendor id.
    pub const NVIDIA: u16 = 0x10de;
}

impl fmt::Display for PciId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor, device, sub_vendor, sub_device } = self;
        write!(f, "{vendor:04x}:{device:04x} (subsystem {sub_vendor:04x}:{sub_device:04x})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a05_nvidia_smi_and_vsphere_name_one_device() {
        let smi: PciAddress = "00000000:85:00.0".parse().unwrap();
        let vim: PciAddress = "0000:85:00.0".parse().unwrap();
        assert_eq!(smi, vim);
        assert_eq!(vim.to_string(), "0000:85:00.0");
    }

    #[test]
    fn hex_case_does_not_matter_and_order_is_numeric() {
        let upper: PciAddress = "0000:D8:00.0".parse().unwrap();
        assert_eq!(upper.to_string(), "0000:d8:00.0");
        assert!("0000:3b:00.0".parse::<PciAddress>().unwrap() < upper);
    }

    #[test]
    fn a04_short_and_decimal_forms_are_refused_with_the_reason() {
        for text in [
            "000:11.0",
            "6:0.0",
            "3b:00.0",
            "0000:3b:00",
            "0000:3b:20.0",
            "0000:3b:00.8",
            "12345678:3b:00.0",
            "0000:3b:00.0 ",
            "+000:3b:00.0",
            "",
        ] {
            let error = text.parse::<PciAddress>().unwrap_err().to_string();
            assert!(error.contains("is not a PCI address") && error.contains("0000:3b:00.0"), "{error}");
        }
    }
}
