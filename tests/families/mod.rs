//! The ways in which the upstreams' setup.py files name their architectures, one family a spelling, and a small
//! setup.py in the shape of each.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod small;
mod text;

use mambapatch::engine::tag::TagRange;

use super::harness::releases::Release;

/// The toolkits of [`Family::arches`].
pub const TOOLKITS: [&str; 6] = ["11.6", "11.8", "12.3", "12.8", "12.9", "13.0"];

/// One spelling of the architectures.
pub struct Family {
    /// How the facts name it.
    pub name: &'static str,
    mamba: &'static str,
    causal_conv1d: &'static str,
    /// Whether there is a branch for ROCm.
    pub hip: bool,
    /// Guard (an empty one is none), and the architectures under it.
    blocks: &'static [(&'static str, &'static [u32])],
    /// What each of [`TOOLKITS`] compiles.
    pub arches: [&'static str; 6],
}

const NOT_THERE: &str = "<0";
const JETSON: &[u32] = &[53, 62, 70, 72, 80, 87];
const FROM_11_8: (&str, &[u32]) = (r#">= Version("11.8")"#, &[90]);
const FROM_12_8: (&str, &[u32]) = (r#">= Version("12.8")"#, &[100, 120]);
const FROM_13_0: (&str, &[u32]) = (r#">= Version("13.0")"#, &[103, 110, 121]);
const UNTIL_12_9: &str = r#"<= Version("12.9")"#;
const NEWEST: &str = "75 80 87 90 100 120 103 110 121";

/// A, B, C, D, E, E', F.
pub const FAMILIES: [Family; 7] = [
    Family {
        name: "A",
        mamba: ">=1.0.0,<=1.2.0.post1",
        causal_conv1d: ">=1.0.0,<=1.2.0.post2",
        hip: false,
        blocks: &[("", &[70, 80]), FROM_11_8],
        arches: ["70 80", "70 80 90", "70 80 90", "70 80 90", "70 80 90", "70 80 90"],
    },
    Family {
        name: "B",
        mamba: ">=1.2.1,<=2.0.4",
        causal_conv1d: ">=1.2.1,<=1.2.2.post1",
        hip: false,
        blocks: &[("", JETSON), FROM_11_8],
        arches: JETSON_AND_90,
    },
    Family {
        name: "C",
        mamba: ">=2.1.0,<=2.2.4",
        causal_conv1d: ">=1.3.0,<=1.5.0.post8",
        hip: true,
        blocks: &[("", JETSON), FROM_11_8],
        arches: JETSON_AND_90,
    },
    Family {
        name: "D",
        mamba: "==2.2.5",
        causal_conv1d: ">=1.5.1,<=1.5.2",
        hip: true,
        blocks: &[("", JETSON), FROM_11_8, (FROM_12_8.0, &[100])],
        arches: [
            "53 62 70 72 80 87",
            "53 62 70 72 80 87 90",
            "53 62 70 72 80 87 90",
            "53 62 70 72 80 87 90 100",
            "53 62 70 72 80 87 90 100",
            "53 62 70 72 80 87 90 100",
        ],
    },
    Family {
        name: "E",
        mamba: ">=2.2.6,<=2.3.1",
        causal_conv1d: NOT_THERE,
        hip: true,
        blocks: &[(UNTIL_12_9, &[53, 62, 70, 72]), ("", &[75, 80, 87]), FROM_11_8, FROM_12_8, FROM_13_0],
        arches: [
            "53 62 70 72 75 80 87",
            "53 62 70 72 75 80 87 90",
            "53 62 70 72 75 80 87 90",
            "53 62 70 72 75 80 87 90 100 120",
            "53 62 70 72 75 80 87 90 100 120",
            NEWEST,
        ],
    },
    Family {
        name: "E'",
        mamba: NOT_THERE,
        causal_conv1d: ">=1.5.3,<=1.6.1.post4",
        hip: true,
        blocks: &[(UNTIL_12_9, &[62, 70, 72]), ("", &[75, 80, 87]), FROM_11_8, FROM_12_8, FROM_13_0],
        arches: [
            "62 70 72 75 80 87",
            "62 70 72 75 80 87 90",
            "62 70 72 75 80 87 90",
            "62 70 72 75 80 87 90 100 120",
            "62 70 72 75 80 87 90 100 120",
            NEWEST,
        ],
    },
    Family {
        name: "F",
        mamba: ">=2.3.2",
        causal_conv1d: ">1.6.1.post4",
        hip: true,
        blocks: &[("", &[75, 80, 87]), FROM_11_8, FROM_12_8, FROM_13_0],
        arches: [
            "75 80 87",
            "75 80 87 90",
            "75 80 87 90",
            "75 80 87 90 100 120",
            "75 80 87 90 100 120",
            NEWEST,
        ],
    },
];

const JETSON_AND_90: [&str; 6] = [
    "53 62 70 72 80 87",
    "53 62 70 72 80 87 90",
    "53 62 70 72 80 87 90",
    "53 62 70 72 80 87 90",
    "53 62 70 72 80 87 90",
    "53 62 70 72 80 87 90",
];

const fn variant(name: &'static str, blocks: &'static [(&'static str, &'static [u32])]) -> Family {
    Family { name, mamba: NOT_THERE, causal_conv1d: NOT_THERE, hip: true, blocks, arches: [""; 6] }
}

/// Family C after a right `--only-arch 90 --only-arch 120`.
pub const ONLY_90_120: Family = variant("C, only 90 and 120", &[FROM_11_8, (FROM_12_8.0, &[120])]);

/// Family C after a right `--cuda 13.0`.
pub const C_FOR_13: Family =
    variant("C for CUDA 13.0", &[(UNTIL_12_9, &[53, 62, 70, 72]), ("", &[80, 87]), FROM_11_8]);

/// Family C after a wrong `--cuda 13.0`: older toolkits lose what they had.
pub const C_WITHOUT_OLD: Family = variant("C without old ones", &[("", &[80, 87]), FROM_11_8]);

/// The family of a real release; the newest one for a branch.
pub fn of(release: &Release) -> &'static Family {
    let Some(tag) = release.tag() else { return &FAMILIES[6] };
    let range = |family: &Family| -> TagRange {
        let text = if release.upstream == "mamba-ssm" { family.mamba } else { family.causal_conv1d };
        text.parse().expect("a range")
    };
    let found = FAMILIES.iter().find(|family| range(family).contains(&tag));
    found.unwrap_or_else(|| panic!("{} belongs to no family", release.name()))
}

impl Family {
    /// A small setup.py in its shape.
    pub fn setup(&self) -> String {
        let depth = if self.hip { "        " } else { "    " };
        let blocks: String = self.blocks.iter().map(|(guard, arches)| block(guard, arches, depth)).collect();
        let cuda = text::CUDA.replace("@", depth) + &blocks;
        let (home, flags, arguments) = match self.hip {
            true => (", HIP_HOME", format!("{}{cuda}", text::ROCM), text::ARGUMENTS_WITH_ROCM),
            false => ("", cuda, text::ARGUMENTS),
        };
        format!("{}{flags}\n{arguments}{}", text::HEAD.replace("@", home), text::TAIL)
    }
}

fn block(guard: &str, arches: &[u32], depth: &str) -> String {
    let inner = if guard.is_empty() { "" } else { "    " };
    let append = |text: &str| format!("{depth}{inner}cc_flag.append(\"{text}\")\n");
    let pair = |arch: &u32| append("-gencode") + &append(&format!("arch=compute_{arch},code=sm_{arch}"));
    let pairs: String = arches.iter().map(pair).collect();
    if guard.is_empty() { pairs } else { format!("{depth}if bare_metal_version {guard}:\n{pairs}") }
}
