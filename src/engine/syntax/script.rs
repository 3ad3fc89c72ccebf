//! What a script of Python compiles, and whether it chooses the GPU architectures itself.

use tree_sitter::Node;

use super::language::{Language, Parsed, ancestors, descendants};

/// What a script says of compiling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// It has CUDA compiled: `CUDAExtension`, `cuda_sources`, or sources that end with `.cu`.
    pub cuda: bool,
    /// It has PyTorch compile when it is imported: `load(…)`.
    pub loads: bool,
    /// It passes flags of its own that choose architectures, for which PyTorch adds none.
    pub flags: bool,
    /// It reads or sets `TORCH_CUDA_ARCH_LIST`.
    pub list: bool,
    /// It sets that variable, whatever the user has set it to.
    pub overrides: bool,
    /// The modules that it imports, as paths without an end: `lib/flags`.
    pub imports: Vec<String>,
}

impl Script {
    /// Reads a script; one that cannot be parsed says nothing.
    pub fn of(bytes: &[u8]) -> Self {
        let Ok(parsed) = Parsed::new(Language::Python, bytes.into()) else { return Self::default() };
        let mut script = Self::default();
        let mut words = Vec::new();
        for node in parsed.nodes() {
            match node.kind() {
                "string" if !parsed.is_bare_string(&node.byte_range()) => {
                    words.extend(words_of(&parsed.text(node)));
                }
                "identifier" => script.read_name(node, &parsed),
                "assignment" => script.overrides |= overrides(node, &parsed),
                "import_statement" | "import_from_statement" => script.imports.extend(modules(node, &parsed)),
                _ => {}
            }
        }
        script.cuda |= words.iter().any(|word| word.ends_with(".cu"));
        script.list |= words.iter().any(|word| word == LIST);
        script.flags = chooses(&words);
        script
    }

    fn read_name(&mut self, name: Node<'_>, parsed: &Parsed) {
        let is_import = || ancestors(name).any(|outer| outer.kind().starts_with("import_"));
        match parsed.text(name).as_str() {
            "CUDAExtension" => self.cuda |= !is_import(),
            "load" | "load_inline" => {
                self.loads |= is_called(name) && !parsed.offsets_of("cpp_extension").is_empty()
            }
            "cuda_sources" => self.cuda = true,
            LIST => self.list = true,
            _ => {}
        }
    }

    /// A script together with one that it imports.
    pub fn with(mut self, imported: &Script) -> Self {
        self.cuda |= imported.cuda;
        self.flags |= imported.flags;
        self.list |= imported.list;
        self.overrides |= imported.overrides;
        self
    }
}

const LIST: &str = "TORCH_CUDA_ARCH_LIST";

/// `os.environ["TORCH_CUDA_ARCH_LIST"] = …`, where neither the value nor a condition around asks for the user's.
fn overrides(assignment: Node<'_>, parsed: &Parsed) -> bool {
    let speaks = |node: Node<'_>| parsed.text(node).contains(LIST);
    let field = |node: Node<'_>, name: &str| node.child_by_field_name(name).is_some_and(speaks);
    let left = assignment.child_by_field_name("left");
    let sets = left.is_some_and(|left| left.kind() == "subscript" && field(left, "subscript"));
    sets && !field(assignment, "right")
        && !ancestors(assignment)
            .any(|outer| field(outer, "condition") || outer.kind() == "function_definition")
}

/// Whether words are flags that choose architectures; `-arch` alone is the host compiler's of macOS too.
fn chooses(words: &[String]) -> bool {
    const FLAGS: [&str; 6] =
        ["-gencode", "--generate-code", "-arch=", "--gpu-architecture", "arch=compute_", "arch=sm_"];
    let starts =
        |starts: &[&str]| words.iter().any(|word| starts.iter().any(|start| word.starts_with(start)));
    starts(&FLAGS) || (words.iter().any(|word| word == "-arch") && starts(&["sm_", "compute_"]))
}

