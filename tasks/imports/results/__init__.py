"""Import of other harnesses' logs: the responses and verdicts of one log in one step."""
