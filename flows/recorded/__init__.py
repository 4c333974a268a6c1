"""What Prefect records of a run where a server is known: flows and tasks, their states, tables, progress, links."""
