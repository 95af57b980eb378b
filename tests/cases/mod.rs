//! Cases from the field, each by kind, on the whole way from documents to a changed world.

mod devices;
mod names;
mod transitions;
