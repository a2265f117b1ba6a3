"""Sends results back to the systems that the exchanges came from."""
