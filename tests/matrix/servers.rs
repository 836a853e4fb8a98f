//! What servers do: hang, die, come back without keys, refuse.
