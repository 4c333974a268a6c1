"""Sources of a data set's rows: the hub, files, the samples that ship."""
