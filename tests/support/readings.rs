//! The switches of a world that nobody could verify (`readings`), as documents write them.

use super::pairwise;

/// Each switch with its values; the first is the default.
pub const SWITCHES: [(&str, &[&str]); 9] = [
    ("deviceType", &["merge", "replace"]),
    ("whilePassthrough", &["ignored", "stored", "refused"]),
    ("rebind", &["never", "idle"]),
    ("hostDefaultNeeded", &["no", "yes"]),
    ("haInMaintenance", &["unset", "runs"]),
    ("vmFaults", &["inTask", "inCall"]),
    ("migVisible", &["afterRefresh", "atOnce"]),
    ("sshPassword", &["keyboardInteractive", "password"]),
    ("fieldLag", &["0s", "7s"]),
];

/// Settings in which every pair of values of two switches occurs, each as a YAML map.
pub fn pairs() -> Vec<String> {
    let sizes: Vec<usize> = SWITCHES.iter().map(|(_, values)| values.len()).collect();
    pairwise::rows(&sizes).iter().map(|row| setting(row)).collect()
}

/// The defaults with one switch set to another value.
pub fn only(switch: usize, value: usize) -> String {
    let mut row = [0; SWITCHES.len()];
    row[switch] = value;
    setting(&row)
}

fn setting(row: &[usize]) -> String {
    let set = SWITCHES.iter().zip(row).map(|((name, values), at)| format!("{name}: {}", values[*at]));
    format!("{{{}}}", set.collect::<Vec<_>>().join(", "))
}
