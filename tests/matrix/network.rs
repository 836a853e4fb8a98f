//! What the network does: delays, silence, resets, pieces, and connections that never come to be.
