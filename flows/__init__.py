"""What a person or a schedule starts: flows, configuration and the command line."""
