"""Exchanges that are logged as many steps: what a step says, and what exchanges the steps of a trace make."""
