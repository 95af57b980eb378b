//! Cases from the field, each by kind, on the whole way from documents to a changed world.
//!
//! A test names its case (`a07_…`), so that `grep -r 'fn a07_' src tests` finds where a case is held:
//!
//! ```text
//!   A  devices      model::pci, catalog, documents, planner; on the wire: devices; MIG: mig
//!   B  maintenance  rollout::maintenance, vim25::tasks; refusals: devices, planner
//!   C  connection   vim25::session, vim25::retries, base::net, inventory, cli::ports
//!   D  inventory    documents::selectors, observe, vim25::inventory; the whole way: names
//!   F  rollout      rollout::ways, rollout::crash, cli::flow, cli::secrets
//! ```

mod devices;
mod mig;
mod names;
mod site;
mod transitions;
