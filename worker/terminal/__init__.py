"""What commands read from a terminal and write to it."""
