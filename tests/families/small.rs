//! Small sources in the shape of each family, with the spellings that patches hang on.

use super::{FAMILIES, Family};

/// A family in the spelling of one upstream.
pub struct Small {
    /// `mamba-ssm` or `causal-conv1d`.
    pub upstream: &'static str,
    /// A release of that shape; `main` is newer than all of them.
    pub version: &'static str,
    family: usize,
    /// Whether the branch for CUDA names a C++ standard.
    names_standard: bool,
    /// Whether kernels are built only when asked for.
    opt_in: bool,
}

const fn mamba(version: &'static str, family: usize) -> Small {
    Small { upstream: "mamba-ssm", version, family, names_standard: true, opt_in: false }
}

const fn causal_conv1d(version: &'static str, family: usize) -> Small {
    Small { upstream: "causal-conv1d", version, family, names_standard: false, opt_in: false }
}

/// One of each shape.
pub const SMALL: [Small; 14] = [
    Small { names_standard: false, ..mamba("1.0.0", 0) },
    mamba("1.1.4", 0),
    mamba("2.0.4", 1),
    mamba("2.2.4", 2),
    mamba("2.2.5", 3),
    mamba("2.3.1", 4),
    mamba("2.3.2", 6),
    Small { opt_in: true, ..mamba("main", 6) },
    causal_conv1d("1.0.0", 0),
    causal_conv1d("1.2.1", 1),
    causal_conv1d("1.4.0", 2),
    causal_conv1d("1.5.1", 3),
    causal_conv1d("1.6.1", 5),
    causal_conv1d("main", 6),
];

const PLATFORM: &str = r#"def get_platform():
    if sys.platform.startswith("linux"):
        return "linux_x86_64"
    if sys.platform == "darwin":
        return f"macosx_{platform.mac_ver()[0]}_x86_64"
    return "win_amd64"


"#;

const ASKS_TORCH: &str = r#"
        torch_cuda_version = parse(torch.version.cuda)
        if bare_metal_version.major != torch_cuda_version.major:
            os.environ["TORCH_CUDA_ARCH_LIST"] = ""

"#;

const GENERATION: &str = r#"from transformers.generation import GreedySearchDecoderOnlyOutput, SampleDecoderOnlyOutput@


def decode(ids, model, top_k=1):
    """
    Says more.
    Returns: GreedySearchDecoderOnlyOutput or SampleDecoderOnlyOutput, with the fields:
        sequences: "all" of them
    """
    sequences = [ids[:top_k]]
    output_cls = GreedySearchDecoderOnlyOutput if top_k == 1 else SampleDecoderOnlyOutput
    return output_cls(sequences=sequences, scores=tuple(model))
"#;

fn replaced(text: String, places: &[(&str, &str)]) -> String {
    places.iter().fold(text, |text, (old, new)| {
        assert!(text.contains(old), "{old} is in the small setup.py");
        text.replace(old, new)
    })
}

/// The oldest releases know nothing of ROCm.
fn without_rocm(text: String) -> String {
    let places = [
        ("HIP_BUILD = bool(torch.version.hip)\n", ""),
        ("f\"hip{torch.version.hip[:1]}\" if HIP_BUILD else ", ""),
    ];
    replaced(text, &places)
}

impl Small {
    fn variable(&self) -> &'static str {
        if self.upstream == "mamba-ssm" { "MAMBA" } else { "CAUSAL_CONV1D" }
    }

    fn is_newest(&self) -> bool {
        self.upstream == "mamba-ssm" && self.family == 6
    }

    /// Its setup.py.
    pub fn setup(&self) -> String {
        let family: &Family = &FAMILIES[self.family];
        let build =
            format!("if os.getenv(\"{}_SKIP_CUDA_BUILD\", \"FALSE\") != \"TRUE\":\n", self.variable());
        let text = replaced(
            family.setup(),
            &[
                ("SMALL_", &format!("{}_", self.variable())),
                (" nvcc_version(", " get_cuda_bare_metal_version("),
                ("    return parse(words[", "    return words, parse(words["),
                ("    bare_metal_version = get", "    _, bare_metal_version = get"),
                ("threaded(", "append_nvcc_threads("),
                ("def get_wheel_url", &format!("{PLATFORM}def get_wheel_url")),
                ("linux_{platform.machine()}", "{get_platform()}"),
                (
                    &build,
                    &format!(
                        "{build}    TORCH_MAJOR = int(torch.__version__.split(\".\")[0])\n    TORCH_MINOR = int(torch.__version__.split(\".\")[1])\n"
                    ),
                ),
            ],
        );
        let text = if family.hip { text } else { without_rocm(text) };
        self.flagged(self.newest(text), &build, family.hip)
    }

    /// What the newest releases of mamba do besides.
    fn newest(&self, text: String) -> String {
        if !self.is_newest() {
            return text;
        }
        let end = "is needed\")\n\n";
        let machine = "f\"linux_{platform.machine()}\"";
        replaced(text, &[(end, &format!("is needed\")\n{ASKS_TORCH}")), ("\"linux_x86_64\"", machine)])
    }

    fn flagged(&self, text: String, build: &str, hip: bool) -> String {
        let standard = "\"-O3\", \"-std=c++17\"";
        let text = if hip {
            replaced(text, &[("                \"-O3\",\n", &format!("                {standard},\n"))])
        } else {
            text
        };
        let cuda = [
            ("\"cxx\": [\"-O3\"]", format!("\"cxx\": [{standard}]")),
            ("[\"-O3\", \"--use", format!("[{standard}, \"--use")),
        ];
        let cuda: Vec<(&str, &str)> = cuda.iter().map(|(old, new)| (*old, new.as_str())).collect();
        let text = if self.names_standard { replaced(text, &cuda) } else { text };
        if !self.opt_in {
            return text;
        }
        let keep = "KEEP_CUDA_BUILD = os.getenv(\"MAMBA_KEEP_CUDA_BUILD\", \"FALSE\") == \"TRUE\"\nif KEEP_CUDA_BUILD:\n";
        replaced(text, &[(build, keep), ("if FORCE_BUILD:", "if FORCE_BUILD or not KEEP_CUDA_BUILD:")])
    }

    /// Its mamba_ssm/utils/generation.py, as it was before v2.3.0.
    pub fn generation(&self) -> Option<String> {
        let others = if self.version.starts_with("1.0.") { "" } else { ", TextStreamer" };
        let old = self.upstream == "mamba-ssm" && self.family <= 3;
        old.then(|| GENERATION.replace('@', others))
    }
}
