//! Hostile memory.
