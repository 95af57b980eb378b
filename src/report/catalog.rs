//! The catalogue as text: models, one model with its types and geometry, and the answer of a fit.
//! What no source says is shown as `?`.

use super::{Paper, Table, Text, Tone};
use crate::catalog::{Catalog, Combination, Fit, FitMode, Model, TypeKind, VgpuType, catalog};

/// The list of all models.
pub fn models(paper: &mut Paper, catalog: &Catalog) {
    let mut table =
        Table::new(&["model", "name", ">GB", "passthrough", "vGPU", "mixed size", "MIG", ">types", "PCI devices"]);
    for model in catalog.models() {
        let devices: Vec<String> = model.pci.iter().map(|entry| format!("10de:{:04x}", entry.device)).collect();
        table.row([
            Text::toned(Tone::Strong, &model.id),
            Text::from(model.name.as_str()),
            Text::from(model.memory.gb.to_string()),
            known(model.can.passthrough),
            known(model.can.vgpu),
            known(model.can.mixed_size),
            known(Some(model.mig.is_some())),
            Text::from(model.types.len().to_string()),
            Text::from(devices.join(", ")),
        ]);
    }
    paper.table(0, &table);
}

/// Yes, no, or `?` where no source says.
fn known(value: Option<bool>) -> Text {
    match value {
        Some(true) => Text::toned(Tone::Good, "yes"),
        Some(false) => Text::toned(Tone::Dim, "no"),
        None => Text::toned(Tone::Warn, "?"),
    }
}

fn figure(value: Option<u32>) -> Text {
    value.map_or_else(|| Text::toned(Tone::Warn, "?"), |value| Text::from(value.to_string()))
}

/// All that is known of one model.
pub fn model(paper: &mut Paper, model: &Model) {
    paper.say(0, Text::toned(Tone::Strong, &model.id).and(Tone::Plain, format!("  {}", model.name)));
    let memory = model.memory.mib.map_or_else(|| "?".to_owned(), |mib| mib.to_string());
    paper.item(2, "memory: ", format!("{} GB, {memory} MiB of framebuffer", model.memory.gb));
    paper.item(
        2,
        "board: ",
        format!(
            "{}, {}, {} GPU, NVLink {}",
            model.board.architecture, model.board.form, model.board.gpus, model.nvlink.kind
        ),
    );
    let can = Text::from("passthrough ")
        .join(known(model.can.passthrough))
        .join(", vGPU ".into())
        .join(known(model.can.vgpu))
        .join(", mixed size ".into())
        .join(known(model.can.mixed_size));
    paper.item(2, "can: ", can);
    for entry in &model.pci {
        let subsystems: Vec<String> = entry.subsystems.iter().map(|id| format!("{id:04x}")).collect();
        let boards =
            if subsystems.is_empty() { "any board".to_owned() } else { format!("boards {}", subsystems.join(", ")) };
        let alias = if entry.alias { ", another board with the same types" } else { "" };
        paper.item(2, "PCI: ", format!("10de:{:04x}, {boards}{alias}", entry.device));
    }
    for note in &model.notes {
        paper.item(2, "note: ", note.as_str());
    }
    if !model.unverified.is_empty() {
        paper.item(2, Text::toned(Tone::Warn, "inferred, not published: "), model.unverified.join(", "));
    }
    types(paper, model);
    geometry(paper, model);
    needs(paper, model);
    paper.blank();
    paper.item(2, "sources: ", model.sources.0.join(", "));
}

fn types(paper: &mut Paper, model: &Model) {
    let mut sliced = Table::new(&["time-sliced type", ">GB", ">most, same size", ">most, mixed size"]);
    let mut mig = Table::new(&["MIG-backed type", ">GB", "GPU instance", ">most"]);
    for vgpu in &model.types {
        let (name, gb) = (Text::from(vgpu.name.as_str()), Text::from(vgpu.memory_gb.to_string()));
        match &vgpu.kind {
            TypeKind::TimeSliced { same, mixed } => sliced.row([name, gb, figure(*same), figure(*mixed)]),
            TypeKind::Mig { profile, max, .. } => {
                mig.row([name, gb, Text::from(profile.as_str()), Text::from(max.to_string())]);
            }
        }
    }
    for table in [sliced, mig] {
        if !table.is_empty() {
            paper.blank();
            paper.table(2, &table);
        }
    }
}

