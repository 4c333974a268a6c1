"""What a report shows: whose data, which figures, by which queries, under which names."""
