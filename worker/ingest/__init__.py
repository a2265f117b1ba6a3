"""From a record to its row."""
