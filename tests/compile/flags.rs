//! Which flags reach the compiler: the rules of torch.utils.cpp_extension of PyTorch 2.11.

/// What torch gives to every nvcc before the flags of setup.py.
const FOR_EVERY_NVCC: [&str; 7] = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
    "--compiler-options",
    "-fPIC",
];

/// The names that TORCH_CUDA_ARCH_LIST may hold, those with `+` first.
const NAMED: [(&str, &str); 14] = [
    ("Kepler+Tesla", "3.7"),
    ("Kepler", "3.5+PTX"),
    ("Maxwell+Tegra", "5.3"),
    ("Maxwell", "5.0;5.2+PTX"),
    ("Pascal", "6.0;6.1+PTX"),
    ("Volta+Tegra", "7.2"),
    ("Volta", "7.0+PTX"),
    ("Turing", "7.5+PTX"),
    ("Ampere+Tegra", "8.7"),
    ("Ampere", "8.0;8.6+PTX"),
    ("Ada", "8.9+PTX"),
    ("Hopper", "9.0+PTX"),
    ("Blackwell+Tegra", "11.0"),
    ("Blackwell", "10.0;10.3;12.0;12.1+PTX"),
];

/// The flags of a `.cu`. Any flag with `arch` in it keeps torch from adding architectures.
pub fn for_nvcc(given: &[String], arch_list: Option<&str>) -> Vec<String> {
    let mut flags: Vec<String> = FOR_EVERY_NVCC.iter().map(|flag| flag.to_string()).collect();
    flags.extend(given.iter().cloned());
    if !given.iter().any(|flag| flag.contains("arch")) {
        flags.extend(arch_list.into_iter().flat_map(of_arch_list));
    }
    with_std(&flags)
}

/// C++17, unless the flags name a standard.
pub fn with_std(given: &[String]) -> Vec<String> {
    let mut flags = given.to_vec();
    if !given.iter().any(|flag| flag.starts_with("-std=")) {
        flags.push("-std=c++17".to_string());
    }
    flags
}

/// The flags of a value of TORCH_CUDA_ARCH_LIST.
fn of_arch_list(list: &str) -> Vec<String> {
    let list = NAMED.iter().fold(list.replace(' ', ";"), |list, (name, arches)| list.replace(name, arches));
    let flags = list.split(';').filter(|entry| !entry.is_empty()).flat_map(|entry| {
        let number = entry.trim_end_matches("+PTX").replace('.', "");
        let flag = |kind: &str| format!("-gencode=arch=compute_{number},code={kind}_{number}");
        let ptx = entry.ends_with("+PTX").then(|| flag("compute"));
        [Some(flag("sm")), ptx].into_iter().flatten()
    });
    flags.collect()
}

/// The flags apart: those that name architectures, and the others without what only costs time.
pub fn split(flags: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut arches, mut others) = (Vec::new(), Vec::new());
    let mut rest = flags.iter().map(String::as_str);
    while let Some(flag) = rest.next() {
        match flag {
            "-gencode" | "--generate-code" | "-arch" | "--gpu-architecture" | "-code" | "--gpu-code" => {
                arches.push(flag.to_string());
                arches.extend(rest.next().map(String::from));
            }
            "--threads" | "-t" | "-Xptxas" | "--ptxas-options" | "-ccbin" => drop(rest.next()),
            flag if is_arch(flag) => arches.push(flag.to_string()),
            flag if is_costly(flag) => {}
            flag => others.push(flag.to_string()),
        }
    }
    (arches, others)
}

fn is_arch(flag: &str) -> bool {
    ["-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code=", "--gpu-code="]
        .iter()
        .any(|name| flag.starts_with(name))
}

fn is_costly(flag: &str) -> bool {
    let starts =
        ["-O", "-g", "-lineinfo", "--generate-line-info", "-keep", "--threads=", "-march=", "-Xptxas="];
    starts.iter().any(|start| flag.starts_with(start))
}

/// The one architecture to compile for: 120 if the flags have it or none is named, else the newest that is named.
pub fn one_arch(arches: &[String]) -> String {
    let words: Vec<&str> =
        arches.iter().flat_map(|flag| flag.split(['=', ',', '[', ']', '"', ' '])).collect();
    let codes = words.iter().filter_map(|word| word.strip_prefix("sm_"));
    let number = |code: &&str| code.trim_end_matches(char::is_alphabetic).parse::<u32>().unwrap_or(0);
    let known = codes.filter(|code| number(code) >= 75);
    let newest = known.max_by_key(|code| (number(code) == 120, number(code)));
    newest.unwrap_or("120").to_string()
}
