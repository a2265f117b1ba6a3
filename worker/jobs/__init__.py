"""What runs between batches and on a schedule."""
