"""What puts a scorer that nothing was learned from on the scale of the packaged one: a reference set that all read."""
