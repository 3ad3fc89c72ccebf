//! What a compiled extension was built for, by what it needs from others.

use super::object_file::ObjectFile;
use super::torch_symbols::{TorchRange, cxx11_abi, is_of_torch, offered};
use crate::engine::tag::Tag;

/// What a file was built for; what is absent cannot be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuiltFor {
    /// The releases of torch that offer all symbols that it takes from torch; none where it takes none.
    pub torch: Option<TorchRange>,
    /// It takes nothing of torch but its stable interface, which newer releases keep.
    pub stable: bool,
    /// The ABI of C++ strings: true for the new one.
    pub cxx11_abi: Option<bool>,
    /// The major release of CUDA whose libraries it needs: `12`.
    pub cuda: Option<u16>,
    /// As `uname -m` names it.
    pub machine: String,
    /// The oldest glibc that it runs on.
    pub glibc: Option<Tag>,
    /// The newest symbols of libstdc++ that it needs: 3.4.30.
    pub libstdcxx: Option<Tag>,
    /// The Python that its name speaks of: `3.11`.
    pub python: Option<String>,
}

/// Reads it from a file's tables and name.
pub fn built_for(object: &ObjectFile, name: &str) -> BuiltFor {
    let ours = || object.imports.iter().filter(|symbol| is_of_torch(symbol));
    let stable = object.imports.iter().any(|symbol| symbol.starts_with("aoti_torch_"));
    let links_torch = object.needed.iter().any(|library| is_torch_library(library));
    let range = ours().fold(TorchRange::default(), |range, symbol| range.and(offered(symbol)));
    let has_ours = ours().next().is_some();
    BuiltFor {
        torch: (has_ours || links_torch || stable).then_some(range),
        stable: stable && !has_ours,
        cxx11_abi: ours().find_map(|symbol| cxx11_abi(symbol)),
        cuda: cuda(&object.needed),
        machine: object.machine.clone(),
        glibc: newest(&object.versions, "GLIBC_"),
        libstdcxx: newest(&object.versions, "GLIBCXX_"),
        python: python(name),
    }
}

/// Whether a library is one of torch's own.
pub fn is_torch_library(name: &str) -> bool {
    ["libtorch", "libc10", "torch_", "c10"].iter().any(|beginning| name.starts_with(beginning))
}

/// The major of `libcudart.so.12`, `cudart64_110.dll`; without it, that of cublas.
fn cuda(needed: &[String]) -> Option<u16> {
    let of = |library: &str| {
        needed.iter().find_map(|name| {
            let rest = name.strip_prefix("lib").unwrap_or(name).strip_prefix(library)?;
            match rest.strip_prefix(".so.") {
                Some(version) => version.split('.').next()?.parse().ok(),
                None => windows_major(rest.strip_prefix("64_")?.strip_suffix(".dll")?),
            }
        })
    };
    of("cudart").or_else(|| of("cublas"))
}

/// `12` of `12`, `11` of `110`, `10` of `101`.
fn windows_major(digits: &str) -> Option<u16> {
    digits.get(..2)?.parse().ok()
}

/// The newest version with a prefix: `GLIBC_2.17` and `GLIBC_2.32` give 2.32.
fn newest(versions: &[String], prefix: &str) -> Option<Tag> {
    versions.iter().filter_map(|version| version.strip_prefix(prefix)?.parse().ok()).max()
}

/// `3.11` of `x.cpython-311-x86_64-linux-gnu.so` and of `x.cp311-win_amd64.pyd`.
fn python(name: &str) -> Option<String> {
    let file = name.rsplit(['/', '\\']).next()?.replace("cpython-", "cp");
    let digits =
        file.split(['.', '-']).filter_map(|part| part.strip_prefix("cp")).find(|text| is_number(text))?;
    let (major, minor) = digits.split_at(1);
    Some(format!("{major}.{minor}"))
}

fn is_number(text: &str) -> bool {
    text.len() >= 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_it_needs_tells_what_it_was_built_for() {
        let object = ObjectFile {
            machine: "x86_64".into(),
            needed: strings(&["libc10.so", "libcudart.so.12", "libc.so.6"]),
            versions: strings(&[
                "GLIBC_2.2.5",
                "GLIBC_2.34",
                "GLIBC_PRIVATE",
                "GLIBCXX_3.4.30",
                "GLIBCXX_3.4.9",
            ]),
            imports: strings(&[
                "memcpy",
                "_ZN3c104cuda9SetDeviceEa",
                "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
                "_ZN3c1021throwNullDataPtrErrorEv",
            ]),
            ..ObjectFile::default()
        };
        let built = built_for(&object, "/x/selective_scan_cuda.cpython-311-x86_64-linux-gnu.so");
        assert_eq!(built.torch.map(|range| range.to_string()).as_deref(), Some("2.4 to 2.7"));
        assert_eq!((built.cxx11_abi, built.cuda, built.stable), (Some(false), Some(12), false));
        assert_eq!(built.glibc.map(|tag| tag.to_string()).as_deref(), Some("2.34"));
        assert_eq!(built.libstdcxx.map(|tag| tag.to_string()).as_deref(), Some("3.4.30"));
        assert_eq!(built.python.as_deref(), Some("3.11"));
    }

    #[test]
    fn the_stable_interface_and_no_torch_at_all_are_told_apart() {
        let of = |needed: &[&str], imports: &[&str]| {
            let object =
                ObjectFile { needed: strings(needed), imports: strings(imports), ..ObjectFile::default() };
            let built = built_for(&object, "x.so");
            (built.torch.is_some(), built.stable, built.cuda)
        };
        assert_eq!(of(&["libcudart.so.11.0"], &["memcpy"]), (false, false, Some(11)));
        assert_eq!(of(&["libtorch.so"], &["aoti_torch_empty_strided"]), (true, true, None));
        assert_eq!(of(&["torch_cpu.dll", "cudart64_110.dll"], &[]), (true, false, Some(11)));
        assert_eq!(of(&["libcublas.so.13"], &[]), (false, false, Some(13)));
    }

    #[test]
    fn names_speak_of_pythons() {
        for (name, python) in [
            ("a/x.cp311-win_amd64.pyd", Some("3.11")),
            ("x.cpython-39-aarch64-linux-gnu.so", Some("3.9")),
            ("mamba_ssm-2.2.4-cp312-cp312-linux_x86_64.whl", Some("3.12")),
            ("x.abi3.so", None),
            ("cp.so", None),
            ("x.cpython.so", None),
        ] {
            assert_eq!(super::python(name).as_deref(), python, "{name}");
        }
    }
}
