//! The embedded files, and how they become the catalogue.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::gate::Gate;
use super::names::TypeIndex;
use super::types::{SourceMap, Sources};
use super::{
    Board, Branches, Can, Engines, EsxiFloor, EsxiVersion, Memory, MigGeometry, MigProfile, MmioGb, Model, Nvlink,
    PciEntry, Region, Rule, Series, TypeKind, VgpuBranches, VgpuType,
};
use crate::document::{EmbeddedError, embedded};

const MODELS: &str = include_str!("data/models.yaml");
const TIME_SLICED: &str = include_str!("data/time-sliced.yaml");
const MIG_TYPES: &str = include_str!("data/mig-types.yaml");
const MIG: &str = include_str!("data/mig.yaml");
const MIXED_SIZE: &str = include_str!("data/mixed-size.yaml");
const GATES: &str = include_str!("data/gates.yaml");
const BRANCHES: &str = include_str!("data/branches.yaml");
const RULES: &str = include_str!("data/rules.yaml");
const SOURCES: &str = include_str!("data/sources.yaml");

/// The catalogue.
#[derive(Debug)]
pub struct Catalog {
    pub(super) models: Vec<Model>,
    pub(super) index: TypeIndex,
    gates: Vec<Gate>,
    branches: VgpuBranches,
    rules: Vec<Rule>,
    sources: SourceMap,
    regions: Vec<Region>,
}

impl Catalog {
    /// Models, in the order of the data: by generation.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The model with this id.
    pub fn model(&self, id: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.id == id)
    }

    /// Placement tables of mixed-size mode. One may belong to a card that is no model here.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// What needs which ESXi.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// vGPU software branches.
    pub fn branches(&self) -> &VgpuBranches {
        &self.branches
    }

    /// Rules of NVIDIA vGPU on vSphere.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Where the facts come from, by source id.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }
}

/// The embedded catalogue, parsed at the first call.
pub fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| match load() {
        Ok(catalog) => catalog,
        Err(error) => unreachable!("the embedded data is a constant that the tests load: {error:?}"),
    })
}

/// SHA-256 of the embedded files, lower-case hex. Does not parse them.
pub fn digest() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| {
        let mut hash = Sha256::new();
        for text in [MODELS, TIME_SLICED, MIG_TYPES, MIG, MIXED_SIZE, GATES, BRANCHES, RULES, SOURCES] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
        hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}"); // writing to a String cannot fail
            hex
        })
    })
}

/// Why the data is no catalogue.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("{file}")]
    Parse { file: &'static str, source: EmbeddedError },
    #[error("{0}")]
    Inconsistent(String),
}

fn parse<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, LoadError> {
    embedded(text).map_err(|source| LoadError::Parse { file, source })
}

fn load() -> Result<Catalog, LoadError> {
    let rows: Vec<ModelRow> = parse("models.yaml", MODELS)?;
    let regions: Vec<Region> = parse("mixed-size.yaml", MIXED_SIZE)?;
    let mig: MigFile = parse("mig.yaml", MIG)?;
    let mut models = Vec::with_capacity(rows.len());
    for row in rows {
        models.push(row.build(&regions)?);
    }
    for group in mig.groups {
        for id in group.models.clone() {
            let geometry = group.geometry(&mig.shapes)?;
            find(&mut models, &id)?.mig = Some(geometry);
        }
    }
    for group in parse::<Vec<TypeGroup<TimeSlicedRow>>>("time-sliced.yaml", TIME_SLICED)? {
        group.build(&mut models)?;
    }
    for group in parse::<Vec<TypeGroup<MigRow>>>("mig-types.yaml", MIG_TYPES)? {
        group.build(&mut models)?;
    }
    Ok(Catalog {
        index: TypeIndex::new(&models),
        models,
        gates: parse("gates.yaml", GATES)?,
        branches: parse("branches.yaml", BRANCHES)?,
        rules: parse("rules.yaml", RULES)?,
        sources: parse("sources.yaml", SOURCES)?,
        regions,
    })
}

