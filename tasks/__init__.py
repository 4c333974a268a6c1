"""The stages, and the modules that they use, such as model calls, benchmarks and pure rules."""
