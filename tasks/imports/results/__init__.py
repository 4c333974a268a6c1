"""Import of other harnesses' logs: responses and verdicts in one step."""
