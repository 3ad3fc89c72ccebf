//! Names of files that cannot be said or written.

/// A name as it is shown: what is no UTF-8 in it as `\xff`.
pub(super) fn shown(name: &[u8]) -> String {
    let chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let bytes: String = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("{}{bytes}", chunk.valid())
    };
    name.utf8_chunks().map(chunk).collect()
}

/// The command that gives a file another name, as a shell takes it.
pub(super) fn rename(path: &str) -> String {
    let escaped = path.replace('\\', r"\\").replace('\'', r"\'").replace('\n', r"\n").replace('\r', r"\r");
    let plain: String =
        path.chars().map(|c| if c.is_alphanumeric() || "/._-".contains(c) { c } else { '_' }).collect();
    format!("give it another name, also where it is named: mv -- $'{escaped}' {plain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_said_is_escaped() {
        assert_eq!(shown(b"a/\xff\xfe b.cu"), r"a/\xff\xfe b.cu");
        assert_eq!(shown("ä.cu".as_bytes()), "ä.cu");
        assert!(rename("it's\nb.cu").ends_with(r"mv -- $'it\'s\nb.cu' it_s_b.cu"));
    }
}
