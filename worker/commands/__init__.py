"""Every command, and the page it prints."""
