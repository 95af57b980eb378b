//! From documents and a session to a plan.

use super::documents::Documents;
use super::execute::TOOL;
use super::session::Session;
use super::{CommandError, Ui};
use crate::document::Document;
use crate::inventory::Site;
use crate::model::HostRef;
use crate::plan::{self, Plan};
use crate::profile;
use crate::report::words;

/// Reads the clusters that the pools of the site name, and plans their hosts.
///
/// # Errors
/// The vCenter cannot be read; a selector that matches nothing.
pub async fn make_plan(
    session: &Session,
    documents: &Documents,
    site: &Document<Site>,
    ui: &Ui,
) -> Result<Plan, CommandError> {
    let fleet = &session.fleet;
    ui.busy("reading the names of clusters and hosts");
    let roster = session.read(fleet.roster()).await??;
    for note in &roster.notes {
        ui.note(note);
    }
    let resolved =
        profile::resolve(&documents.loaded.pools, site, &roster).map_err(|findings| documents.wrong(findings))?;
    let pools = &resolved.desired.pools;
    if pools.is_empty() {
        ui.note(&format!("no pool of the documents is of site {}: there is nothing to plan", site.name.value));
    }
    // The other hosts of the clusters, too: they may have to take VMs.
    let of_a_pool = |host: &HostRef| pools.iter().any(|pool| *pool.cluster == host.cluster);
    let hosts: Vec<HostRef> = roster.hosts.iter().filter(|host| of_a_pool(host)).cloned().collect();
    ui.busy(format!("reading {}", words::count(hosts.len(), "host")));
    let observed = session.read(fleet.facts_and_nodes(&hosts)).await?;
    let inputs = documents.inputs(&site.name);
    let plan = plan::plan(&resolved.desired, &observed, &inputs, TOOL, session.clock.now());
    Ok(plan)
}
