"""Shows what would be read from messages, before anything runs."""
