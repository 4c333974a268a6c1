"""When a comparison is settled: the order of tasks, intervals that hold at every look, decisions, unbiased figures."""
