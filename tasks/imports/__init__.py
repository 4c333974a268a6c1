"""Import: responses and verdicts that were made elsewhere, human labels among them, and reviews of rubrics."""
