"""Import of what other harnesses wrote: answers and verdicts of one log in one step."""
