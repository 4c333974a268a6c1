"""The stages, one module each, and below them the model gateway, the benchmarks and the pure rules."""
