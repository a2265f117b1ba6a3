"""Models that others use for the same question, each asked in the way that its makers say."""
