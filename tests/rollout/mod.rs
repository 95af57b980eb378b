//! The rollout: its journal and machine by property tests, its engine against the simulated fleet.

pub mod arbitrary;
mod blanks;
mod budget;
mod closing;
mod closing_again;
mod crash;
mod crash_nodes;
mod doubt;
mod drains;
mod foreign_marks;
mod full;
mod gate;
mod hands;
mod machine;
mod maintenance;
mod mig;
pub mod nodes;
mod proof;
mod reboots;
pub mod scene;
mod standing;
mod table;
mod trap;
mod undo;
mod vms;
mod ways;
mod zones;
