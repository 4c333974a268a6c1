"""The input and the life of a run: configuration, record, signals, cancellation, exit code."""
