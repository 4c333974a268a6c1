"""Where the rows of a data set come from: the hub, files, the samples that ship."""
