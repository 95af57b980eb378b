//! Programs that we did not write, which judge us.

mod kubectl;
mod kubernetes;
mod openssh;
mod pyvmomi;
mod vcsim;
