//! Tricorn.
