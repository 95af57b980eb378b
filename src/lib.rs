//! Poolwright puts the GPUs of ESXi hosts into the mode that git says, and rolls the hosts through
//! maintenance without killing what runs on them.
//!
//! # The house
//!
//! A module imports only from floors below it; neighbours on a floor do not know each other
//! (`tests/house.rs` enforces the table).
//!
//! ```text
//!   6  cli        arguments -> commands -> exit code; the only place that prints
//!   5  report     plan, observation, run state -> text | json                       (pure)
//!   4  rollout    plan -> effects: journal, markers, compensations, per-host machine, gates
//!   3  plan       desired + observed + now -> plan; visit planner                   (pure)
//!   2  observe    site + network -> fleet; roster (names), facts (partial, dated)
//!   1b vim25      the SOAP client of vCenter: wire (pure) -> transport -> calls
//!      shell      the shell of ESXi hosts over SSH, for MIG
//!      k8s        the API servers of guest clusters: nodes, drain, validation Jobs
//!   1a profile, inventory, catalog      documents -> typed values                   (pure)
//!   1  document   YAML -> values with places, nearest key, snippets                 (pure)
//!   0  model      the nouns
//!   -  base       net, tls, clock, retry, files, secret, logging
//!      sim        (garden house) the simulated fleet; speaks the same wires
//! ```
//!
//! # The data flow
//!
//! ```text
//!   YAML ──document─► Profile, Site, …    wrong = the user's: file:line:column, the source line, a hint
//!   live ──roster───► Roster              names, paths, ids of hosts and clusters
//!        ──resolve──► Desired             host selectors expanded; each value knows where it was written
//!   live ──facts────► Observed            per host Ok(view) | Err(fault); every field Known | Absent | Unknown
//!        ──plan─────► Plan                GPU selectors bound to devices; id = hash of its content
//!        ──visit────► Visit               one host's steps, from any mid-state
//!        ──rollout──► journal             StepStarted (synced) -> check -> effect -> verify -> StepDone | StepFailed
//!        ──fold─────► RunState            resume = same plan + memory (journal, else marker) + fresh facts -> visit
//!        ──report───► text, json
//! ```
//!
//! Start with [`plan`] for what it does, [`rollout`] for how a host is changed.

pub mod base;
pub mod catalog;
pub mod cli;
pub mod document;
pub mod inventory;
pub mod k8s;
pub mod model;
pub mod observe;
pub mod plan;
pub mod profile;
pub mod report;
pub mod rollout;
pub mod shell;
pub mod sim;
pub mod vim25;
