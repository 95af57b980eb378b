//! cases

mod transitions;
