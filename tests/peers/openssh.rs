//! OpenSSH judges both sides: its `sshd` our client, its `ssh` the simulator.
//!
//! `tests/run` links both under `target/peers/openssh`. Each `sshd` has its own keys and a port on
//! loopback. For passwords it runs in a mount namespace of its own, in which it sees another list of
//! users: nothing of this machine is changed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use poolwright::base::net::RealNetwork;
use poolwright::model::HostKeyPin;
use poolwright::shell::{Access, Credential, End, KnownHosts, Shell, ShellError};
use poolwright::sim::{ServedShell, World, serve_shells};
use secrecy::SecretString;

use crate::support::peer;

const KINDS: [&str; 3] = ["rsa", "ecdsa", "ed25519"];

/// The password of the users here.
const PASSWORD: &str = "marked-p33r-pa55";

/// A key pair in a folder, made by `ssh-keygen`.
fn make_key(dir: &Path, name: &str, kind: &str) -> PathBuf {
    let path = dir.join(name);
    let made = Command::new("ssh-keygen").args(["-q", "-t", kind, "-N", "", "-f"]).arg(&path).status().unwrap();
    assert!(made.success());
    path
}

fn public(path: &Path) -> String {
    fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned()
}

/// An `sshd`, ended when it is dropped.
struct Sshd {
    child: Child,
    port: u16,
    dir: tempfile::TempDir,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sshd {
    /// One with a host key of each kind and a root who has a key of each kind.
    fn start() -> Option<Self> {
        Self::with("UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n", None)
    }

    /// One that knows the user `peer` by a password.
    fn with_passwords(settings: &str) -> Option<Self> {
        let hash = Command::new("openssl").args(["passwd", "-6", PASSWORD]).output().unwrap().stdout;
        Self::with(settings, Some(String::from_utf8(hash).unwrap().trim()))
    }

    fn with(settings: &str, hash: Option<&str>) -> Option<Self> {
        let program = peer("openssh/sshd")?.canonicalize().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut config = format!(
            "ListenAddress 127.0.0.1:{port}\nPidFile none\nStrictModes no\nPermitRootLogin yes\nAuthorizedKeysFile {}\n{settings}",
            at("authorized").display()
        );
        let mut authorized = String::new();
        for kind in KINDS {
            let host = make_key(dir.path(), &format!("host_{kind}"), kind);
            config.push_str(&format!("HostKey {}\n", host.display()));
            authorized.push_str(&format!("{}\n", public(&make_key(dir.path(), &format!("user_{kind}"), kind))));
        }
        fs::write(at("authorized"), authorized).unwrap();
        fs::write(at("config"), config).unwrap();
        let mut command = match hash {
            None => Command::new(&program),
            Some(hash) => {
                fs::write(
                    at("passwd"),
                    "root:x:0:0::/:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\npeer:x:1234:1234::/:/bin/sh\n",
                )
                .unwrap();
                fs::write(at("shadow"), format!("root:*:1::::::\nsshd:!:1::::::\npeer:{hash}:1::::::\n")).unwrap();
                let unix = "required pam_unix.so\n";
                fs::write(at("pam"), format!("auth {unix}account {unix}session {unix}")).unwrap();
                let over = [("passwd", "/etc/passwd"), ("shadow", "/etc/shadow"), ("pam", "/etc/pam.d/sshd")];
                let mounts = over.map(|(own, real)| format!("mount --bind {} {real} && ", at(own).display())).concat();
                let mut command = Command::new("unshare");
                command.args(["-m", "sh", "-c", &format!("{mounts}exec \"$0\" \"$@\"")]).arg(&program);
                command
            }
        };
        let mut child = command.args(["-D", "-e", "-f"]).arg(at("config")).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("Server listening") {
            line.clear();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "sshd does not listen");
        }
        // It goes on telling, and must not find a closed pipe.
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        Some(Self { child, port, dir })
    }

    fn pin(&self, name: &str) -> HostKeyPin {
        public(&self.dir.path().join(name)).parse().unwrap()
    }

    fn access(&self, user: &str, pin: HostKeyPin, credential: Credential) -> Access {
        Access { host: "127.0.0.1".to_owned(), port: self.port, pins: vec![pin], user: user.to_owned(), credential }
    }

    fn key(&self, name: &str) -> Credential {
        Credential::Key(SecretString::from(fs::read_to_string(self.dir.path().join(name)).unwrap()))
    }

