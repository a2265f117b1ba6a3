"""The parts that run from wheels, for the demonstration and the tests: no installed server is needed."""