fn find<'a>(models: &'a mut [Model], id: &str) -> Result<&'a mut Model, LoadError> {
    models
        .iter_mut()
        .find(|model| model.id == id)
        .ok_or_else(|| LoadError::Inconsistent(format!("no model has the id {id}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ModelRow {
    id: String,
    name: String,
    smi_name: Option<String>,
    board: Board,
    pci: Vec<PciRow>,
    memory: Memory,
    can: Can,
    #[serde(default)]
    unverified: Vec<String>,
    region: Option<String>,
    nvlink: Nvlink,
    mmio_gb: Option<MmioGb>,
    esxi: Option<EsxiFloor>,
    branch: Branches,
    #[serde(default)]
    notes: Vec<String>,
    sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PciRow {
    device: String,
    subsystems: Vec<String>,
    #[serde(default)]
    alias: bool,
    sources: Sources,
}

impl ModelRow {
    fn build(self, regions: &[Region]) -> Result<Model, LoadError> {
        let mut pci = Vec::with_capacity(self.pci.len());
        for row in self.pci {
            let subsystems = row.subsystems.iter().map(|text| hex(text)).collect::<Result<_, _>>()?;
            pci.push(PciEntry { device: hex(&row.device)?, subsystems, alias: row.alias, sources: row.sources });
        }
        let region = match self.region {
            None => None,
            Some(name) => Some(
                regions
                    .iter()
                    .find(|region| region.name == name)
                    .cloned()
                    .ok_or_else(|| LoadError::Inconsistent(format!("mixed-size.yaml has no region {name}")))?,
            ),
        };
        Ok(Model {
            id: self.id,
            name: self.name,
            smi_name: self.smi_name,
            board: self.board,
            pci,
            memory: self.memory,
            can: self.can,
            unverified: self.unverified,
            nvlink: self.nvlink,
            mmio_gb: self.mmio_gb,
            esxi: self.esxi,
            branch: self.branch,
            notes: self.notes,
            sources: self.sources,
            mig: None,
            region,
            types: Vec::new(),
        })
    }
}

fn hex(text: &str) -> Result<u16, LoadError> {
    u16::from_str_radix(text, 16).map_err(|_| LoadError::Inconsistent(format!("`{text}` is no PCI id")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MigFile {
    shapes: BTreeMap<String, Shape>,
    groups: Vec<MigGroup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    memory: u32,
    compute: u32,
    instances: u32,
    slots: BTreeMap<String, Slot>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Slot {
    id: u32,
    compute: u32,
    memory: u32,
    max: u32,
    starts: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MigGroup {
    models: Vec<String>,
    shape: String,
    min_driver: Option<String>,
    #[serde(default)]
    notes: Vec<String>,
    profiles: Vec<ProfileRow>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProfileRow {
    name: String,
    slot: String,
    engines: Option<Vec<u32>>,
    mib: Option<u32>,
    #[serde(default)]
    seen_gib: Vec<String>,
    #[serde(default)]
    unverified: Vec<String>,
    sources: Sources,
}

impl MigGroup {
    fn geometry(&self, shapes: &BTreeMap<String, Shape>) -> Result<MigGeometry, LoadError> {
        let missing = |what: &str| LoadError::Inconsistent(format!("mig.yaml has no {what}"));
        let shape = shapes.get(&self.shape).ok_or_else(|| missing(&self.shape))?;
        let mut profiles = Vec::with_capacity(self.profiles.len());
        for row in &self.profiles {
            let slot = shape.slots.get(&row.slot).ok_or_else(|| missing(&row.slot))?;
            let engines = match row.engines.as_deref() {
                None => None,
                Some(&[nvdec, jpeg, ofa, copy]) => Some(Engines { nvdec, jpeg, ofa, copy, nvenc: None }),
                Some(&[nvdec, jpeg, ofa, copy, nvenc]) => Some(Engines { nvdec, jpeg, ofa, copy, nvenc: Some(nvenc) }),
                Some(_) => return Err(LoadError::Inconsistent(format!("{}: four or five engines", row.name))),
            };
            profiles.push(MigProfile {
                name: row.name.clone(),
                id: slot.id,
                compute: slot.compute,
                memory: slot.memory,
                max: slot.max,
                starts: slot.starts.clone(),
                engines,
                memory_mib: row.mib,
                seen_gib: row.seen_gib.clone(),
                unverified: row.unverified.clone(),
                sources: row.sources.clone(),
            });
        }
        Ok(MigGeometry {
            memory_slices: shape.memory,
            compute_slices: shape.compute,
            max_instances: shape.instances,
            min_driver: self.min_driver.clone(),
            notes: self.notes.clone(),
            profiles,
        })
    }
}

/// The types of one model; a row is a table line, so that 636 of them parse fast and read well.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypeGroup<R> {
    model: String,
    nvidia: String,
    #[serde(default)]
    unverified: Vec<String>,
    #[serde(default)]
    notes: Vec<NoteRow>,
    types: Vec<R>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteRow {
    text: String,
    types: Vec<String>,
}

/// name, fb, same, mixed, nvml, guest, guestFb, branch, first, seen, sources.
#[derive(Deserialize)]
struct TimeSlicedRow(
    String,
    Option<u32>,
    Option<u32>,
    Option<u32>,
    Option<u32>,
    String,
    Option<u32>,
    Option<u16>,
    String,
    bool,
    Sources,
);

/// name, profile, fb, max, perGi, nvml, guest, branch, first, esxi, seen, sources.
#[derive(Deserialize)]
struct MigRow(
    String,
    String,
    Option<u32>,
    u32,
    u32,
    Option<u32>,
    String,
    Option<u16>,
    String,
    Option<EsxiVersion>,
    bool,
    Sources,
);

trait TypeRow {
    /// Parts of the name after the stem: `48q` has one, `1-5cme` two.
    const TAIL: usize;
    fn build(self) -> Result<VgpuType, LoadError>;
}

impl TypeRow for TimeSlicedRow {
    const TAIL: usize = 1;

    fn build(self) -> Result<VgpuType, LoadError> {
        let Self(name, memory_mib, same, mixed, nvml_id, guest, guest_memory_mib, branch, first_driver, seen, sources) =
            self;
        let (memory_gb, series) = size_and_series(&name)?;
        let guest_subsystem = hex(&guest)?;
        Ok(VgpuType {
            nvidia_name: String::new(),
            series,
            memory_mib,
            memory_gb,
            kind: TypeKind::TimeSliced { same, mixed },
            nvml_id,
            guest_subsystem,
            guest_memory_mib,
            branch,
            first_driver,
            esxi: None,
            seen,
            unverified: false,
            note: None,
            sources,
            name,
        })
    }
}

impl TypeRow for MigRow {
    const TAIL: usize = 2;

    fn build(self) -> Result<VgpuType, LoadError> {
        let Self(
            name,
            profile,
            memory_mib,
            max,
            per_instance,
            nvml_id,
            guest,
            branch,
            first_driver,
            esxi,
            seen,
            sources,
        ) = self;
        let (memory_gb, series) = size_and_series(&name)?;
        let guest_subsystem = hex(&guest)?;
        Ok(VgpuType {
            nvidia_name: String::new(),
            series,
            memory_mib,
            memory_gb,
            kind: TypeKind::Mig { profile, max, per_instance },
            nvml_id,
            guest_subsystem,
            guest_memory_mib: None,
            branch,
            first_driver,
            esxi,
            seen,
            unverified: false,
            note: None,
            sources,
            name,
        })
    }
}

impl<R: TypeRow> TypeGroup<R> {
    fn build(self, models: &mut [Model]) -> Result<(), LoadError> {
        let model = find(models, &self.model)?;
        for row in self.types {
            let mut built = row.build()?;
            let tail_at = built.name.rmatch_indices('-').nth(R::TAIL - 1).map_or(0, |(at, _)| at + 1);
            built.nvidia_name = format!("{}{}", self.nvidia, built.name[tail_at..].to_uppercase());
            built.unverified = self.unverified.contains(&built.name);
            built.note = self.notes.iter().find(|note| note.types.contains(&built.name)).map(|note| note.text.clone());
            model.types.push(built);
        }
        Ok(())
    }
}

/// `-24c` at the end of a name, or with `4` (an older desktop type) or `me` behind it.
fn size_and_series(name: &str) -> Result<(u32, Series), LoadError> {
    let last = name.rsplit('-').next().unwrap_or_default();
    let digits = last.bytes().take_while(u8::is_ascii_digit).count();
    let series = match last[digits..].chars().next() {
        Some('a') => Series::A,
        Some('b') => Series::B,
        Some('c') => Series::C,
        Some('q') => Series::Q,
        _ => return Err(LoadError::Inconsistent(format!("{name}: no series"))),
    };
    let size = last[..digits].parse().map_err(|_| LoadError::Inconsistent(format!("{name}: no size")))?;
    Ok((size, series))
}
