//! Units: ops of a patch that land together or not at all.
//!
//! Ops that name their files do so in the whole tree: half of a unit is an error. Ops that search a tree by wildcards do
//! so in each file: where one of them leaves a place for a person, the others leave theirs.

use std::collections::BTreeMap;

use super::PlanError;
use crate::engine::ops::{Left, OpError, OpPlan, Outcome};
use crate::engine::patchset::PatchOp;

/// The files in which a unit is held back, each with the line that a person must see to.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<(String, String), usize>);

impl Held {
    /// Adds the files in which an op of a unit leaves a place for a person; whether there were more.
    pub(super) fn grow(&mut self, planned: &[(&PatchOp, OpPlan)]) -> bool {
        let before = self.0.len();
        for (op, plan) in planned.iter().filter(|(op, _)| searches(op)) {
            let Some(unit) = &op.unit else { continue };
            let only_reports = matches!(plan.outcome, Outcome::Reported { .. }) && plan.edits.is_empty();
            let reported = plan.sites.iter().filter(|_| only_reports);
            for site in plan.open().map(|left| &left.site).chain(reported) {
                self.0.entry((unit.clone(), site.path.clone())).or_insert(site.line);
            }
        }
        self.0.len() > before
    }

    /// Takes out of a plan what its unit does not do.
    pub(super) fn keep_back(&self, op: &PatchOp, plan: &mut OpPlan) {
        let Some(unit) = &op.unit else { return };
        let paths: Vec<String> = plan.edits.keys().cloned().collect();
        for path in paths {
            let Some(line) = self.0.get(&(unit.clone(), path.clone())) else { continue };
            plan.edits.remove(&path);
            let (back, kept) = plan.sites.drain(..).partition(|site| site.path == path);
            plan.sites = kept;
            let back: Vec<_> = back;
            let why = format!("belongs together with line {line}");
            plan.left.extend(back.into_iter().map(|site| Left { site, why: why.clone(), open: true }));
            op.op.settle(plan);
        }
    }
}

/// Whether an op searches a tree for its files.
fn searches(op: &PatchOp) -> bool {
    op.op.files().globs().iter().any(|glob| glob.contains('*'))
}

/// Refuses a patch of which only a part of a unit would land.
pub(super) fn check(planned: &[(&PatchOp, OpPlan)], unfit: &[(&PatchOp, OpError)]) -> Result<(), PlanError> {
    let held_back =
        planned.iter().filter(|(op, _)| !searches(op)).filter_map(|(op, plan)| match &plan.outcome {
            Outcome::NotApplicable { why } | Outcome::Reported { advice: why } => Some((*op, why.clone())),
            Outcome::Changed { .. } | Outcome::AlreadySatisfied { .. } => None,
        });
    let missing = unfit.iter().filter(|(op, _)| !planned.iter().any(|(other, _)| is_other_shape(op, other)));
    let missing = missing.map(|(op, cause)| (*op, cause.to_string()));
    for (op, why) in held_back.chain(missing) {
        let Some(unit) = &op.unit else { continue };
        let lands = |(other, plan): &&(&PatchOp, OpPlan)| {
            other.unit.as_ref() == Some(unit) && matches!(plan.outcome, Outcome::Changed { .. })
        };
        if let Some((landing, _)) = planned.iter().find(lands) {
            let (id, landing, unit) = (op.id.clone(), landing.id.clone(), unit.clone());
            return Err(PlanError::Unit { unit, id, landing, why });
        }
    }
    Ok(())
}

/// Whether one op says for other releases what the other says.
fn is_other_shape(op: &PatchOp, other: &PatchOp) -> bool {
    op.unit == other.unit
        && op.tags != other.tags
        && op.op.kind() == other.op.kind()
        && op.op.files().globs() == other.op.files().globs()
}

#[cfg(test)]
mod tests {
    use crate::engine::catalogue::Catalogue;
    use crate::engine::patchset::bind::Bound;
    use crate::engine::patchset::load::Texts;
    use crate::engine::patchset::select::Request;
    use crate::engine::plan::{Plan, PlanError, plan};
    use crate::engine::source::Sources;
    use crate::engine::tag::SourceVersion;

    const UPSTREAM: &str = "url = 'u'\ndistribution = 'd'\nmodule = 'm'\nfloor = '11.6'\ntested-through = '1.0'\n\
                            patches = ['p']\nrecognise = []\n";
    const PATCH: &str = "title = 't'\nwhy = 'w'\nreferences = []\nupstream-status = 'pending'\n";

    fn rewrite(tags: &str, file: &str, find: &str, replace: &str) -> String {
        format!(
            "[[rewrite]]\ntags = '{tags}'\nunit = 'both'\nfile = '{file}'\nfind = ['{find}']\n\
             replace = '{replace}'\nexpect = '1'\n"
        )
    }

