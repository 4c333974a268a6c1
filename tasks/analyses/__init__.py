"""The paper's analyses: labels of tasks, reviews of rubrics, and the tree of capabilities."""
