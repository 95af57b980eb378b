//! The shells as a Site gives them: users, host keys, and the login that is the last.

use poolwright::inventory;
use poolwright::model::{Fact, ShellLogin};
use poolwright::observe::{NoShell, Shells, ShellsError};
use poolwright::shell::{ShellError, read_gpus};
use poolwright::sim::{SimNetwork, World};

use super::{PASSWORD, host, pins, shell, told, world, wrong_logins};

const H100: &str = "{model: h100-nvl-94, count: 2, mode: {vgpu: {size: same}}}";

/// A folder with credentials and host keys, and the Site that refers to them.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new(world: &World, password: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("password"), password).unwrap();
        std::fs::write(folder.path().join("known_hosts"), world.known_hosts()).unwrap();
        Self { folder }
    }

    /// `DIR` stands for the folder.
    fn read(&self, shell: &str) -> Result<Option<Shells>, ShellsError> {
        let shell = shell.replace("DIR", &self.folder.path().display().to_string());
        let text = format!(
            "apiVersion: poolwright/v1\nkind: Site\nmetadata: {{name: lab}}\nspec:\n  vcenter: {{address: vc.lab, \
             credentials: {{user: pw@vsphere.local, password: \"env:LAB\"}}}}\n  shell: {shell}\n"
        );
        let loaded = poolwright::profile::load(&[("site.yaml".to_owned(), text.into_bytes())]);
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let site: &inventory::Site = &loaded.sites[0].spec;
        Shells::of(site.shell.as_ref().unwrap())
    }

    async fn shells(&self, shell: &str) -> Result<Option<Shells>, ShellsError> {
        match self.read(shell)? {
            Some(shells) => shells.with_credentials().await.map(Some),
            None => Ok(None),
        }
    }

    async fn by_file(&self) -> Shells {
        let text = "{way: direct, users: [{hosts: esx-01, user: root, password: \"file:DIR/password\"}], hostKeys: {file: DIR/known_hosts}}";
        self.shells(text).await.unwrap().unwrap()
    }
}

fn two_hosts() -> World {
    world(&(host("esx-01", H100, &shell("")) + &host("esx-02", H100, &shell(""))))
}

#[tokio::test(start_paused = true)]
async fn a_site_logs_in_by_the_file_of_host_keys() {
    let world = two_hosts();
    let shells = Site::new(&world, PASSWORD).by_file().await;
    let network = SimNetwork::new(world.clone());
    let session = shells.open(&network, "esx-01").await.unwrap();
    assert_eq!(read_gpus(&session).await.unwrap().gpus.len(), 2);
    assert!(shells.login("esx-02").is_absent());
    let error = shells.open(&network, "esx-02").await.unwrap_err();
    assert_eq!(told(&error), "no user of the Site's `shell` logs in to esx-02");
}

/// Who would log in is known without a credential, and without one nobody logs in.
#[tokio::test(start_paused = true)]
async fn who_logs_in_is_known_without_a_credential() {
    let world = two_hosts();
    let pinned = format!("hostKeys: {{pins: {{esx-01: {}}}}}", pins(&world, "esx-01")[0]);
    let users = "users: [{hosts: \"esx-*\", user: root, password: \"exec:nobody-has-this-program\"}]";
    let shells = Site::new(&world, PASSWORD).read(&format!("{{way: direct, {users}, {pinned}}}")).unwrap().unwrap();
    let login = |pinned| Fact::Known(ShellLogin { user: "root".into(), pinned });
    assert_eq!(shells.login("esx-01"), login(true));
    assert_eq!(shells.login("esx-02"), login(false));
    assert!(shells.login("other").is_absent());
    let error = shells.open(&SimNetwork::new(world.clone()), "esx-01").await.unwrap_err();
    assert!(matches!(error, NoShell::NoCredential { .. }), "{error:?}");
    assert_eq!(wrong_logins(&world), 0);
}

