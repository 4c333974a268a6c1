"""Commands that compare models, runs, judges and people."""
