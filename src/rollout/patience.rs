//! Which errors of a guest cluster are worth another look, and for how long.

use std::time::Duration;

use super::run::Deadline;
use crate::k8s::Error;

/// How long a server may refuse us that heard us before. A token of a file or a plugin is had anew for each call,
/// so an expiry passes by itself, as the rules of a starting server's webhooks come back (kubernetes §0: it forbids
/// everything for a moment); what lasts longer is somebody's doing. As long as the dry run asks.
const UNHEARD: Duration = Duration::from_secs(120);

/// How long one wait has not been heard.
#[derive(Default)]
pub(super) struct Patience {
    until: Option<Deadline>,
}

impl Patience {
    /// Whether a call that failed like this is tried once more.
    pub(super) fn lasts(&mut self, error: &Error) -> bool {
        may_pass(error) || self.may_be_heard(error)
    }

    /// Whether a server that does not hear us may do so soon: it heard us before, and nothing was done.
    pub(super) fn may_be_heard(&mut self, error: &Error) -> bool {
        let forbidden = error.refusal().is_some_and(|refusal| refusal.code == 403);
        let unheard = forbidden || matches!(error, Error::Unauthorized { .. } | Error::Credential { .. });
        unheard && !self.until.get_or_insert_with(|| Deadline::of(UNHEARD)).passed()
    }

    /// The server has heard us.
    pub(super) fn renew(&mut self) {
        self.until = None;
    }
}

/// Whether an error of a guest cluster is worth another look.
pub(super) fn may_pass(error: &Error) -> bool {
    error.is_retriable() || error.may_have_acted()
}
