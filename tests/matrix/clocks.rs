//! Clocks that step, stand, or run fast, and clients that are stopped.
