"""The human loop: which sentences people are asked about, and what becomes of their answers."""
