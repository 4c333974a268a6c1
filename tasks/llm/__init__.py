"""The only place that talks to a model."""
