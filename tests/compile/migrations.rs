//! Which migration an error text belongs to: what nvcc 13.0 and g++ print for each, once compiled.

use std::sync::LazyLock;

use regex::RegexSet;

/// What is behind an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Syntax decides what to write.
    Edit(&'static str),
    /// A person decides: the patches report it.
    Hand(&'static str),
    /// The text comes after another error and says nothing of its own.
    Sequel,
}

use Cause::{Edit, Hand, Sequel};

const TEXTS: &[(Cause, &str)] = &[
    (Edit("AT_CHECK"), r#"["‘']AT_CHECK["’']"#),
    (Edit("dispatch on a type"), r#"DeprecatedTypeProperties["’'] to ["‘']c10::ScalarType"#),
    (Edit("THC headers"), r"^THC/THC(General)?\.h: No such file"),
    (Hand("THC headers"), r"^(THC?UNN|THC?)/[\w/]+\.(h|cuh): No such file"),
    (Edit("THCudaCheck"), r#"["‘']THCudaCheck["’']"#),
    (Edit("THCCeilDiv"), r#"["‘']THCCeilDiv["’']"#),
    (
        Edit("THCState"),
        r#"["‘'](THCState|THCState_getCurrentStream|state)["’']|getTHCState|no member "lazyInitCUDA"#,
    ),
    (Edit("THCudaMalloc"), r#"["‘']THCuda(Malloc|Free)["’']"#),
    (
        Hand("TH tensors and BLAS"),
        r#"["‘']TH(Cuda|C|Float|Double|Half|Int|Long|Byte)\w*_\w+["’']|["‘']TH\w*Tensor["’']"#,
    ),
    (Edit("THArgCheck and THError"), r#"["‘'](THError|THArgCheck|THCublasCheck|THAssert)["’']"#),
    (
        Edit("current stream"),
        r#"no member ["‘']getCurrentCUDAStream|has no member named .getCurrentCUDAStream"#,
    ),
    (
        Edit("a type where options stand"),
        r"matching function for call to .?(zeros|empty|ones|full)\(at::DeprecatedTypeProperties|DeprecatedTypeProperties.* has no member|namespace .at. has no member .getType",
    ),
    (Edit("toType"), r#"DeprecatedTypeProperties["’'] to ["‘']c10::ScalarType"#),
    (Hand("at::Type in a signature"), r#"at::Type["’'&]"#),
    (Edit("AT_DISPATCH_ALL_TYPES_AND_HALF"), r"AT_DISPATCH_ALL_TYPES_AND_HALF"),
    (
        Edit("C++17"),
        r"#error (C\+\+17|You need C\+\+17|CUB requires|libcu\+\+ requires|Thrust requires)|C\+\+17 or later",
    ),
    (Edit("CHECK_EQ"), r#"["‘']CHECK_(EQ|NE|LT|LE|GT|GE)["’']"#),
    (Edit("dispatch attributes"), r"C10_UNUSED_DISPATCH_CUDA_WORKAROUND|C10_FALLTHROUGH"),
    (Edit("shuffles without _sync"), r#"["‘']__shfl(_up|_down|_xor)?["’']"#),
    (Edit("votes without _sync"), r"Instruction 'vote' without '.sync'"),
    (Edit("own atomicAdd"), r#"atomicAdd\(double \*, double\).* already been defined"#),
    (Hand("texture references"), r"texture is not a template|cudaBindTexture|tex1Dfetch"),
    (Hand("cudaDeviceProp"), r"cudaDeviceProp.? has no member"),
    (Edit("cudaThread*"), r#"["‘']cudaThread(Synchronize|Exit)["’']"#),
    (Hand("cuSPARSE by format"), r#"["‘']cusparse\w+["’']"#),
    (Edit("<memory>"), r#"["‘'](unique_ptr|shared_ptr|make_unique|make_shared)["’'] is not a member of"#),
    (Hand("cudaMemLocation"), r"cudaMemLocation"),
    (Edit("nvToolsExt.h"), r"^nvToolsExt\.h: No such file"),
    (Edit("architectures"), r"Unsupported gpu architecture|Incompatible code generation"),
    (
        Edit("CUB functors"),
        r#"namespace "cub" has no member "(Sum|Max|Min|Equality|Inequality|Difference|Division)"#,
    ),
    (
        Edit("CUB helpers"),
        r#"namespace "cub" has no member( function)? "(LaneId|WarpId|CTA_SYNC\w*|WARP_\w+|SHFL_\w+|Swap|Int2Type|ThreadTrap)|["‘']CUB_(MAX|MIN|QUOTIENT_CEILING|ROUND_UP_NEAREST)"#,
    ),
    (Edit("CUB iterators"), r#"namespace "cub" has no member.* "(Counting|Constant|Transform)InputIterator"#),
    (
        Edit("thrust functors"),
        r#"namespace "thrust" has no member.* "(unary_function|binary_function|identity|not1|not2)"#,
    ),
    (Edit("CCCL's folder"), r"^(cub|thrust|cuda/std)/[\w/.]+: No such file"),
    (
        Edit("headers that THC.h brought"),
        r#"["‘']?(stderr|fprintf|printf|std::cout|cudaDeviceSynchronize|cudaStream_t|cudaGetErrorString)["’'].*(undefined|not declared|does not name)"#,
    ),
    (
        Sequel,
        r"no instance of overloaded function|expected a|expected an|expected ;|is undefined$|was not declared in this scope|not declared$|class or struct definition is missing|is not a member of|has not been declared|no operator|expected primary-expression|expected .* before",
    ),
];

static SET: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(TEXTS.iter().map(|(_, text)| text)).expect("patterns"));

/// The cause of an error, if the catalogue knows it: the first whose text it is.
pub fn cause(message: &str) -> Option<Cause> {
    SET.matches(message).iter().next().map(|number| TEXTS[number].0)
}