    fn planned(ops: &str, version: SourceVersion, text: &str) -> Result<Plan, PlanError> {
        planned_tree(ops, version, &[("a.py", text)])
    }

    fn planned_tree(ops: &str, version: SourceVersion, files: &[(&str, &str)]) -> Result<Plan, PlanError> {
        let mut texts = Texts::default();
        texts.insert("x/upstream.toml", UPSTREAM, None);
        texts.insert("x/p.toml", &format!("{PATCH}{ops}"), None);
        let sets = texts.load().expect("loads");
        let request = Request { patches: vec!["p".to_string()], ..Request::default() };
        let catalogue = Catalogue::shipped();
        let bound = Bound::new(&sets.upstreams[0], version, &request, catalogue).expect("binds");
        let sources: Sources = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        let plan = plan(&bound, &sources)?;
        plan.clone().prove(&bound).expect("proved");
        Ok(plan)
    }

    fn released(ops: &str, text: &str) -> Result<Plan, PlanError> {
        planned(ops, SourceVersion::Release("1.0".parse().expect("tag")), text)
    }

    #[test]
    fn all_ops_of_a_unit_land_or_none() {
        let ops = rewrite("", "a.py", "old_a()", "new_a()") + &rewrite("", "a.py", "old_b()", "new_b()");
        let whole = |text| released(&ops, text).map(|plan| plan.patches[0].changes.len());
        assert_eq!(whole("old_a()\nold_b()\n"), Ok(1));
        assert_eq!(whole("new_a()\nold_b()\n"), Ok(1));
        assert_eq!(whole("new_a()\nnew_b()\n"), Ok(0));
        let error = whole("old_a()\n").expect_err("half of it");
        assert!(matches!(&error, PlanError::Unit { unit, .. } if unit == "both"), "{error}");
        let text = error.to_string();
        assert!(text.contains("x/p/rewrite would land without x/p/rewrite-2"), "{text}");
        assert!(matches!(whole("new_a()\n"), Err(PlanError::Op { .. })));
    }

    #[test]
    fn a_file_that_is_not_there_holds_its_unit_back() {
        let ops = rewrite("", "a.py", "old_a()", "new_a()") + &rewrite("", "b.py", "old_b()", "new_b()");
        assert!(matches!(released(&ops, "old_a()\n"), Err(PlanError::Unit { .. })));
        assert!(released(&ops, "new_a()\n").is_ok());
    }

    #[test]
    fn of_an_unknown_release_one_shape_is_enough() {
        let ops = rewrite("<1", "a.py", "first()", "new()") + &rewrite(">=1", "a.py", "second()", "new()");
        assert!(planned(&ops, SourceVersion::Unknown, "second()\n").is_ok());
    }

    const STATE: &str = "
        [[rewrite]]
        unit = 'state'
        paths = ['**/*.cu']
        find = ['THCState_getCurrentStream($_)']
        replace = 'at::cuda::getCurrentCUDAStream()'
        include = ['<ATen/cuda/CUDAContext.h>']
        [[rewrite]]
        unit = 'state'
        paths = ['**/*.cu']
        find = ['THCState *$S = $_;']
        replace = ''
        where.S.unused = true
        advice = 'remove it by hand'
    ";

    #[test]
    fn a_unit_that_searches_a_tree_lands_file_by_file() {
        let whole =
            "#include <b.h>\nvoid f() {\n  THCState *s = g();\n  h(THCState_getCurrentStream(s));\n}\n";
        let half = whole.replace("s));\n", "s), s);\n");
        let plan = planned_tree(STATE, SourceVersion::Unknown, &[("a.cu", whole), ("b.cu", &half)]);
        let plan = plan.expect("a plan");
        let text = |path: &str| plan.after.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let wanted = "#include <b.h>\n#include <ATen/cuda/CUDAContext.h>\nvoid f() {\n  \
                      h(at::cuda::getCurrentCUDAStream());\n}\n";
        assert_eq!(text("a.cu").as_deref(), Some(wanted));
        assert_eq!(text("b.cu"), Some(half));
        let left = plan.patches[0].ops.iter().flat_map(|op| &op.left);
        let left: Vec<_> =
            left.map(|left| (left.site.path.as_str(), left.site.line, left.why.as_str())).collect();
        let why = "belongs together with line 3";
        assert_eq!(left, [("b.cu", 4, why), ("b.cu", 3, "`s` is still used in line 4")]);
        let outcomes = plan.patches[0].ops.iter().map(|op| op.outcome.detail()).collect::<Vec<_>>();
        assert_eq!(outcomes[0], format!("rewrites 1 place; left: {why} (1)"));
    }
}
