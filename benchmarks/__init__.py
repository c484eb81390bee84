"""How fast and how good, measured beside the peers in the same run."""
