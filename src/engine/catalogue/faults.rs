//! What must hold between the rows of a catalogue.

use crate::engine::arch::Variant;
use crate::engine::toolkit::Toolkit;

use super::CatalogueError;
use super::rows::{ArchFile, ArchRow, ToolkitFile, TorchFile};

const ARCHES: &str = "arches.toml";
const TOOLKITS: &str = "toolkits.toml";
const TORCH: &str = "torch.toml";

/// The newest toolkit of the file, whose rows must ascend.
pub(super) fn newest(file: &ToolkitFile) -> Result<Toolkit, CatalogueError> {
    let versions: Vec<Toolkit> = file.toolkit.iter().map(|row| row.version).collect();
    ascending(TOOLKITS, "toolkit", &versions)?;
    versions.last().copied().ok_or_else(|| fault(TOOLKITS, "there is no `[[toolkit]]`".to_string()))
}

/// Checks each file for itself and against the toolkits.
pub(super) fn check(
    arches: &ArchFile,
    toolkits: &ToolkitFile,
    torch: &TorchFile,
) -> Result<(), CatalogueError> {
    let names: Vec<_> = arches.arch.iter().map(|row| row.arch).collect();
    // The plain architecture, then `a`, then `f`, as people list them.
    let order: Vec<_> = names.iter().map(|arch| (arch.number, arch.to_string())).collect();
    if let Some(pair) = order.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(not_ascending(ARCHES, "arch", &pair[0].1, &pair[1].1));
    }
    arches.arch.iter().try_for_each(|row| arch(row, arches, toolkits))?;
    for row in &toolkits.advisory {
        let what = format!("advisory `{}`", row.id);
        bounds(TOOLKITS, &what, row.since, row.last, toolkits)?;
        if let Some(arch) = row.arches.iter().find(|arch| !names.contains(arch)) {
            return Err(fault(TOOLKITS, format!("{what} names `{arch}`, which {ARCHES} does not have")));
        }
    }
    for row in &torch.gcc {
        bounds(TORCH, &format!("gcc since `{}`", row.since), Some(row.since), Some(row.last), toolkits)?;
    }
    let named = torch.arch_list.iter().flat_map(|row| &row.arches);
    if let Some(arch) = named.copied().find(|arch| !names.contains(arch)) {
        return Err(fault(TORCH, format!("arch-list names `{arch}`, which {ARCHES} does not have")));
    }
    let lists: Vec<_> = torch.arch_list.iter().map(|row| row.since.clone()).collect();
    ascending(TORCH, "arch-list", &lists)?;
    let standards: Vec<_> = torch.cxx_standard.iter().map(|row| row.since.clone()).collect();
    ascending(TORCH, "cxx-standard", &standards)
}

fn arch(row: &ArchRow, arches: &ArchFile, toolkits: &ToolkitFile) -> Result<(), CatalogueError> {
    let what = format!("arch `{}`", row.arch);
    bounds(ARCHES, &what, row.since, row.last, toolkits)?;
    if (row.arch.variant == Variant::Family) == row.family.is_empty() {
        return Err(fault(ARCHES, format!("{what}: exactly the `f` architectures have a `family`")));
    }
    let find = |wanted| arches.arch.iter().find(|other| other.arch == wanted);
    let named = row.family.iter().chain(&row.renamed_to).chain(&row.renamed_from);
    if let Some(other) = named.copied().find(|other| find(*other).is_none()) {
        return Err(fault(ARCHES, format!("{what} names `{other}`, which is no row")));
    }
    let back = row.renamed_to.and_then(find).map(|other| other.renamed_from);
    let forth = row.renamed_from.and_then(find).map(|other| other.renamed_to);
    match back.into_iter().chain(forth).all(|name| name == Some(row.arch)) {
        true => Ok(()),
        false => Err(fault(ARCHES, format!("{what}: `renamed-to` and `renamed-from` must name each other"))),
    }
}

fn bounds(
    file: &'static str,
    what: &str,
    since: Option<Toolkit>,
    last: Option<Toolkit>,
    toolkits: &ToolkitFile,
) -> Result<(), CatalogueError> {
    let known = |toolkit: &Toolkit| toolkits.toolkit.iter().any(|row| row.version == *toolkit);
    if let Some(toolkit) = since.iter().chain(&last).find(|toolkit| !known(toolkit)) {
        return Err(fault(file, format!("{what} names CUDA {toolkit}, which {TOOLKITS} does not have")));
    }
    match (since, last) {
        (Some(since), Some(last)) if last < since => {
            Err(fault(file, format!("{what} ends at CUDA {last}, before it starts at {since}")))
        }
        _ => Ok(()),
    }
}

fn ascending<T: PartialOrd + ToString>(
    file: &'static str,
    table: &str,
    keys: &[T],
) -> Result<(), CatalogueError> {
    match keys.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(not_ascending(file, table, &pair[0].to_string(), &pair[1].to_string())),
        None => Ok(()),
    }
}

fn not_ascending(file: &'static str, table: &str, first: &str, second: &str) -> CatalogueError {
    fault(file, format!("`[[{table}]]` must ascend: `{second}` follows `{first}`"))
}

fn fault(file: &'static str, what: String) -> CatalogueError {
    CatalogueError::Contradiction { file, what }
}
