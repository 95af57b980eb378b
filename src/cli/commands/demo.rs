//! `demo`: the main job on a simulated fleet, with the commands that anybody would type for it.
//!
//! Each command is read from the line that is shown and run by the code that runs it otherwise, so
//! that what is shown cannot differ from what is done.

use std::path::Path;

use clap::Parser;

use crate::base::files;
use crate::cli::args::{Cli, DemoArgs};
use crate::cli::run::run as run_command;
use crate::cli::session::open_world;
use crate::cli::{CommandError, Exit, Ui};
use crate::report::{Text, Tone, quoted};
use crate::sim::kubeconfig;

/// The documents of the demo are those that the repository ships.
const FILES: [(&str, &str); 9] = [
    ("profiles/h100-nvl.yaml", include_str!("../../../profiles/h100-nvl.yaml")),
    ("profiles/a100-pcie.yaml", include_str!("../../../profiles/a100-pcie.yaml")),
    ("profiles/l40s.yaml", include_str!("../../../profiles/l40s.yaml")),
    ("profiles/a100-mig.yaml", include_str!("../../../profiles/a100-mig.yaml")),
    ("profiles/h100-mig.yaml", include_str!("../../../profiles/h100-mig.yaml")),
    ("profiles/h100-serve.yaml", include_str!("../../../profiles/h100-serve.yaml")),
    ("templates/cuda-vector-add.yaml", include_str!("../../../templates/cuda-vector-add.yaml")),
    ("inventories/lab.yaml", include_str!("../../../inventories/lab.yaml")),
    (WORLD, include_str!("../../../inventories/lab-world.yaml")),
];

/// The simulated fleet.
const WORLD: &str = "inventories/lab-world.yaml";

/// What opens its guest clusters, where the Site looks for it.
const KUBECONFIG: &str = "kubeconfig";

/// What says that a folder is a demo's, so that it may be written again.
const MARK: &str = ".poolwright-demo";

/// What happens in the folder beside the documents.
const STATE: &str = ".poolwright";

/// One step: what it shows, the command, and how it ends.
struct Step {
    title: &'static str,
    words: &'static str,
    line: &'static str,
    exit: Exit,
}

const STEPS: [Step; 7] = [
    Step {
        title: "What git says",
        words: "Six profiles say what the GPUs of six clusters of hosts should be. They are checked without any \
                connection: fields, references, and whether the vGPU types of `offers` fit one GPU.",
        line: "poolwright validate",
        exit: Exit::Done,
    },
    Step {
        title: "What is there",
        words: "Fifteen hosts. One is in maintenance mode, and one does not answer: both are shown, and none \
                hides the others. esx-h100-11 was rebooted, and has lost its MIG. Three VMs are nodes of two \
                Kubernetes clusters; the VM serve-2 is the node worker-b.",
        line: "poolwright discover --world inventories/lab-world.yaml",
        exit: Exit::Done,
    },
    Step {
        title: "What would change",
        words: "The plan reads only. It is what people approve: hosts, modes, every step, reboots, minutes, the \
                VMs and nodes that are stopped, and the capacity that is left at the worst moment. Hosts that are \
                not acted on have their reason.",
        line: "poolwright plan --out plan.json --world inventories/lab-world.yaml",
        exit: Exit::Done,
    },
    Step {
        title: "The rollout",
        words: "One host after the other, those first that it disturbs least. The fleet's hours pass in seconds \
                here. On esx-serve-01 two nodes are drained, their VMs stopped, the GPUs changed; the nodes take pods \
                again once each is Ready with its GPUs and has run a CUDA Job. At esx-serve-02 the budget of \
                serving/chat holds the drain up for three minutes, until replicas are ready elsewhere. Then one thing \
                goes wrong: the Job fails on a GPU that came back broken. The host is closed again and carries the \
                run's mark, its node stays cordoned: no VM and no pod lands there, and no other host is started. The \
                report hands it over: what was found, the command that goes on once the GPU is replaced, and each \
                step for somebody who brings it to its end by hand. `poolwright status` says the same later.",
        line: "poolwright apply plan.json --world inventories/lab-world.yaml",
        exit: Exit::HostsFailed,
    },
    Step {
        title: "The others need not wait",
        words: "While somebody looks after the GPU, the other hosts are planned again. The broken host is refused.",
        line: "poolwright plan --out rest.json --world inventories/lab-world.yaml",
        exit: Exit::Done,
    },
    Step {
        title: "The rest of the rollout",
        words: "esx-h100-11 gets its MIG back at its own shell, without a reboot. esx-a100-11 and esx-a100-12 become \
                MIG: switched at their shells, in effect with a reboot. The VM notebook-1 has a vGPU that a GPU in \
                MIG mode does not have: it is shut down and left off, as the profile allows, the plan says and the \
                report repeats.",
        line: "poolwright apply rest.json --world inventories/lab-world.yaml",
        exit: Exit::Done,
    },
    Step {
        title: "What is left",
        words: "Nothing is to be changed any more; three hosts wait for a person, each with its reason. A job that \
                watches for drift asks for the exit code 2 that says so.",
        line: "poolwright plan --detailed-exitcode --world inventories/lab-world.yaml",
        exit: Exit::Changes,
    },
];

