//! Programs that we did not write, which judge us.

mod openssh;
mod pyvmomi;
mod vcsim;
