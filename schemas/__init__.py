"""The wire contracts: what a logged exchange looks like, and how other logging formats become one."""
