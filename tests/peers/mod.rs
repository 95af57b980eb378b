//! Programs that we did not write, which judge us.

mod by_hand;
mod kubectl;
mod kubernetes;
mod openssh;
mod pyvmomi;
mod vcsim;
