//! What is run on a host, and how what it prints is read.

use poolwright::model::Fact;
use poolwright::shell::{Command, End, Output, Query, view};
use proptest::prelude::*;

fn printed(stdout: &str) -> Output {
    Output { stdout: stdout.to_owned(), stderr: String::new(), cut: false, end: End::Exit(0) }
}

const LINK: &str = "00000000:3B:00.0, 5, 16\n00000000:86:00.0, 4, 8\n";
const MONITOR: &str = "nvdGpuMgmtDaemon is running\n";
const ROWS: &str = "00000000:3B:00.0, 0, 0\n00000000:86:00.0, Yes, No\n";

#[test]
fn the_commands_are_these_and_nothing_else() {
    let gpu = "0000:3b:00.0".parse().unwrap();
    let lines = [
        Command::Query(Query::Modes),
        Command::Query(Query::Link),
        Command::Query(Query::Rows),
        Command::SetMig { gpu, on: true },
        Command::SetMig { gpu, on: false },
        Command::StopMonitor,
        Command::StartMonitor,
        Command::MonitorStatus,
    ]
    .map(|command| format!("{}\n{}\n", command.line(), command.bounded()));
    insta::assert_snapshot!(lines.concat(), @r"
    nvidia-smi --query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending,ecc.mode.current,ecc.mode.pending --format=csv,noheader
    timeout -s KILL 30 nvidia-smi --query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending,ecc.mode.current,ecc.mode.pending --format=csv,noheader
    nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.width.current --format=csv,noheader
    timeout -s KILL 30 nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.width.current --format=csv,noheader
    nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv,noheader
    timeout -s KILL 30 nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv,noheader
    nvidia-smi -i 0000:3b:00.0 -mig 1
    timeout -s KILL 120 nvidia-smi -i 0000:3b:00.0 -mig 1
    nvidia-smi -i 0000:3b:00.0 -mig 0
    timeout -s KILL 120 nvidia-smi -i 0000:3b:00.0 -mig 0
    /etc/init.d/nvdGpuMgmtDaemon stop
    timeout -s KILL 60 /etc/init.d/nvdGpuMgmtDaemon stop
    /etc/init.d/nvdGpuMgmtDaemon start
    timeout -s KILL 60 /etc/init.d/nvdGpuMgmtDaemon start
    /etc/init.d/nvdGpuMgmtDaemon status
    timeout -s KILL 30 /etc/init.d/nvdGpuMgmtDaemon status
    ");
}

#[test]
fn what_is_listed_is_read_field_by_field() {
    let modes = "00000000:3B:00.0, Disabled, Enabled, Enabled, Enabled\n00000000:86:00.0, [N/A], [N/A], N/A, N/A\n";
    let view = view(&printed(modes), &printed(LINK), &printed(ROWS), &printed(MONITOR));
    assert!(view.unread.is_empty(), "{:?}", view.unread);
    let Fact::Known(h100) = view.gpu(&"0000:3b:00.0".parse().unwrap()) else { panic!("{view:?}") };
    assert_eq!((&h100.mig.current, &h100.mig.pending), (&Fact::Known(false), &Fact::Known(true)));
    assert_eq!((h100.mig.settled(), h100.ecc.settled()), (None, Some(true)));
    assert_eq!((&h100.link_generation, &h100.link_width), (&Fact::Known(5), &Fact::Known(16)));
    assert_eq!((&h100.remap_pending, &h100.remap_failed), (&Fact::Known(false), &Fact::Known(false)));
    let Fact::Known(l40) = view.gpu(&"0000:86:00.0".parse().unwrap()) else { panic!("{view:?}") };
    assert_eq!((&l40.mig.current, &l40.ecc.pending), (&Fact::Absent, &Fact::Absent));
    assert_eq!((&l40.link_width, &l40.remap_pending), (&Fact::Known(8), &Fact::Known(true)));
    assert_eq!(l40.mig.settled(), None);
}

/// A GPU in passthrough, or one that is gone: not listed is not known, and says so.
#[test]
fn a_gpu_that_the_shell_does_not_show_is_unknown() {
    let modes = "00000000:3B:00.0, Enabled, Enabled, Enabled, Enabled\n";
    let seen = view(&printed(modes), &printed(LINK), &printed(ROWS), &printed(MONITOR));
    let other = "0000:af:00.0".parse().unwrap();
    assert_eq!(seen.gpu(&other), Fact::unknown("nvidia-smi does not list it"));
    let nothing = view(&printed("No devices were found\n"), &printed(""), &printed(""), &printed(""));
    assert!(nothing.gpus.is_empty());
    assert_eq!(nothing.gpu(&other), Fact::unknown("nvidia-smi does not list it, but says `No devices were found`"));
}

/// An unknown line is data: the GPUs beside it are read, and it is shown.
#[test]
fn an_unknown_line_is_kept_and_never_believed() {
    let modes = "Warning: infoROM is corrupted at gpu 0000:3B:00.0\n\n00000000:3B:00.0, Enabled, Enabled, Enabled, \
                 Enabled\n00000000:86:00.0, Enabled\n00000000:AF:00.0, Enabled, Enabled, Enabled, Enabled, more\n";
    let seen = view(&printed(modes), &printed(LINK), &printed(ROWS), &printed(MONITOR));
    assert_eq!(seen.gpus.len(), 1);
    assert_eq!(seen.unread.len(), 3);
    assert!(seen.unread[0].starts_with("Warning: infoROM"));
    assert!(seen.gpu(&"0000:86:00.0".parse().unwrap()).is_unknown());
    assert!(seen.gpu(&"0000:af:00.0".parse().unwrap()).is_unknown());
}

#[test]
fn a_value_that_is_not_understood_is_unknown_with_its_words() {
    let modes = "00000000:3B:00.0, Enabled (forced), enabled, , [Unknown Error]\n";
    let seen = view(
        &printed(modes),
        &printed("00000000:3B:00.0, five, -1\n"),
        &printed("00000000:3B:00.0, 2, maybe\n"),
        &printed(MONITOR),
    );
    let gpu = &seen.gpus[&"0000:3b:00.0".parse().unwrap()];
    assert_eq!(gpu.mig.current, Fact::unknown("nvidia-smi says `Enabled (forced)`"));
    assert!(gpu.mig.pending.is_unknown() && gpu.ecc.current.is_unknown() && gpu.ecc.pending.is_unknown());
    assert!(gpu.link_generation.is_unknown() && gpu.link_width.is_unknown());
    assert!(gpu.remap_pending.is_unknown() && gpu.remap_failed.is_unknown());
}

/// Doubled: neither line is believed.
#[test]
fn a_gpu_that_is_listed_twice_is_unknown() {
    let modes = "00000000:3B:00.0, Enabled, Enabled, Enabled, Enabled\n00000000:3b:00.0, Disabled, Disabled, Enabled, Enabled\n";
    let seen = view(&printed(modes), &printed(LINK), &printed(ROWS), &printed(MONITOR));
    let gpu = &seen.gpus[&"0000:3b:00.0".parse().unwrap()];
    assert_eq!(gpu.mig.current, Fact::unknown("nvidia-smi lists it twice"));
    assert_eq!(gpu.mig.settled(), None);
    assert_eq!(seen.unread.len(), 1);
}

/// A question that an old driver does not know takes nothing from the others.
#[test]
fn each_question_is_answered_alone() {
    let modes = "00000000:3B:00.0, Enabled, Enabled, Enabled, Enabled\n";
    let unknown = printed("Field \"pcie.link.gen.current\" is not a valid field to query.\n");
    let gone = Output { stderr: "sh: nvidia-smi: not found\n".to_owned(), end: End::Exit(127), ..printed("") };
    let seen = view(&printed(modes), &unknown, &gone, &gone);
    let gpu = &seen.gpus[&"0000:3b:00.0".parse().unwrap()];
    assert_eq!(gpu.mig.settled(), Some(true));
    let Fact::Unknown { why } = &gpu.link_width else { panic!("{gpu:?}") };
    assert!(why.contains("is not a valid field"), "{why}");
    assert_eq!(gpu.remap_failed, Fact::unknown("nvidia-smi says `sh: nvidia-smi: not found`"));
    let missing = view(&gone, &gone, &gone, &gone);
    assert_eq!(missing.unread, ["sh: nvidia-smi: not found"]);
}

#[test]
fn an_answer_that_was_cut_says_so_and_one_without_words_tells_its_end() {
    let modes = "00000000:3B:00.0, Enabled, Enabled, Enabled, Enabled\n00000000:86:0";
    let seen = view(&Output { cut: true, ..printed(modes) }, &printed(LINK), &printed(ROWS), &printed(MONITOR));
    assert_eq!(seen.unread, ["00000000:86:0", "(more than is read)"]);
    let killed = Output { end: End::Signal("KILL".to_owned()), ..printed("") };
    let seen = view(&killed, &killed, &killed, &killed);
    assert_eq!(seen.unread, ["(nothing; Signal(\"KILL\"))"]);
}

/// What a host prints is shown on our terminal: no escape sequence of its gets there.
#[test]
fn lines_of_the_host_are_harmless_and_short() {
    let line = format!("\u{1b}[2Jowned{}", "x".repeat(500));
    let seen = view(&printed(&format!("{line}\n").repeat(100)), &printed(""), &printed(""), &printed(""));
    assert!(seen.unread.len() <= 20 && seen.unread[0].chars().count() <= 161);
    assert!(!seen.unread[0].contains('\u{1b}'));
}

proptest! {
    #[test]
    fn no_answer_makes_it_panic_and_none_makes_up_a_state(
        modes in any::<String>(), link in any::<String>(), rows in any::<String>(), stderr in any::<String>()
    ) {
        let seen = view(&Output { stderr, ..printed(&modes) }, &printed(&link), &printed(&rows), &printed(&rows));
        prop_assert!(!seen.gpus.is_empty() || !seen.unread.is_empty());
        for gpu in seen.gpus.values() {
            prop_assert!(gpu.mig.current.known().is_none() || modes.contains("abled"));
        }
    }

    #[test]
    fn rows_with_odd_values_never_settle(value in "[^,\n\r]{0,12}") {
        prop_assume!(!matches!(value.trim(), "Enabled" | "Disabled"));
        let line = format!("00000000:3B:00.0, {value}, {value}, Enabled, Enabled\n");
        let seen = view(&printed(&line), &printed(LINK), &printed(ROWS), &printed(MONITOR));
        let settled = seen.gpus.values().filter_map(|gpu| gpu.mig.settled()).count();
        prop_assert_eq!(settled, 0);
    }
}

/// Nobody verified what the script of the daemon says: an answer that is not understood is no answer.
#[test]
fn whether_the_daemon_runs_is_read_from_its_words() {
    let said = |text: &str| view(&printed(""), &printed(""), &printed(""), &printed(text)).monitor;
    assert_eq!(said("nvdGpuMgmtDaemon is running\n"), Fact::Known(true));
    assert_eq!(said("nvdGpuMgmtDaemon is not running\n"), Fact::Known(false));
    assert_eq!(said("nvdGpuMgmtDaemon is stopped.\n"), Fact::Known(false));
    assert_eq!(said("sh: /etc/init.d/nvdGpuMgmtDaemon: not found\n"), Fact::Absent);
    assert_eq!(
        said("timeout: can't execute '/etc/init.d/nvdGpuMgmtDaemon': No such file or directory\n"),
        Fact::Absent
    );
    assert!(said("").is_unknown() && said("usage: nvdGpuMgmtDaemon {start|stop}\n").is_unknown());
}
