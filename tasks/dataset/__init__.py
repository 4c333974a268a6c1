"""Sources of a data set's rows: the hub, files, and the included samples."""
