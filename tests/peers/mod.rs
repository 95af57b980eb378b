//! Programs that we did not write, which judge us.

mod kubernetes;
mod openssh;
mod pyvmomi;
mod vcsim;
