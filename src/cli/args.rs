//! What can be typed. The doc comments are the help texts.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::document::Span;
use crate::report::{Again, quoted};

/// Beside the documents, as people expect of a tool that works on a folder of a repository.
const DEFAULT_STATE: &str = ".poolwright";

const EXAMPLES: &str = "\
Examples:
  See the whole of it on a simulated fleet, without any infrastructure:
    poolwright demo

  Check documents offline, look at the fleet, see what would change:
    poolwright validate
    poolwright discover
    poolwright plan --out plan.json

  Change it: what was approved is what is done. Go on after an interruption:
    poolwright apply plan.json
    poolwright status
    poolwright resume";

const TEMPLATE: &str = "\
{about}

{before-help}{usage-heading} {usage}

{all-args}{after-help}";

const AFTER: &str = "\
Profiles say what the GPUs of a pool of hosts should be: passthrough, or time-sliced vGPU of one
size or of several. A plan says what that changes and what it costs. Applying the plan takes one
host after the other through maintenance mode, changes it, reboots it where needed, verifies what
is active, and gives it back. Whatever happens on the way, the journal and a marker on the host say
how it stands, and the run can be resumed.

Exit codes:
  0 done, or nothing to do        7 another run holds the hosts or the state directory
  1 internal error                9 halted: the hosts are safe, work is left
  2 changes are present           10 hosts failed or wait for a person
  3 a document or argument is wrong    130, 143 interrupted; the journal is valid
  5 a system cannot be reached, or refuses the login
  6 the plan is spent, stale, or was made from other documents

Environment:
  POOLWRIGHT_STATE   the state directory, as --state
  POOLWRIGHT_LOG     a log filter, as `poolwright=debug`; wins over -v
  NO_COLOR           set to anything: no colour";

