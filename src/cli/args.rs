//! What can be typed. The doc comments are the help texts.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Beside the documents, as people expect of a tool that works on a folder of a repository.
const DEFAULT_STATE: &str = ".poolwright";

const EXAMPLES: &str = "\
Examples:
  Check documents offline:
    poolwright validate profiles inventories

  Ask whether vGPU types fit one GPU together:
    poolwright catalog fit h100-nvl-94 mixed nvidia_h100l-47c=1 nvidia_h100l-23c=2

  See how a run stands:
    poolwright status";

const TEMPLATE: &str = "\
{about}

{before-help}{usage-heading} {usage}

{all-args}{after-help}";

const AFTER: &str = "\
Profiles say what the GPUs of a pool of hosts should be: passthrough, or time-sliced vGPU of one size
or of several. A plan says what that changes and what it costs. Applying the plan takes one host after
the other through maintenance mode, changes it, reboots it where needed, verifies what is active, and
gives it back. Whatever happens on the way, the journal and a marker on the host say how it stands,
and the run can be resumed.

Exit codes:
  0 done, or nothing to do        7 another run holds the hosts or the state directory
  1 internal error                9 halted: the hosts are safe, work is left
  2 changes are present           10 hosts failed or wait for a person
  3 a document or argument is wrong    130, 143 interrupted; the journal is valid
  5 a system cannot be reached, or refuses the login
  6 the plan is spent, stale, or was made from other documents

Environment:
  POOLWRIGHT_STATE   the state directory, as --state
  POOLWRIGHT_LOG     a log filter, as `debug` or `poolwright::vim25=trace`; wins over -v
  NO_COLOR           set to anything: no colour";

/// Puts the GPUs of ESXi hosts into the mode that git says
#[derive(Debug, Parser)]
#[command(name = "poolwright", version, before_help = EXAMPLES, after_help = AFTER, help_template = TEMPLATE)]
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
    Status(StatusArgs),
}

/// Text for people or JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
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
    /// As it must be typed again in a command that is proposed; empty for the default.
    pub fn typed(&self) -> String {
        if self.dir == Path::new(DEFAULT_STATE) { String::new() } else { format!(" --state {}", self.dir.display()) }
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

/// Show runs, how each host stands, and what to do next
///
/// Reads the state directory and connects to nothing.
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
