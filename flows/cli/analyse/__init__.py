"""Commands that ask models about tasks and rubrics."""
