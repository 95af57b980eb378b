//! Programs that we did not write, which judge us.

mod pyvmomi;
mod vcsim;
