"""The frame of a stage: run context, missing work, coverage, parts, report."""
