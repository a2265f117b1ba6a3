"""What is decided: pure values and functions, below the store."""
