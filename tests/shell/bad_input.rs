//! What a shell must survive.

use std::time::Duration;

use futures::future::BoxFuture;
use poolwright::base::net::{Dial, DialError, Duplex};
use poolwright::model::Fact;
use poolwright::shell::{Command, End, Query, Shell, ShellError, read_gpus};
use poolwright::sim::SimNetwork;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::{PASSWORD, access, host, open, shell, told, world, world_with};

const H100: &str =
    "{model: h100-nvl-94, count: 2, addresses: [\"0000:17:00.0\", \"0000:3b:00.0\"], mode: {vgpu: {size: same}}}";

fn dial_error(error: ShellError) -> DialError {
    match error {
        ShellError::Dial { source, .. } => source,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_not_there_down_or_closed_is_told_apart() {
    let stopped = ", shell: {users: [{name: root, password: x}]}";
    let down = format!("{}, connection: notResponding", shell(""));
    let lines = [host("esx-01", H100, stopped), host("esx-02", H100, &down), host("esx-03", H100, &shell(""))];
    let faults = "  faults: [{face: ssh, method: connect, object: esx-03, then: dropBefore}]\n";
    let world = world_with(faults, &lines.concat());
    let open = async |host: &str| dial_error(open(&world, host).await.unwrap_err());
    assert!(matches!(open("esx-01").await, DialError::Refused { port: 22, .. }));
    assert!(matches!(open("esx-02").await, DialError::NoRoute { .. }));
    assert!(matches!(open("esx-03").await, DialError::TimedOut { .. }));
    let mut nobody = access(&world, "esx-01", PASSWORD);
    nobody.host = "esx-99".to_owned();
    let error = Shell::open(&SimNetwork::new(world.clone()), &nobody).await.unwrap_err();
    assert!(told(&error).starts_with("cannot reach the shell of esx-99: the name esx-99 is not found"), "{error:?}");
    // The fault is counted: the next call gets through.
    super::open(&world, "esx-03").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_host_without_nvidia_smi_shows_nothing_and_says_why() {
    let bare = format!("            - {{names: esx-01{}}}\n", shell(""));
    let world = world(&bare);
    let shell = open(&world, "esx-01").await.unwrap();
    let output = shell.run(Command::Query(Query::Modes)).await.unwrap();
    assert_eq!(output.end, End::Exit(127));
    let seen = read_gpus(&shell).await.unwrap();
    assert_eq!((seen.gpus.len(), seen.unread), (0, vec!["sh: nvidia-smi: not found".to_owned()]));
}

/// A GPU in passthrough is not the driver's: it is not listed, and a switch of its MIG finds nothing.
#[tokio::test(start_paused = true)]
async fn a_gpu_in_passthrough_is_absent_from_the_shell() {
    let gpus = format!("{H100}, {{model: h100-nvl-94, addresses: [\"0000:af:00.0\"], mode: {{passthrough: {{}}}}}}");
    let world = world(&host("esx-01", &gpus, &shell("")));
    let shell = open(&world, "esx-01").await.unwrap();
    let seen = read_gpus(&shell).await.unwrap();
    let hidden = "0000:af:00.0".parse().unwrap();
    assert_eq!((seen.gpus.len(), seen.gpu(&hidden)), (2, Fact::unknown("nvidia-smi does not list it")));
    let output = shell.run(Command::SetMig { gpu: hidden, on: true }).await.unwrap();
    assert_eq!((output.stdout.as_str(), output.end), ("No devices were found\n", End::Exit(6)));
}

#[tokio::test(start_paused = true)]
async fn a_host_of_gpus_in_passthrough_alone_has_no_driver_to_ask() {
    let gpus = "{model: h100-nvl-94, count: 2, mode: {passthrough: {}}}";
    let world = world(&host("esx-01", gpus, &shell("")));
    let seen = read_gpus(&open(&world, "esx-01").await.unwrap()).await.unwrap();
    assert!(seen.gpus.is_empty() && seen.unread[0].starts_with("NVIDIA-SMI has failed"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_line_among_the_answers_is_kept() {
    let faults =
        "  faults: [{face: ssh, method: nvidia-smi, then: {prints: \"Unable to determine the device handle\"}}]\n";
    let world = world_with(faults, &host("esx-01", H100, &shell("")));
    let seen = read_gpus(&open(&world, "esx-01").await.unwrap()).await.unwrap();
    assert_eq!(seen.unread, ["Unable to determine the device handle"]);
    assert_eq!(seen.gpus.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_gpu_that_fell_off_the_bus_is_unknown() {
    let faults = "  faults: [{face: ssh, method: nvidia-smi, times: 9, then: {omits: \"00000000:3B:00.0\"}}]\n";
    let world = world_with(faults, &host("esx-01", H100, &shell("")));
    let seen = read_gpus(&open(&world, "esx-01").await.unwrap()).await.unwrap();
    let (there, gone) = ("0000:17:00.0".parse().unwrap(), "0000:3b:00.0".parse().unwrap());
    assert!(matches!(seen.gpu(&there), Fact::Known(_)));
    assert_eq!(seen.gpu(&gone), Fact::unknown("nvidia-smi does not list it"));
}

/// A command that hangs: the host kills it at its kill time, before we give up.
#[tokio::test(start_paused = true)]
async fn a_hanging_command_is_killed_by_the_host() {
    let faults = "  faults: [{face: ssh, method: nvidia-smi, then: hangs}]\n";
    let world = world_with(faults, &host("esx-01", H100, &shell("")));
    let shell = open(&world, "esx-01").await.unwrap();
    let start = tokio::time::Instant::now();
    let output = shell.run(Command::Query(Query::Modes)).await.unwrap();
    assert_eq!((output.end, output.stdout.as_str()), (End::Exit(137), ""));
    assert_eq!(start.elapsed().as_secs(), 30);
    // The next one answers.
    assert_eq!(read_gpus(&shell).await.unwrap().gpus.len(), 2);
}

/// Without a kill time on the host it is we who give up, and the session can be used again.
#[tokio::test(start_paused = true)]
async fn a_command_without_end_is_given_up() {
    let faults = "  faults: [{face: ssh, method: nvidia-smi, then: hangs}]\n";
    let world = world_with(faults, &host("esx-01", H100, &shell("")));
    let shell = open(&world, "esx-01").await.unwrap();
    let start = tokio::time::Instant::now();
    let error = shell.exec("nvidia-smi -L", Duration::from_secs(7)).await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(told(&error), "esx-01 did not end `nvidia-smi -L` within 7 s");
    assert!(!error.not_run() && !error.ends_shell_use());
    let output = shell.exec("nvidia-smi -L", Duration::from_secs(7)).await.unwrap();
    assert_eq!(output.stdout.lines().count(), 2, "{output:?}");
}

/// The connection breaks: before the command has run, and after. We cannot tell which.
#[tokio::test(start_paused = true)]
async fn a_broken_connection_leaves_the_effect_unknown() {
    for (fault, writes) in [("dropBefore", 0), ("dropAfter", 1)] {
        let faults = format!("  faults: [{{face: ssh, method: nvidia-smi -mig, then: {fault}}}]\n");
        let world = world_with(&faults, &host("esx-01", H100, &shell("")));
        let shell = open(&world, "esx-01").await.unwrap();
        let gpu = "0000:17:00.0".parse().unwrap();
        let error = shell.run(Command::SetMig { gpu, on: true }).await.unwrap_err();
        assert!(matches!(error, ShellError::Broken { .. }) && !error.not_run(), "{error:?}");
        assert_eq!(world.log().len(), writes);
    }
}

/// A port on which something else listens: it says this, and then nothing more.
struct Stranger(&'static [u8]);

impl Dial for Stranger {
    fn dial(&self, _: &str, _: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        let (ours, mut theirs) = duplex(64 << 10);
        let says = self.0;
        tokio::spawn(async move {
            theirs.write_all(says).await.unwrap();
            // Until we hang up.
            while theirs.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
        });
        Box::pin(async move { Ok(Box::new(ours) as Box<dyn Duplex>) })
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_ssh_server_is_given_up_in_time() {
    let world = world(&host("esx-01", H100, &shell("")));
    let access = access(&world, "esx-01", PASSWORD);
    for says in
        [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-odd\r\n", b"SSH-2.0-odd\r\n\0\0\0\x0c\n\x14garbage!!"]
    {
        let start = tokio::time::Instant::now();
        let error = Shell::open(&Stranger(says), &access).await.unwrap_err();
        assert!(matches!(error, ShellError::Deadline { .. } | ShellError::Handshake { .. }), "{says:?}: {error:?}");
        assert!(start.elapsed() <= Duration::from_secs(20) && !error.ends_shell_use(), "{says:?}: {error:?}");
    }
}