/// The words between the quotes of a string.
fn words_of(string: &str) -> Vec<String> {
    let words = string.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    words.map(str::to_string).collect()
}

/// Whether a name, or the attribute that it is, is what a call calls.
fn is_called(name: Node<'_>) -> bool {
    let calls = |node: Node<'_>| {
        node.parent().is_some_and(|call| {
            call.kind() == "call" && call.child_by_field_name("function").is_some_and(|called| called == node)
        })
    };
    let attribute = name.parent().filter(|outer| {
        outer.kind() == "attribute" && outer.child_by_field_name("attribute").is_some_and(|it| it == name)
    });
    calls(name) || attribute.is_some_and(calls)
}

/// The modules that an import may name: of `from a import b` both `a` and `a/b`.
fn modules(import: Node<'_>, parsed: &Parsed) -> Vec<String> {
    let path = |node: Node<'_>| parsed.text(node).trim_start_matches('.').replace('.', "/");
    let names = descendants(import).filter(|node| node.kind() == "dotted_name");
    match import.child_by_field_name("module_name") {
        None => names.map(path).collect(),
        Some(module) => {
            let outer = path(module);
            let names = names.filter(|name| name.start_byte() >= module.end_byte());
            let inner =
                names.map(|name| format!("{outer}/{}", path(name)).trim_start_matches('/').to_string());
            inner.chain([outer.clone()]).filter(|path| !path.is_empty()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMPORT: &str = "from torch.utils.cpp_extension import CUDAExtension, CppExtension, load\n";

    /// `cuda loads flags list`, those that hold.
    fn said(text: &str) -> String {
        let script = Script::of(format!("{IMPORT}{text}").as_bytes());
        let named = [
            ("cuda", script.cuda),
            ("loads", script.loads),
            ("flags", script.flags),
            ("list", script.list),
            ("overrides", script.overrides),
        ];
        named.iter().filter(|(_, holds)| *holds).map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_pytorch_compiles() {
        assert_eq!(said("CppExtension('a', ['a.cpp'])\n"), "");
        assert_eq!(said("extension = CUDAExtension\n"), "cuda");
        assert_eq!(said("cpp_extension.CUDAExtension('a', [])\n"), "cuda");
        assert_eq!(said("CppExtension('a', glob('*.cu'))\n"), "cuda");
        assert_eq!(said("load(name='a', sources=['a.cpp', 'a.cu'])\n"), "cuda loads");
        assert_eq!(said("# CUDAExtension\nload\n"), "");
    }

    #[test]
    fn who_chooses_the_architectures() {
        assert_eq!(said("f.append(f'-arch=sm_{cc()}')\n"), "flags");
        assert_eq!(said("f = ['-O2', '-gencode', a]\n"), "flags");
        assert_eq!(said("f = '-arch sm_70'\n"), "flags");
        assert_eq!(said("f = ['--gpu-architecture=sm_70']\n"), "flags");
        assert_eq!(said("f = ['-march=native', '--offload-arch=gfx90a', '-arch', 'arm64']\n"), "");
        assert_eq!(said("# -gencode\n'-gencode'\n"), "");
        let sets = "os.environ['TORCH_CUDA_ARCH_LIST'] = a\n";
        assert_eq!(said(sets), "list overrides");
        assert_eq!(said(&format!("if 'TORCH_CUDA_ARCH_LIST' not in os.environ:\n    {sets}")), "list");
        assert_eq!(said(&sets.replace("= a", "= os.getenv('TORCH_CUDA_ARCH_LIST', a)")), "list");
    }

    #[test]
    fn what_is_imported() {
        let imports = |text: &str| Script::of(text.as_bytes()).imports.join(" ");
        assert_eq!(imports("import a.b as c, d\n"), "a/b d");
        assert_eq!(imports("from a.b import c\n"), "a/b/c a/b");
        assert_eq!(imports("from . import c\nfrom .d import *\n"), "c d");
    }
}
