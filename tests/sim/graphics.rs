//! graphics
