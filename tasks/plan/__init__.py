"""What a run would do and cost."""