    async fn root(&self) -> Shell {
        let access = self.access("root", self.pin("host_ed25519"), self.key("user_ed25519"));
        Shell::open(&RealNetwork, &access).await.unwrap()
    }
}

fn password(text: &str) -> Credential {
    Credential::Password(SecretString::from(text))
}

/// The SHA-256 of a key, as `ssh-keygen -l` shows it.
fn fingerprint(path: &Path) -> HostKeyPin {
    let shown = Command::new("ssh-keygen").arg("-lf").arg(path).output().unwrap().stdout;
    String::from_utf8(shown).unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_host_key_of_each_kind_is_pinned_by_itself_and_by_its_fingerprint() {
    let Some(sshd) = Sshd::start() else { return };
    let other = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let name = format!("host_{kind}");
        let wrong = make_key(other.path(), &name, kind);
        let right = sshd.dir.path().join(&name);
        for pin in [sshd.pin(&name), fingerprint(&right)] {
            let shell = Shell::open(&RealNetwork, &sshd.access("root", pin, sshd.key("user_ed25519"))).await.unwrap();
            shell.close().await;
        }
        for pin in [public(&wrong).parse().unwrap(), fingerprint(&wrong)] {
            let access = sshd.access("root", pin, sshd.key("user_ed25519"));
            let error = Shell::open(&RealNetwork, &access).await.unwrap_err();
            let ShellError::HostKey { shown, .. } = &error else { panic!("{kind}: {error:?}") };
            assert!(shown.contains(&fingerprint(&right).to_string()), "{kind}: {shown:?}");
        }
    }
}

#[tokio::test]
async fn a_user_key_of_each_kind_logs_in() {
    let Some(sshd) = Sshd::start() else { return };
    for kind in KINDS {
        let access = sshd.access("root", sshd.pin("host_ed25519"), sshd.key(&format!("user_{kind}")));
        let shell = Shell::open(&RealNetwork, &access).await.unwrap_or_else(|error| panic!("{kind}: {error:?}"));
        assert_eq!(shell.exec("echo $0", Duration::from_secs(20)).await.unwrap().end, End::Exit(0));
        shell.close().await;
    }
    // The host's own key is a key that nobody authorised.
    let access = sshd.access("root", sshd.pin("host_ed25519"), sshd.key("host_rsa"));
    let error = Shell::open(&RealNetwork, &access).await.unwrap_err();
    assert!(matches!(error, ShellError::LoginRefused { .. }), "{error:?}");
    // It takes no password at all, and is told none.
    let access = sshd.access("root", sshd.pin("host_ed25519"), password(PASSWORD));
    let error = Shell::open(&RealNetwork, &access).await.unwrap_err().to_string();
    assert_eq!(error, "127.0.0.1 refuses the login of root: it takes no password, only publickey");
}

#[tokio::test]
async fn a_password_logs_in_both_ways() {
    for settings in [
        "UsePAM no\nPasswordAuthentication yes\nKbdInteractiveAuthentication no\n",
        "UsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication yes\n",
    ] {
        let Some(sshd) = Sshd::with_passwords(settings) else { return };
        let access = |text| sshd.access("peer", sshd.pin("host_ed25519"), password(text));
        let shell = Shell::open(&RealNetwork, &access(PASSWORD)).await.unwrap_or_else(|e| panic!("{settings}: {e:?}"));
        let output = shell.exec("id -un; exit 7", Duration::from_secs(20)).await.unwrap();
        assert_eq!((output.stdout.as_str(), output.end), ("peer\n", End::Exit(7)));
        shell.close().await;
        let error = Shell::open(&RealNetwork, &access("wrong")).await.unwrap_err();
        assert!(matches!(error, ShellError::LoginRefused { .. }) && error.ends_shell_use(), "{settings}: {error:?}");
    }
}

#[tokio::test]
async fn a_command_ends_in_every_way() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = sshd.root().await;
    let run = async |line: &str| shell.exec(line, Duration::from_secs(20)).await.unwrap();
    let output = run("echo out; echo err >&2; exit 3").await;
    assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.end), ("out\n", "err\n", End::Exit(3)));
    let output = run("kill -TERM $$").await;
    assert_eq!(output.end, End::Signal("TERM".to_owned()));
    let output = run("head -c 3000000 /dev/zero | tr '\\0' x; exit 5").await;
    assert_eq!((output.stdout.len(), output.cut, output.end), (256 << 10, true, End::Exit(5)));
    // Killed by its own kill time, long before we would give up.
    let output = run("timeout -s KILL 1 sleep 600").await;
    assert!(matches!(output.end, End::Exit(137) | End::Signal(_)), "{output:?}");
    assert_eq!(run("nvidia-smi -L").await.end, End::Exit(127));
    // And given up by us; the session goes on.
    let error = shell.exec("exec sleep 600", Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(error, ShellError::Deadline { seconds: 1, .. }), "{error:?}");
    assert_eq!(run("echo on").await.stdout, "on\n");
    shell.close().await;
}