pub fn run(args: &DemoArgs, ui: &Ui) -> Result<Exit, CommandError> {
    prepare(&args.dir)?;
    enter(&args.dir)?;
    let mut paper = ui.paper();
    paper.say(0, format!("A simulated fleet, with its documents, in the folder {}:", args.dir.display()));
    for (path, _) in FILES {
        paper.line(2, path);
    }
    paper.line(2, KUBECONFIG);
    ui.page(&paper);
    show_file(ui, "profiles/h100-nvl.yaml")?;
    show_file(ui, "profiles/h100-serve.yaml")?;
    for (number, step) in STEPS.iter().enumerate() {
        let mut paper = ui.paper();
        paper.line(0, "");
        paper.line(0, Text::toned(Tone::Strong, format!("== {}. {}", number + 1, step.title)));
        if !step.words.is_empty() {
            paper.say(0, step.words);
        }
        paper.line(0, Text::toned(Tone::Good, "$ ").and(Tone::Strong, step.line));
        ui.page(&paper);
        let exit = command(step.line, ui)?;
        let mut paper = ui.paper();
        paper.line(0, Text::toned(Tone::Dim, format!("(exit code {})", exit.code())));
        ui.page(&paper);
        if exit != step.exit {
            return Err(CommandError::words(
                Exit::Internal,
                format!("`{}` ended with {} instead of {}", step.line, exit.code(), step.exit.code()),
            ));
        }
    }
    farewell(ui, &args.dir);
    Ok(Exit::Done)
}

/// Runs a command line of ours; its errors are printed as ever.
fn command(line: &str, ui: &Ui) -> Result<Exit, CommandError> {
    let cli = Cli::try_parse_from(line.split(' '))
        .map_err(|error| CommandError::new(Exit::Internal, anyhow::Error::new(error)))?;
    let exit = run_command(cli, ui).unwrap_or_else(|error| {
        error.print(ui);
        error.exit()
    });
    ui.idle();
    Ok(exit)
}

fn show_file(ui: &Ui, path: &str) -> Result<(), CommandError> {
    let text = files::read_text(Path::new(path), 1 << 20)?;
    let mut paper = ui.paper();
    paper.line(0, "");
    paper.line(0, Text::toned(Tone::Good, "$ ").and(Tone::Strong, format!("cat {path}")));
    ui.page(&paper);
    ui.data(&text);
    Ok(())
}

fn farewell(ui: &Ui, dir: &Path) {
    let mut paper = ui.paper();
    paper.heading("The folder keeps everything: documents, plans, journal, and the fleet as it is now.");
    paper.say(2, "Go on there:");
    paper.line(4, format!("cd {}", dir.display()));
    // Built and not installed, it is on nobody's PATH.
    if let Ok(program) = std::env::current_exe() {
        paper.line(4, format!("alias poolwright={}", quoted(&program.display().to_string())));
    }
    paper.say(2, "Put the fleet back to its beginning, and forget the runs (a plan is applied once):");
    paper.line(4, format!("poolwright sim reset {WORLD}"));
    paper.line(4, format!("rm -r {STATE}"));
    paper.say(2, "Serve it to vSphere clients, ssh and kubectl:");
    paper.line(4, format!("poolwright sim --world {WORLD} --port 8989 --kubeconfig served"));
    ui.page(&paper);
}

/// Writes the documents. A folder that holds anything else is not touched.
fn prepare(dir: &Path) -> Result<(), CommandError> {
    let ours = dir.join(MARK).exists();
    if dir.exists() && !ours && !files::list(dir)?.is_empty() {
        return Err(CommandError::words(Exit::Invalid, format!("{} is there and is no demo of ours", dir.display()))
            .hint("name a folder that does not exist: `poolwright demo --dir DIR`"));
    }
    if ours {
        files::remove_dir(&dir.join(STATE))?;
        for file in ["plan.json", "rest.json", &format!("{WORLD}.state")] {
            files::remove(&dir.join(file))?;
        }
    }
    for folder in ["profiles", "templates", "inventories"] {
        files::create_private_dir(&dir.join(folder))?;
    }
    files::replace(&dir.join(MARK), b"written by `poolwright demo`, which may write this folder again\n")?;
    for (path, text) in FILES {
        files::replace(&dir.join(path), text.as_bytes())?;
    }
    let world = open_world(&dir.join(WORLD))?;
    files::replace(&dir.join(KUBECONFIG), kubeconfig(&world, &[]).as_bytes())?;
    Ok(())
}

/// The commands are shown as they are typed in the folder, so they are run there.
fn enter(dir: &Path) -> Result<(), CommandError> {
    std::env::set_current_dir(dir).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot enter {}", dir.display()));
        CommandError::new(Exit::Internal, error)
    })
}
