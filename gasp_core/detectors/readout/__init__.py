"""A detector that reads the scorer's own states, on the way through the two passes that are run anyway."""
