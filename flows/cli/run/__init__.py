"""Commands that run the pipeline or say what a run would do."""