fn geometry(paper: &mut Paper, model: &Model) {
    let Some(mig) = &model.mig else { return };
    paper.blank();
    paper.say(
        2,
        format!(
            "MIG: {} memory slices, {} compute slices, at most {} GPU instances",
            mig.memory_slices, mig.compute_slices, mig.max_instances
        ),
    );
    let mut table = Table::new(&["GPU instance", ">compute", ">memory", ">most", "may start at", "media engines"]);
    for profile in &mig.profiles {
        let starts: Vec<String> = profile.starts.iter().map(u32::to_string).collect();
        let engines = profile.engines.map_or_else(
            || Text::toned(Tone::Warn, "?"),
            |engines| Text::from(format!("{} NVDEC, {} JPEG, {} OFA", engines.nvdec, engines.jpeg, engines.ofa)),
        );
        table.row([
            Text::from(profile.name.as_str()),
            Text::from(profile.compute.to_string()),
            Text::from(profile.memory.to_string()),
            Text::from(profile.max.to_string()),
            Text::from(starts.join(", ")),
            engines,
        ]);
    }
    paper.table(2, &table);
}

/// What the model and its types need of ESXi and of the vGPU driver, each once.
fn needs(paper: &mut Paper, model: &Model) {
    let modes = [FitMode::Same, FitMode::Mixed, FitMode::MigVgpu].into_iter().filter(|mode| match mode {
        FitMode::Same => true,
        FitMode::Mixed => model.can.mixed_size == Some(true),
        FitMode::MigVgpu => model.mig.is_some(),
    });
    let mut shown = Vec::new();
    for mode in modes {
        let types: Vec<&VgpuType> = model.types.iter().filter(|vgpu| mode.takes(vgpu)).collect();
        for need in catalog().needs(model, mode, &types) {
            let line = (need.what().to_owned(), need.requirement());
            if !shown.contains(&line) {
                shown.push(line);
            }
        }
    }
    if !shown.is_empty() {
        let mut table = Table::new(&["what", "needs"]);
        for (what, requirement) in shown {
            table.row([Text::from(what), Text::from(requirement)]);
        }
        paper.blank();
        paper.table(2, &table);
    }
}

/// The answer to whether a combination fits.
pub fn fit(paper: &mut Paper, fit: &Fit) {
    let (word, tone) = match fit.fits {
        Some(true) => ("fits", Tone::Good),
        Some(false) => ("does not fit", Tone::Bad),
        None => ("unknown", Tone::Warn),
    };
    paper.item(0, Text::toned(tone, word).and(Tone::Plain, ": "), fit.why.as_str());
    if let Some(first) = &fit.first_misfit {
        let label = if fit.fits.is_some() { "first that does not fit: " } else { "first that is not known: " };
        paper.item(2, label, first.as_str());
    }
    for near in &fit.nearest {
        paper.item(2, "fits: ", combination(near));
    }
    if !fit.names.is_empty() {
        paper.item(2, "types of this model and mode: ", fit.names.join(", "));
    }
    if let Some(rule) = fit.rule {
        let text = catalog().rules().iter().find(|known| known.id == rule).map_or("", |known| &known.text);
        paper.item(2, "rule: ", format!("{rule}: {text}"));
    }
    if !fit.unverified.is_empty() {
        paper.item(2, Text::toned(Tone::Warn, "rests on what was never verified: "), fit.unverified.join("; "));
    }
}

/// `nvidia_l40s-12q=2 nvidia_l40s-24q=1`, as `catalog fit` reads it.
fn combination(combination: &Combination) -> String {
    let parts: Vec<String> = combination.iter().map(|(name, count)| format!("{name}={count}")).collect();
    parts.join(" ")
}
