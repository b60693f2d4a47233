"""How tools/test and tools/steady run the suites."""
