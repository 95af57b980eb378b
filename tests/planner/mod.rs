//! The planner, and the visits that it makes.

mod blanks;
mod file;
mod findings;
mod fleet;
mod gate;
mod machines;
mod mig;
mod mig_vms;
mod node_findings;
mod node_gate;
mod node_service;
mod nodes;
mod random;
mod slots;
mod transitions;
mod twin;
mod visits;
mod vm_visits;
mod vms;
