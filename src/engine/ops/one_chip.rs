//! Lists of which every entry is for one chip alone (`90a`). Their kernels use what only that chip has, such as wgmma:
//! compiled for another one they fail, so that such a list is neither extended nor exchanged.

use super::gencode::settle::labels;
use crate::engine::arch::{Code, Variant};

/// Why what is missing is not put into a list, where the kernels are written for the chips that it names.
pub fn left(have: &[Code], missing: &[Code]) -> Option<String> {
    if missing.is_empty() || !are_all_specific(have) {
        return None;
    }
    let mut chips: Vec<String> = have.iter().map(|code| format!("sm_{}", code.arch())).collect();
    chips.dedup();
    let missing = labels(missing.to_vec());
    let (chips, those) = (chips.join(" and "), if chips.len() == 1 { "that chip" } else { "those chips" });
    Some(format!(
        "{missing} is not put there: compiled for {chips} alone, so the kernels are written for {those}"
    ))
}

/// Whether each of some results is for one chip alone.
pub fn are_all_specific(codes: &[Code]) -> bool {
    !codes.is_empty() && codes.iter().all(|code| code.arch().variant == Variant::Specific)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_for_chips_alone_is_left() {
        let codes = |text: &str| -> Vec<Code> {
            text.split_whitespace().map(|code| code.parse().expect("code")).collect()
        };
        let said = |have: &str, missing: &str| left(&codes(have), &codes(missing));
        let why = "120 is not put there: compiled for sm_90a alone, so the kernels are written for that chip";
        assert_eq!(said("sm_90a", "sm_120").as_deref(), Some(why));
        assert!(said("sm_90a sm_100a", "sm_120").is_some_and(|why| why.contains("sm_90a and sm_100a")));
        assert_eq!(
            (said("sm_90a sm_90", "sm_120"), said("sm_90a", ""), said("", "sm_120")),
            (None, None, None)
        );
    }
}