/// Puts the GPUs of ESXi hosts into the mode that git says
#[derive(Debug, Parser)]
#[command(version, before_help = EXAMPLES, after_help = AFTER, help_template = TEMPLATE)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Log to stderr: -v what is done, -vv each call, -vvv everything. Secrets are cut out.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Validate(ValidateArgs),
    Schema(SchemaArgs),
    Catalog(CatalogArgs),
    Discover(DiscoverArgs),
    Plan(PlanArgs),
    Apply(ApplyArgs),
    Resume(ResumeArgs),
    Abort(AbortArgs),
    Status(StatusArgs),
    Sim(SimArgs),
    Demo(DemoArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// A path as a shell reads it back, in a command that is proposed.
pub fn typed(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Command {
    /// The options of this command that proposed ones need, to reach what it reaches.
    pub fn again(&self) -> Again {
        let mut again = Again::default();
        let mut reach = |documents: &Documents, site: &Option<String>, world: &World| {
            again.documents = documents.paths.iter().map(|path| text(path)).collect();
            again.site.clone_from(site);
            world.again(&mut again);
        };
        match self {
            Self::Validate(args) => again.documents = args.documents.iter().map(|path| text(path)).collect(),
            Self::Discover(args) => reach(&args.documents, &args.site, &args.world),
            Self::Plan(args) => reach(&args.documents, &args.site, &args.world),
            Self::Apply(args) => {
                args.run.again(&mut again);
                again.site.clone_from(&args.site);
            }
            Self::Resume(args) => args.args.again(&mut again),
            Self::Abort(args) => args.args.again(&mut again),
            Self::Status(args) => args.state.again(&mut again),
            Self::Sim(args) => again.world = args.world.as_deref().map(text),
            Self::Schema(_) | Self::Catalog(_) | Self::Demo(_) | Self::Completions(_) | Self::Man(_) => {}
        }
        again
    }
}

/// Text for people or JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Where the documents are.
#[derive(Debug, Args)]
pub struct Documents {
    /// Files or folders with documents; folders are searched for *.yaml and *.yml [default: profiles
    /// inventories]
    #[arg(short = 'd', long = "documents", value_name = "PATH", num_args = 1..)]
    pub paths: Vec<PathBuf>,
}

/// Which fleet.
#[derive(Debug, Args)]
pub struct World {
    /// Work on the simulated fleet of this World document instead of a vCenter
    ///
    /// Everything happens in this process, and hours pass in milliseconds. What changed is kept
    /// beside the document in FILE.state, so that the next command finds the fleet as this one left
    /// it. `poolwright sim reset FILE` puts it back.
    #[arg(long = "world", value_name = "FILE")]
    world: Option<PathBuf>,
}

impl World {
    /// The World document, if the fleet is a simulated one.
    pub fn file(&self) -> Option<&Path> {
        self.world.as_deref()
    }

    fn again(&self, again: &mut Again) {
        again.world = self.world.as_deref().map(text);
    }
}

/// Where runs are kept.
#[derive(Debug, Args)]
pub struct State {
    /// The folder of plans, journals and locks
    ///
    /// It must outlive the process, and in CI the job: keep it on a volume or as a cache. Where it is
    /// lost, `resume --from-live PLAN` reads the markers on the hosts instead.
    #[arg(long = "state", value_name = "DIR", env = "POOLWRIGHT_STATE", hide_env_values = true, default_value = DEFAULT_STATE)]
    pub dir: PathBuf,
}

impl State {
    fn again(&self, again: &mut Again) {
        again.state = Some(&self.dir).filter(|dir| **dir != Path::new(DEFAULT_STATE)).map(|dir| text(dir));
    }
}

/// Check documents without any connection
///
/// Reads every document, checks its fields, the references between documents, and every `offers`
/// combination against the catalogue: whether it fits a GPU of the pool's model in its mode. All
/// mistakes are shown, not only the first. Nothing is connected to, and no credential is read.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Files or folders with documents; folders are searched for *.yaml and *.yml [default: profiles
    /// inventories]
    #[arg(value_name = "PATH")]
    pub documents: Vec<PathBuf>,
    /// Print text or JSON
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

/// Print the JSON Schema of a kind of document
///
/// For editors and for checks in other languages. It holds exactly the fields that this version
/// reads.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// GpuPool, Site or World
    #[arg(value_name = "KIND")]
    pub kind: String,
}

/// Show what is known of GPU models, and whether vGPU types fit together
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CatalogArgs {
    #[command(subcommand)]
    pub command: Option<CatalogCommand>,
    /// The model to show, by its id; without one all models are listed
    #[arg(value_name = "MODEL")]
    pub model: Option<String>,
    /// Print text or JSON
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    Fit(FitArgs),
}

/// Say whether a combination of vGPU types fits one GPU
///
/// The answer is yes, no, or unknown where the catalogue holds no source for a fact that decides.
/// A no names the first type that does not fit, and the nearest combinations that do.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// The model, by its id, as `h100-nvl-94`
    #[arg(value_name = "MODEL")]
    pub model: String,
    /// How the GPU is shared
    #[arg(value_name = "MODE", value_enum)]
    pub mode: FitModeArg,
    /// vGPU types and how many of each, as `nvidia_h100l-47c=2`
    #[arg(value_name = "TYPE=N", required = true)]
    pub types: Vec<String>,
    /// What runs on the GPU already: TYPE=N, or a GPU instance as PROFILE@START
    #[arg(long, value_name = "WHAT", num_args = 1..)]
    pub beside: Vec<String>,
    /// Print text or JSON
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

/// Modes of `catalog fit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub enum FitModeArg {
    /// Time-sliced vGPUs of one size.
    Same,
    /// Time-sliced vGPUs of several sizes.
    Mixed,
    /// MIG-backed vGPUs.
    MigVgpu,
}

/// Look at the fleet, reading only
///
/// Shows each host of the site with its GPUs, their configured and active mode, what waits for a
/// reboot, the VMs on it, and what could not be read. One host that cannot be read does not hide the
/// others.
#[derive(Debug, Args)]
pub struct DiscoverArgs {
    #[command(flatten)]
    pub documents: Documents,
    /// The site, where the documents have more than one
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    #[command(flatten)]
    pub world: World,
    /// Print text or JSON
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Write the JSON into this file, whatever is printed
    #[arg(long, value_name = "FILE")]
    pub json_into: Option<PathBuf>,
}

