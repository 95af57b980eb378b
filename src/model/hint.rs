//! What to do about a kind of finding, where the check itself has nothing nearer to say.

use super::Rule;

impl Rule {
    /// What to do about it; none for what is only good to know.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self.id {
            "PW-CAT-01" => "`poolwright catalog` lists the models and their vGPU types",
            "PW-CAT-03" => {
                "look at the host's own list (`poolwright discover --output json`), and accept the finding if it fits"
            }
            "PW-CAT-04" => {
                "`poolwright catalog` shows each model with its modes and types; `catalog fit` proves combinations"
            }
            "PW-CAT-05" | "PW-CAT-07" | "PW-CAT-08" => "`poolwright catalog` shows each model with its types",
            "PW-CAT-06" => "update the host, or choose a mode that its release has",
            "PW-CAT-10" => "`poolwright catalog` lists the models",
            "PW-CAT-11" => "compare the release with its release notes, and accept the finding if it has the feature",
            "PW-DOC-01" => "give one of them another name, or remove it",
            "PW-DOC-02" => "give the Site document too, or correct `hosts.site`",
            "PW-DOC-03" => "fill it, or remove it",
            "PW-DOC-04" => "correct the number",
            "PW-DOC-05" => "a GPU has one mode: leave it in one of the groups",
            "PW-DOC-06" => "remove the field, or choose a mode that has it",
            "PW-DOC-07" | "PW-DOC-08" => "`poolwright discover` shows the clusters and their hosts",
            "PW-DOC-09" => "a host belongs to one pool: narrow one of the selectors, or use `except`",
            "PW-DOC-10" => "remove it, or correct the name: a host that should be left out may be in the pool",
            "PW-DOC-12" => "name it under `guests` of the Site and, once, of the pool",
            "PW-DOC-13" => "write it as device plugins do: `nvidia.com/gpu`",
            "PW-DOC-14" => "see that the file is there, by its path from the working directory",
            "PW-DOC-15" => "write the limit as `{{ perNode }}`",
            "PW-DRV-01" | "PW-DRV-02" => {
                "install the driver through the cluster's image; it is checked here, never installed"
            }
            "PW-DRV-03" => "the user may lack the privilege `Host.Config.Image`; with it, plan again",
            "PW-DRV-04" => {
                "offer types of the driver that is installed, or install the other one through the cluster's image"
            }
            "PW-GPU-01" | "PW-GPU-02" => {
                "leave the host out with `except`, or give it a pool of its own; if a GPU is missing, look at the host"
            }
            "PW-GPU-03" => {
                "`poolwright discover --output json` shows the GPUs of each host, with address and NUMA node"
            }
            "PW-GPU-04" => "look at the host: firmware (VT-d, above 4G decoding) and the slot decide it",
            "PW-GPU-05" => "take another console, or accept the finding: the host's own screen goes dark",
            "PW-GPU-07" => "leave the host out with `except`",
            "PW-GPU-09" => "find out who uses it, and accept the finding if it may stay as it is",
            "PW-GPU-10" => "move or power off the VM, or remove the GPU from it, and plan again",
            "PW-GPU-12" => "end its passthrough by hand: the host may have its datastores behind it",
            "PW-GPU-13" => "remove `label`, or update the host",
            "PW-GPU-14" => "settle by hand what is pending there, and plan again",
            "PW-GUEST-01" => {
                "see to what it says: the kubeconfig and its context, whether the server answers, what the user may read; then plan again"
            }
            "PW-GUEST-02" => "list it under `guests` of the pool, with what its nodes offer and how they are validated",
            "PW-GUEST-03" => "see why it does not answer: its nodes on these hosts would be stopped as any other VM",
            "PW-GUEST-04" => {
                "list it once under `guests` of the Site: look at the context and server of each kubeconfig"
            }
            "PW-HOST-01" => "update vCenter and the host to 8.0.3 or later",
            "PW-HOST-02" => "see in vCenter why, and plan again when it is back",
            "PW-HOST-03" => "see what the user may not read, or whether the host answers, and plan again",
            "PW-HOST-05" => "resume the VM and shut it down, and plan again",
            "PW-HOST-06" => "change the GPU devices of the VM, or leave it off",
            "PW-HOST-07" => "find out who works on it, and plan again when it is back",
            "PW-HOST-08" => "wait until the task has ended, and plan again",
            "PW-HOST-09" => {
                "`poolwright status` shows runs and how to go on with them; where its state directory is lost, go on with `resume --from-live`"
            }
            "PW-HOST-10" => "raise `rollout.maxReboots` if so many are fine",
            "PW-HOST-14" => "remove the stale one from vCenter",
            "PW-HOST-15" => "see what the user may not read; accept the finding if it need not be compared",
            "PW-HOST-16" => "see in vCenter where it is; leave it out with `except` if it is gone",
            "PW-MIG-02" => "bring them into a pool, or take MIG off on the host itself, then plan again",
            "PW-NODE-01" => "see that each VM has its own BIOS UUID, and each node one VM; then plan again",
            "PW-NODE-02" => {
                "have the kubelet or the cloud provider report the machine that the node runs on (`kubectl get node -o yaml`: spec.providerID, systemUUID; `uuid.bios` of the VM), or delete nodes that are gone; a VM that was powered off just now: plan again in a minute"
            }
            "PW-NODE-03" => "pause the owner first, then accept the finding",
            "PW-NODE-04" => "bring it back, or accept the finding: its pods may not end, and the drain with them",
            "PW-NODE-05" => "wait until it is gone, then plan again",
            "PW-NODE-06" => {
                "`poolwright status` shows runs and how to go on with them; a run that is gone: take the annotation off by hand"
            }
            "PW-NODE-09" => "it is not uncordoned before it offers what is expected: see why it does not now",
            "PW-NODE-10" => {
                "have the guests' driver and operator follow the mode: nodes are validated before they are uncordoned"
            }
            "PW-NODE-12" => {
                "see why: one that nobody works on may be uncordoned once its GPUs are proven; one that was left off needs a VM that fits; Jobs of a run that was given up stay until somebody deletes them"
            }
            "PW-POOL-02" => "bring the unavailable hosts back, or raise `rollout.maxUnavailable`",
            "PW-POOL-03" => "bring those hosts back first if the capacity is needed",
            "PW-SHELL-01" => "end lockdown mode for the change, or leave `shell` out of the Site: a person then types",
            "PW-SHELL-02" => "pin it under `hostKeys` of the Site's `shell`, as read on the host itself",
            "PW-SHELL-03" => {
                "name a user for the host under `shell` of the Site, or leave `shell` out: a person then types"
            }
            "PW-SHELL-06" => "see what the user may not read; without `shell` in the Site a person types",
            "PW-SHELL-07" => "set it right before the change; otherwise a person may have to type at the host",
            "PW-VM-01" | "PW-VM-03" | "PW-VM-07" => {
                "allow it in `vms.mayStop` if it may be down, or move or power it off"
            }
            "PW-VM-02" => "allow it in `vms.mayMove`, or move it away",
            "PW-VM-04" => "change its GPU devices, or say `vms.onMismatch: leaveOff` and select it in `vms.mayStop`",
            "PW-VM-05" => "pause its owner first, or move the VM away by it",
            "PW-VM-06" => "install or start VMware Tools in it, or shut it down by hand",
            "PW-VM-10" => {
                "plan again before that host is due, or make room: DRS may find some that the plan does not see"
            }
            "PW-VM-08" => "start it elsewhere, or change its GPU devices; its owner should know",
            "PW-ACC-01" => "look at the finding again; then remove the acceptance or give it a new date",
            "PW-ACC-03" => "remove it: what it is about must be mended",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{RULES, Severity};

    #[test]
    fn everything_to_look_at_says_what_to_do() {
        for rule in RULES.iter().filter(|rule| rule.severity > Severity::Info) {
            assert!(rule.hint().is_some_and(|hint| !hint.is_empty()), "{} has no hint", rule.id);
        }
    }

    #[test]
    fn a_hint_is_of_a_rule_that_exists() {
        let text = include_str!("hint.rs");
        let (code, _) = text.split_once("#[cfg(test)]").unwrap();
        let named: Vec<&str> = code.split('"').filter(|word| word.starts_with("PW-")).collect();
        assert!(named.len() > 40, "{named:?}");
        for id in named {
            assert!(RULES.iter().any(|rule| rule.id == id), "there is no {id}");
        }
    }
}
