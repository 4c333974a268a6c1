"""What a stage runs in: run context, missing work, coverage, parts, its report."""
