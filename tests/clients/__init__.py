"""What real clients send, run here and read; `make test-clients`."""
