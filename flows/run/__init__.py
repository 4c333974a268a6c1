"""What a run is given, and its life: configuration, record, signals, cancellation, exit code."""
