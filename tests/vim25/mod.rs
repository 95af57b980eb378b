//! vim25
