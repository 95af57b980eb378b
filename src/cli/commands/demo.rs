//! `demo`: the main job on a simulated fleet, with the commands that anybody would type for it.
//!
//! Each command is read from the line that is shown and run by the code that runs it otherwise, so
//! that what is shown cannot differ from what is done.

use std::path::Path;

use clap::Parser;

use crate::base::files;
use crate::cli::args::{Cli, DemoArgs};
use crate::cli::run::run as run_command;
use crate::cli::{CommandError, Exit, Ui};
use crate::report::{Text, Tone, quoted};

/// The documents of the demo are those that the repository ships.
const FILES: [(&str, &str); 7] = [
    ("profiles/h100-nvl.yaml", include_str!("../../../profiles/h100-nvl.yaml")),
    ("profiles/a100-pcie.yaml", include_str!("../../../profiles/a100-pcie.yaml")),
    ("profiles/l40s.yaml", include_str!("../../../profiles/l40s.yaml")),
    ("profiles/a100-mig.yaml", include_str!("../../../profiles/a100-mig.yaml")),
    ("profiles/h100-mig.yaml", include_str!("../../../profiles/h100-mig.yaml")),
    ("inventories/lab.yaml", include_str!("../../../inventories/lab.yaml")),
    ("inventories/lab-world.yaml", include_str!("../../../inventories/lab-world.yaml")),
];

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

const STEPS: [Step; 8] = [
    Step {
        title: "What git says",
        words: "Five profiles say what the GPUs of five clusters should be. They are checked without any \
                connection: fields, references, and whether the vGPU types of `offers` fit one GPU.",
        line: "poolwright validate",
        exit: Exit::Done,
    },
    Step {
        title: "What is there",
        words: "Thirteen hosts. One is in maintenance mode, and one does not answer: both are shown, and none \
                hides the others. esx-h100-11 was rebooted, and has lost its MIG.",
        line: "poolwright discover --world inventories/lab-world.yaml",
        exit: Exit::Done,
    },
    Step {
        title: "What would change",
        words: "The plan reads only. It is what people approve: hosts, modes, every step, reboots, minutes, and \
                the capacity that is left at the worst moment. Hosts that are not acted on have their reason.",
        line: "poolwright plan --out plan.json --world inventories/lab-world.yaml",
        exit: Exit::Done,
    },
    Step {
        title: "The rollout",
        words: "One host after the other: closed, changed, rebooted, verified, given back. The fleet's hours pass \
                in seconds here. esx-h100-11 gets its MIG back at its own shell, without a reboot. One thing goes \
                wrong: a GPU of esx-h100-03 does not come back from the reboot.",
        line: "poolwright apply plan.json --world inventories/lab-world.yaml",
        exit: Exit::HostsFailed,
    },
    Step {
        title: "How it was left",
        words: "The host stays closed, so no workload lands on it, and it carries the run's marker. No other host \
                was started after it. The state directory says the same at any later time, without a connection.",
        line: "poolwright status",
        exit: Exit::Done,
    },
    Step {
        title: "The others need not wait",
        words: "While somebody looks after the GPU, the other hosts are planned again. The broken host is refused.",
        line: "poolwright plan --out rest.json --world inventories/lab-world.yaml",
        exit: Exit::Done,
    },
    Step {
        title: "The rest of the rollout",
        words: "esx-a100-11 and esx-a100-12 become MIG: switched at their shells, in effect with a reboot. The VM \
                notebook-1 has a vGPU that a GPU in MIG mode does not have: it is shut down and left off, as the \
                profile allows, the plan says and the report repeats.",
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
    ui.page(&paper);
    show_file(ui, "profiles/h100-nvl.yaml")?;
    show_file(ui, "profiles/a100-mig.yaml")?;
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
    paper.line(4, "poolwright sim reset inventories/lab-world.yaml");
    paper.line(4, format!("rm -r {STATE}"));
    paper.say(2, "Serve it to other vSphere clients:");
    paper.line(4, "poolwright sim --world inventories/lab-world.yaml --port 8989");
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
        for file in ["plan.json", "rest.json", "inventories/lab-world.yaml.state"] {
            files::remove(&dir.join(file))?;
        }
    }
    for folder in ["profiles", "inventories"] {
        files::create_private_dir(&dir.join(folder))?;
    }
    files::replace(&dir.join(MARK), b"written by `poolwright demo`, which may write this folder again\n")?;
    for (path, text) in FILES {
        files::replace(&dir.join(path), text.as_bytes())?;
    }
    Ok(())
}

/// The commands are shown as they are typed in the folder, so they are run there.
fn enter(dir: &Path) -> Result<(), CommandError> {
    std::env::set_current_dir(dir).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot enter {}", dir.display()));
        CommandError::new(Exit::Internal, error)
    })
}
