//! What comes over a connection that no server of ours should send.
