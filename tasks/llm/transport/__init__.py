"""HTTP below LiteLLM: no redirects, bounded bodies."""
