//! The rollout: its journal and machine by property tests, its engine against the simulated fleet.

mod arbitrary;
mod crash;
mod machine;
mod trap;
