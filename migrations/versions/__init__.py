"""Database revisions, oldest first."""
