//! `nvidia-smi` and the monitoring daemon: fixed commands, and what they print.

use std::collections::BTreeMap;
use std::time::Duration;

use super::session::Output;
use super::{Shell, ShellError};
use crate::model::{Fact, GpuShellView, PciAddress, ShellView, Switch};

/// What is run on a host. Nothing of it comes from outside: an address is rendered from numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// Asks for the state of all GPUs.
    Query(Query),
    /// Switches MIG of one GPU: the only way there is (vsphere-gpu §2.1).
    SetMig {
        /// The GPU.
        gpu: PciAddress,
        /// On or off.
        on: bool,
    },
    /// Stops NVIDIA's monitoring daemon, which keeps GPUs in use (vsphere-gpu F28).
    StopMonitor,
    /// Starts it again.
    StartMonitor,
    /// Asks whether it runs.
    MonitorStatus,
}

/// A question about all GPUs. Each is a command of its own: a driver that does not know one field
/// answers nothing of the whole command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    /// MIG and ECC, in effect and pending.
    Modes,
    /// The PCIe link.
    Link,
    /// Rows of memory that were remapped.
    Rows,
}

/// The script of the daemon (gpu-catalog HOST-10). It is no service that vCenter lists (§1.10).
const MONITOR: &str = "/etc/init.d/nvdGpuMgmtDaemon";

/// A line of a host is shown up to this many letters.
const SHOWN: usize = 160;

/// Lines that were not understood are kept up to this many: the rest says nothing more.
const UNREAD: usize = 20;

impl Query {
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Modes => &["mig.mode.current", "mig.mode.pending", "ecc.mode.current", "ecc.mode.pending"],
            Self::Link => &["pcie.link.gen.current", "pcie.link.width.current"],
            Self::Rows => &["remapped_rows.pending", "remapped_rows.failure"],
        }
    }
}

impl Command {
    /// The command line, as a person would type it.
    pub fn line(self) -> String {
        match self {
            Self::Query(query) => {
                // The list of rows has its own option, and its own name for the address.
                let (option, address) = match query {
                    Query::Modes | Query::Link => ("--query-gpu", "pci.bus_id"),
                    Query::Rows => ("--query-remapped-rows", "gpu_bus_id"),
                };
                format!("nvidia-smi {option}={address},{} --format=csv,noheader", query.fields().join(","))
            }
            Self::SetMig { gpu, on } => format!("nvidia-smi -i {gpu} -mig {}", u8::from(on)),
            Self::StopMonitor => format!("{MONITOR} stop"),
            Self::StartMonitor => format!("{MONITOR} start"),
            Self::MonitorStatus => format!("{MONITOR} status"),
        }
    }

    /// After what time the host kills it. A query takes seconds, of which most is waking the driver;
    /// switching MIG resets the GPU.
    pub fn kill_after(self) -> Duration {
        Duration::from_secs(match self {
            Self::Query(_) | Self::MonitorStatus => 30,
            Self::StopMonitor | Self::StartMonitor => 60,
            Self::SetMig { .. } => 120,
        })
    }

    /// The command line with its kill time on the host itself, so that it dies there even if we do
    /// (ESXi's busybox has `timeout`, docs/assumptions.md).
    pub fn bounded(self) -> String {
        format!("timeout -s KILL {} {}", self.kill_after().as_secs(), self.line())
    }
}

/// Asks a host for everything of its GPUs. What it does not answer is unknown in the view.
///
/// # Errors
/// If the session is of no use any more.
pub async fn read_gpus(shell: &Shell) -> Result<ShellView, ShellError> {
    let modes = shell.run(Command::Query(Query::Modes)).await?;
    let link = shell.run(Command::Query(Query::Link)).await?;
    let rows = shell.run(Command::Query(Query::Rows)).await?;
    let monitor = shell.run(Command::MonitorStatus).await?;
    Ok(view(&modes, &link, &rows, &monitor))
}

/// What the answers to the four questions say together. A GPU is there if the modes list it.
pub fn view(modes: &Output, link: &Output, rows: &Output, monitor: &Output) -> ShellView {
    let modes = Listing::of(Query::Modes, modes);
    let (link, rows) = (Listing::of(Query::Link, link), Listing::of(Query::Rows, rows));
    let gpu = |address: &PciAddress| {
        let of = |listing: &Listing, column| listing.value(address, column);
        let view = GpuShellView {
            mig: Switch { current: on(of(&modes, 0)), pending: on(of(&modes, 1)) },
            ecc: Switch { current: on(of(&modes, 2)), pending: on(of(&modes, 3)) },
            link_generation: number(of(&link, 0)),
            link_width: number(of(&link, 1)),
            remap_pending: yes(of(&rows, 0)),
            remap_failed: yes(of(&rows, 1)),
        };
        (*address, view)
    };
    let gpus: BTreeMap<_, _> = modes.rows.keys().map(gpu).collect();
    let mut unread = modes.unread;
    unread.truncate(UNREAD);
    ShellView { gpus, monitor: monitor_runs(monitor), unread }
}

