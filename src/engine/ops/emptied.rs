//! What is said of a list that would lose everything, and so stays as it is.

use pep440_rs::Version;

use crate::engine::catalogue::Catalogue;
use crate::engine::ops::gencode::ArchWish;
use crate::engine::toolkit::Toolkit;

/// The list, why it stays, and what to type: an architecture that all given toolkits take, where there is one.
pub fn told(
    place: &str,
    wish: &ArchWish,
    given: (&[Toolkit], Option<&Version>),
    catalogue: &Catalogue,
) -> String {
    format!("{place}: {}", why(wish, given, catalogue))
}

/// The same without the list.
pub fn why(wish: &ArchWish, (cuda, torch): (&[Toolkit], Option<&Version>), catalogue: &Catalogue) -> String {
    let names: Vec<String> = cuda.iter().map(|cuda| format!("CUDA {cuda}")).collect();
    let all = names.join(" and ");
    let Some(arch) = catalogue.best_for(cuda, torch) else {
        return format!("nothing would be left, and {all} take no architecture together: give one --cuda");
    };
    match names.as_slice() {
        names if names.is_empty() || !wish.is_empty() => {
            format!("nothing would be left; name what stays: --only-arch {arch}")
        }
        [_] => format!("{all} refuses all of it; say what to compile for: --add-arch {arch}"),
        _ => format!("{all} together refuse all of it; say what to compile for: --add-arch {arch}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cuda: &[&str], torch: Option<&str>, wish: &ArchWish) -> String {
        let cuda: Vec<Toolkit> = cuda.iter().map(|text| text.parse().expect("toolkit")).collect();
        let torch = torch.map(|text| text.parse().expect("version"));
        told("L", wish, (&cuda, torch.as_ref()), Catalogue::shipped())
    }

    #[test]
    fn what_is_to_be_typed_is_taken_by_every_toolkit() {
        let drop = ArchWish { drop: vec!["sm_60".parse().expect("code")], ..ArchWish::default() };
        assert_eq!(of(&[], None, &drop), "L: nothing would be left; name what stays: --only-arch 120");
        assert!(of(&["11.8", "13.0"], None, &drop).ends_with("--only-arch 90"));
        assert!(
            of(&["13.0"], Some("2.6"), &drop).ends_with("--only-arch 100"),
            "{}",
            of(&["13.0"], Some("2.6"), &drop)
        );
        let none = ArchWish::default();
        assert!(of(&["13.0"], None, &none).contains("CUDA 13.0 refuses all of it"));
        let both =
            "L: CUDA 11.1 and CUDA 13.0 together refuse all of it; say what to compile for: --add-arch 86";
        assert_eq!(of(&["11.1", "13.0"], None, &none), both);
    }
}
