"""What keeps a process alive and seen."""