/// Whether the monitoring daemon runs, by its script's own words (unverified, docs/assumptions.md: ESXi's
/// scripts say `is running` and `is not running`); absent where there is no such script.
fn monitor_runs(status: &Output) -> Fact<bool> {
    let said = [&status.stdout, &status.stderr].map(|text| text.to_lowercase()).concat();
    let says = |words: &str| said.contains(words);
    match () {
        () if says("not running") || says("stopped") => Fact::Known(false),
        () if says("running") => Fact::Known(true),
        () if says("not found") || says("no such file") => Fact::Absent,
        () if said.trim().is_empty() => Fact::unknown(format!("its script says nothing; {:?}", status.end)),
        () => Fact::unknown(format!("its script says `{}`", shown(said.trim()))),
    }
}

/// Lines of `address, value, value …`.
struct Listing {
    rows: BTreeMap<PciAddress, Vec<Fact<String>>>,
    /// Lines that are no rows; if there is no row, why.
    unread: Vec<String>,
}

impl Listing {
    fn of(query: Query, output: &Output) -> Self {
        let mut rows: BTreeMap<PciAddress, Vec<Fact<String>>> = BTreeMap::new();
        let mut unread = Vec::new();
        for line in output.stdout.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut values = line.split(',').map(str::trim);
            let address = values.next().and_then(|first| first.parse::<PciAddress>().ok());
            let values: Vec<Fact<String>> = values.map(value).collect();
            match address {
                // Two lines of one GPU contradict each other or say nothing: neither is believed.
                Some(address) if rows.contains_key(&address) => {
                    rows.insert(address, vec![Fact::unknown("nvidia-smi lists it twice"); query.fields().len()]);
                    unread.push(shown(line));
                }
                Some(address) if values.len() == query.fields().len() => {
                    rows.insert(address, values);
                }
                _ => unread.push(shown(line)),
            }
        }
        // The last line of what was cut may be half a line.
        if output.cut {
            unread.push("(more than is read)".to_owned());
        }
        if rows.is_empty() && unread.is_empty() {
            let said = output.stderr.lines().map(str::trim).find(|line| !line.is_empty());
            unread.push(said.map_or_else(|| format!("(nothing; {:?})", output.end), shown));
        }
        Self { rows, unread }
    }

    fn value(&self, address: &PciAddress, column: usize) -> Fact<String> {
        match (self.rows.get(address).and_then(|values| values.get(column)), self.unread.first()) {
            (Some(value), _) => value.clone(),
            (None, Some(line)) => Fact::unknown(format!("nvidia-smi says `{line}`")),
            (None, None) => Fact::unknown("nvidia-smi does not list it"),
        }
    }
}

/// The ways in which `nvidia-smi` says that a GPU has no such thing.
fn value(text: &str) -> Fact<String> {
    match text {
        "N/A" | "[N/A]" | "Not Supported" | "[Not Supported]" => Fact::Absent,
        text => Fact::Known(text.to_owned()),
    }
}

fn on(value: Fact<String>) -> Fact<bool> {
    read(value, |text| match text {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    })
}

/// Drivers print yes and no as words or as digits.
fn yes(value: Fact<String>) -> Fact<bool> {
    read(value, |text| match text {
        "Yes" | "1" => Some(true),
        "No" | "0" => Some(false),
        _ => None,
    })
}

fn number(value: Fact<String>) -> Fact<u32> {
    read(value, |text| text.parse().ok())
}

fn read<T>(value: Fact<String>, understand: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
    match value {
        Fact::Known(text) => match understand(&text) {
            Some(value) => Fact::Known(value),
            None => Fact::unknown(format!("nvidia-smi says `{}`", shown(&text))),
        },
        Fact::Absent => Fact::Absent,
        Fact::Unknown { why } => Fact::Unknown { why },
    }
}

/// A text of the host, fit to be shown.
fn shown(text: &str) -> String {
    let clean = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let mut shown: String = text.trim().chars().map(clean).take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
