//! pg
