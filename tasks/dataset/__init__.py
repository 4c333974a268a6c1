"""Sources of the rows of data sets: the hub, files, and the included samples."""