/// Say what applying the profiles would change, reading only
///
/// Each host of the pools is compared with its profile. The plan says what each host is and should
/// be, every step, reboots and minutes as expected and at most, what capacity is left at the worst
/// moment, and for every host that is not acted on why. It names hosts, modes and bounds; `apply`
/// does that and nothing else.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub documents: Documents,
    /// The site, where the documents have more than one
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    #[command(flatten)]
    pub world: World,
    /// Save the plan, to be read, approved and applied
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// End with 2 if any host is not as its profile wants it: to be changed, refused or unknown
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Print text or JSON
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Write the JSON into this file, whatever is printed
    #[arg(long, value_name = "FILE")]
    pub json_into: Option<PathBuf>,
}

/// Change the fleet as a plan says
///
/// Applies a saved plan, or plans, shows the plan and asks. Hosts are visited one after the other.
/// Before each step the host is read again and compared with what the step expects; after it, with
/// what should be active. A host that is not as expected is left alone and named; one that fails
/// stops the run, stays closed, and the report says how it stands and what to do.
///
/// The first Ctrl-C lets the running step end and stops; the second stops at once. `resume` goes on.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The plan to apply, as saved by `plan --out`; it is not asked about again
    #[arg(value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// Without PLAN: do not ask before the plan is applied
    #[arg(short, long, conflicts_with = "plan")]
    pub yes: bool,
    #[command(flatten)]
    pub handoff: HandoffArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Without PLAN: the site, where the documents have more than one
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    pub site: Option<String>,
}

/// How long a person is waited for who switches MIG at the shell of a host.
#[derive(Debug, Args)]
pub struct HandoffArgs {
    /// Wait so long for a person who types at a host's shell what is printed, as `45m` or `1h 30m`
    /// [default: 30m on a terminal, else 0s]
    ///
    /// For hosts whose Site does not say `shell: {way: direct}`. On a terminal Enter says that it is
    /// typed. After that time the host stays in maintenance mode, and the command ends with 10; the
    /// report has the commands and how to go on.
    #[arg(long, value_name = "DURATION")]
    pub handoff_wait: Option<Span>,
}

/// What every command that changes hosts takes.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Files or folders with documents; for a saved plan those it was made from, if not given
    #[arg(short, long = "documents", value_name = "PATH", num_args = 1..)]
    pub documents: Vec<PathBuf>,
    #[command(flatten)]
    pub world: World,
    #[command(flatten)]
    pub state: State,
    /// Print the final report as text or JSON
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Write the JSON of the final report into this file, whatever is printed
    #[arg(long, value_name = "FILE")]
    pub json_into: Option<PathBuf>,
}

impl RunArgs {
    fn again(&self, again: &mut Again) {
        again.documents = self.documents.iter().map(|path| text(path)).collect();
        self.world.again(again);
        self.state.again(again);
    }
}

/// Go on with a run that was interrupted
///
/// What is there now decides, not what was done last: every host is read again, a running task is
/// waited for and not started twice, and what is done already is not done again. Without RUN the
/// only unfinished run is taken up.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run, as `status` shows it
    #[arg(value_name = "RUN", conflicts_with = "from_live")]
    pub run: Option<String>,
    /// The journal is lost: go on from this plan and the markers on the hosts
    #[arg(long, value_name = "PLAN")]
    pub from_live: Option<PathBuf>,
    /// Visit this host again, whose visit failed, after its cause is gone
    #[arg(long, value_name = "HOST", conflicts_with = "from_live")]
    pub retry: Option<String>,
    /// The commands that were printed for this host are typed at its shell
    #[arg(long, value_name = "HOST", conflicts_with_all = ["from_live", "retry"])]
    pub done: Option<String>,
    #[command(flatten)]
    pub handoff: HandoffArgs,
    #[command(flatten)]
    pub args: RunArgs,
}

/// Give back the hosts of an interrupted run that are not changed yet
///
/// A host on which no mode was written is taken out of maintenance mode, checked and given back. One
/// whose modes are written only goes forward: it is left as it is, and the report says how.
#[derive(Debug, Args)]
pub struct AbortArgs {
    /// The run, as `status` shows it; without it the only unfinished run
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Leave this host to somebody as it stands, where its visit cannot go on: what was changed for its
    /// shell is put back, and the mark of the run goes. A host in maintenance mode stays in it; plan it
    /// again with `rollout.foundInMaintenance: change`, or see to it by hand
    #[arg(long, value_name = "HOST")]
    pub give_up: Option<String>,
    #[command(flatten)]
    pub args: RunArgs,
}

