"""What can be set, and what follows from it."""
