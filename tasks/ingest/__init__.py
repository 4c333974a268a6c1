"""The first stage: a data set becomes tasks and criteria."""
