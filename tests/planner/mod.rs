//! The planner, and the visits that it makes.

mod transitions;
mod twin;