/// A host without a pin is never called; a pin of the Site goes before the file.
#[tokio::test(start_paused = true)]
async fn pins_decide_who_is_called() {
    let world = two_hosts();
    let site = Site::new(&world, PASSWORD);
    let users = "users: [{user: root, password: \"file:DIR/password\"}]";
    let own = &pins(&world, "esx-01")[0];
    let shells = site.shells(&format!("{{way: direct, {users}, hostKeys: {{pins: {{ESX-01: {own}}}}}}}")).await;
    let shells = shells.unwrap().unwrap();
    let network = SimNetwork::new(world.clone());
    assert!(shells.open(&network, "esx-01").await.is_ok());
    assert!(shells.pins("esx-02").is_empty());
    let error = shells.open(&network, "esx-02").await.unwrap_err();
    assert_eq!(told(&error), "no host key of esx-02 is pinned, so its shell is not used");
    let other = &pins(&world, "esx-02")[0];
    let keys = format!("hostKeys: {{file: DIR/known_hosts, pins: {{esx-01: {other}}}}}");
    let shells = site.shells(&format!("{{way: direct, {users}, {keys}}}")).await.unwrap().unwrap();
    let error = shells.open(&network, "esx-01").await.unwrap_err();
    assert!(matches!(error, NoShell::Shell(ShellError::HostKey { .. })), "{error:?}");
    assert_eq!(wrong_logins(&world), 0);
}

/// One login that fails ends it for this host; what the journal of the run says, too.
#[tokio::test(start_paused = true)]
async fn a_refused_login_is_the_last() {
    let world = two_hosts();
    let shells = Site::new(&world, "wrong").by_file().await;
    let network = SimNetwork::new(world.clone());
    let error = shells.open(&network, "esx-01").await.unwrap_err();
    assert!(matches!(error, NoShell::Shell(ShellError::LoginRefused { .. })), "{error:?}");
    for _ in 0..3 {
        let error = shells.open(&network, "esx-01").await.unwrap_err();
        assert!(matches!(error, NoShell::Ended { .. }), "{error:?}");
    }
    assert_eq!(wrong_logins(&world), 1);
    let resumed = Site::new(&world, PASSWORD).by_file().await;
    resumed.end("esx-01");
    assert!(matches!(resumed.open(&network, "esx-01").await.unwrap_err(), NoShell::Ended { .. }));
}

/// A host that is down costs no try: it may be asked again.
#[tokio::test(start_paused = true)]
async fn what_was_no_login_does_not_end_it() {
    let faults = "  faults: [{face: ssh, method: connect, then: dropBefore}]\n";
    let world = super::world_with(faults, &host("esx-01", H100, &shell("")));
    let shells = Site::new(&world, PASSWORD).by_file().await;
    let network = SimNetwork::new(world.clone());
    assert!(matches!(shells.open(&network, "esx-01").await.unwrap_err(), NoShell::Shell(ShellError::Dial { .. })));
    assert!(shells.open(&network, "esx-01").await.is_ok());
}

#[tokio::test]
async fn hand_off_has_no_shells_and_what_is_missing_is_named() {
    let site = Site::new(&two_hosts(), PASSWORD);
    assert!(site.shells("{way: handoff}").await.unwrap().is_none());
    let users = "users: [{user: root, password: \"file:DIR/nothing\"}]";
    let error =
        site.shells(&format!("{{way: direct, {users}, hostKeys: {{file: DIR/known_hosts}}}}")).await.unwrap_err();
    assert!(
        told(&error)
            .starts_with("cannot get the credential of root for the shell of hosts (site.yaml:6:55): cannot read"),
        "{error:?}"
    );
    let users = "users: [{user: root, password: \"file:DIR/password\"}]";
    let error = site.shells(&format!("{{way: direct, {users}, hostKeys: {{file: DIR/password}}}}")).await.unwrap_err();
    let shown = told(&error);
    assert!(shown.contains("line 1 of the known hosts") && !shown.contains(PASSWORD), "{shown}");
    assert!(site.shells(&format!("{{way: direct, {users}, hostKeys: {{file: DIR/no}}}}")).await.is_err());
}