const WORLD: &str = r#"
apiVersion: poolwright/v1
kind: World
metadata: {name: peers}
spec:
  readings: {sshPassword: ASKS}
  vcenter: {address: vc.lab, users: [{name: pw@vsphere.local, password: lab}]}
  datacenters:
    - path: /DC1
      clusters:
        - name: gpu-a
          hosts:
            - names: esx-01
              driver: {component: NVD-AIE-800, version: 580.95.02}
              gpus: [{model: h100-nvl-94, count: 2, mode: {vgpu: {size: same}}}]
              shell: {monitor: stopped, ssh: {running: true}, users: [{name: root, password: PASSWORD, keys: ["KEY"]}]}
"#;

/// What `ssh` with these options comes to: standard output, and the exit status.
async fn ssh(program: &Path, dir: &Path, port: u16, options: &[&str], line: &str) -> (String, Option<i32>) {
    let ask = dir.join("ask");
    fs::write(&ask, format!("#!/bin/sh\necho {PASSWORD}\n")).unwrap();
    fs::set_permissions(&ask, fs::Permissions::from_mode(0o700)).unwrap();
    let known = format!("UserKnownHostsFile={}", dir.join("known_hosts").display());
    let output = tokio::process::Command::new(program)
        .args(["-F", "none", "-o", &known, "-o", "StrictHostKeyChecking=yes", "-o", "NumberOfPasswordPrompts=1"])
        .args(options)
        .args(["-p", &port.to_string(), "root@127.0.0.1", line])
        .env("SSH_ASKPASS", &ask)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env_remove("SSH_AUTH_SOCK")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[tokio::test]
async fn ssh_logs_in_to_a_simulated_host_and_switches_mig() {
    let Some(program) = peer("openssh/ssh") else { return };
    for asks in ["keyboardInteractive", "password"] {
        let dir = tempfile::tempdir().unwrap();
        let key = make_key(dir.path(), "user", "ed25519");
        let text = WORLD.replace("ASKS", asks).replace("PASSWORD", PASSWORD).replace("KEY", &public(&key));
        let world = World::parse("peers", text.as_bytes()).unwrap();
        let served: Vec<ServedShell> = serve_shells(&world, [127, 0, 0, 1].into()).await.unwrap();
        let port = served[0].addr.port();
        fs::write(dir.path().join("known_hosts"), format!("{}\n", served[0].known_host)).unwrap();
        assert_eq!(KnownHosts::parse(&served[0].known_host).unwrap().pins("127.0.0.1", port).len(), 1);
        let by_password = ["-o", "PubkeyAuthentication=no"];
        let (list, code) = ssh(&program, dir.path(), port, &by_password, "nvidia-smi -L").await;
        assert_eq!((list.lines().count(), code), (2, Some(0)), "{asks}: {list}");
        let identity = format!("IdentityFile={}", key.display());
        let by_key = ["-o", &identity, "-o", "IdentitiesOnly=yes", "-o", "PasswordAuthentication=no"];
        let (said, code) = ssh(&program, dir.path(), port, &by_key, "nvidia-smi -i 0 -mig 1").await;
        assert!(said.ends_with("All done.\n") && code == Some(0), "{asks}: {said}");
        let query = "nvidia-smi --query-gpu=index,mig.mode.current --format=csv,noheader";
        assert_eq!(ssh(&program, dir.path(), port, &by_key, query).await.0, "0, Enabled\n1, Disabled\n");
        assert_eq!(ssh(&program, dir.path(), port, &by_key, "reboot").await.1, Some(127));
        // Another host key: ssh turns away.
        let other = served[0].known_host.replace(key_of(&served[0].known_host), key_of(&public(&key)));
        fs::write(dir.path().join("known_hosts"), format!("{other}\n")).unwrap();
        assert_eq!(ssh(&program, dir.path(), port, &by_key, "nvidia-smi -L").await.1, Some(255));
    }
}

/// The base64 of a line with a key.
fn key_of(line: &str) -> &str {
    line.split(' ').find(|word| word.starts_with("AAAA")).unwrap()
}
