"""Where the probability of each answer token comes from: seven sources that sum to it (docs/tpa.md)."""