/// Show runs, how each host stands, and what to do next
///
/// Reads the state directory and connects to nothing, so that it takes neither documents nor `--world`: a run
/// remembers how it was reached, and the commands that are proposed say it.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The run to show; without it the latest one, and the others as a list
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    #[command(flatten)]
    pub state: State,
    /// Print text or JSON
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

/// Serve a simulated fleet on a port, for this program and for other vSphere clients
///
/// The address and the thumbprint of its certificate are printed first, then where the shell of each
/// host with users listens. The fleet lives as long as the command; its state is kept in FILE.state.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SimArgs {
    #[command(subcommand)]
    pub command: Option<SimCommand>,
    /// The World document
    #[arg(long, value_name = "FILE", required = true)]
    pub world: Option<PathBuf>,
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Write the host keys of the shells, for `ssh -o UserKnownHostsFile=FILE`
    #[arg(long, value_name = "FILE")]
    pub known_hosts: Option<PathBuf>,
    /// Write a kubeconfig with a context for each guest cluster, by its name
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Let the fleet's own durations pass so many times faster
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub speed: u32,
}

#[derive(Debug, Subcommand)]
pub enum SimCommand {
    Reset(ResetArgs),
    KnownHosts(KnownHostsArgs),
    Kubeconfig(KubeconfigArgs),
}

/// Put a simulated fleet back to what its document says
#[derive(Debug, Args)]
pub struct ResetArgs {
    /// The World document
    #[arg(value_name = "FILE")]
    pub world: PathBuf,
}

/// Print the host keys of the simulated shells, for the `shell.hostKeys` of a Site used with `--world`
///
/// They are made from the names of the hosts, so they are always the same.
#[derive(Debug, Args)]
pub struct KnownHostsArgs {
    /// The World document
    #[arg(value_name = "FILE")]
    pub world: PathBuf,
}

/// Print a kubeconfig for the simulated guest clusters, for the `guests` of a Site used with `--world`
///
/// It has a context for each cluster, by its name, and the addresses of the document. `sim --kubeconfig`
/// writes one for the ports that it opens.
#[derive(Debug, Args)]
pub struct KubeconfigArgs {
    /// The World document
    #[arg(value_name = "FILE")]
    pub world: PathBuf,
}

/// Show the main job on a simulated fleet
///
/// Looks at a fleet of H100 NVL, A100 and L40S hosts, shows profiles, plans, applies the plan with
/// one thing that goes wrong on the way, and reports. Each step is shown with the command that does
/// it; the folder keeps everything, so that the same commands work there afterwards.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The folder to create; it must not exist, or hold an earlier demo
    #[arg(long, value_name = "DIR", default_value = "poolwright-demo")]
    pub dir: PathBuf,
}

/// Print a script that completes commands in a shell
///
/// For bash: `source <(poolwright completions bash)`; for others as their manuals say.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Print the manual page of the program, or of a command
///
/// In the form that `man` reads: `poolwright man plan | man -l -` shows it, and
/// `poolwright man plan > ~/.local/share/man/man1/poolwright-plan.1` keeps it.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command, as `plan` or `catalog fit`; without one the page of the program
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// What is proposed is what can be typed: the report knows which verb takes which option.
    #[test]
    fn proposed_commands_have_the_options_that_their_verbs_take() {
        for verb in Cli::command().get_subcommands() {
            let takes: Vec<String> = ["documents", "site", "world", "state"]
                .into_iter()
                .filter(|name| verb.get_arguments().any(|argument| argument.get_long() == Some(name)))
                .map(|name| format!("--{name}"))
                // A plan is of its site, and `sim` is asked for nothing but its world.
                .filter(|option| {
                    !matches!((verb.get_name(), option.as_str()), ("apply", "--site") | ("sim", "--world"))
                })
                .collect();
            assert_eq!(Again::takes(verb.get_name()), takes, "{}", verb.get_name());
        }
    }
}
