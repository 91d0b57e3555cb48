//! Tests that need more than one module.

mod codec;
mod output;
