"""The stages, and the modules that they use: the model gateway, the benchmarks, the pure rules."""
