//! The catalogue: its facts against what the research counted, and its solver against a slow search.

mod brute;
mod facts;
mod fit;
