//! The plan as a file.

use poolwright::model::VgpuSize;
use poolwright::plan::{Plan, PlanFileError};
use proptest::prelude::*;

use super::findings::make;
use crate::support::seen::{H100, Set, desired, fleet, host, pool, vgpu};

fn a_plan() -> Plan {
    let view = host(H100, &[(0x3b, Set::Passthrough(Some("train"))), (0xd8, Set::Same)]);
    make(&desired(vec![pool(H100, 2, vgpu(VgpuSize::Mixed), &["esx-01"])]), &fleet(vec![("esx-01", view)]))
}

#[test]
fn a_file_reads_back_as_the_plan_and_its_id_is_of_its_content() {
    let plan = a_plan();
    assert_eq!(plan.id.as_str().len(), 64);
    assert_eq!(plan.content_id(), plan.id);
    assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan);
    assert_eq!(plan.expires.duration_since(plan.now), jiff::SignedDuration::from_hours(24));
    let later = Plan { now: plan.expires, ..plan.clone() };
    assert_ne!(later.content_id(), plan.id);
}

#[test]
fn a_plan_that_was_changed_cut_or_made_elsewhere_is_refused() {
    let plan = a_plan();
    let text = String::from_utf8(plan.to_bytes()).unwrap();
    let read = |text: &str| Plan::from_bytes(text.as_bytes()).unwrap_err();
    assert!(matches!(read(&text[..text.len() / 2]), PlanFileError::Json(_)), "cut short");
    assert!(matches!(read(&text.replace("\"most\": 2", "\"most\": 9")), PlanFileError::Id { .. }));
    assert!(matches!(read(&text.replace("plan/v1", "plan/v9")), PlanFileError::Schema { .. }));
    assert!(matches!(read(&text.replacen("\"limits\"", "\"extra\": 1, \"limits\"", 1)), PlanFileError::Json(_)));
    let mut other = Plan { catalog: "0123".into(), ..plan };
    other.id = other.content_id();
    let error = Plan::from_bytes(&other.to_bytes()).unwrap_err();
    assert!(matches!(&error, PlanFileError::Catalog { found, .. } if found == "0123"), "{error}");
}

proptest! {
    #[test]
    fn any_changed_byte_is_noticed_or_changes_nothing(position in 0usize..10_000, byte in 0x20u8..0x7f) {
        let plan = a_plan();
        let mut bytes = plan.to_bytes();
        let position = position % bytes.len();
        bytes[position] = byte;
        if let Ok(read) = Plan::from_bytes(&bytes) {
            prop_assert_eq!(read, plan);
        }
    }
}
