"""Results as a data set of the library `datasets`."""

from tasks.exports.data_sets.exporting import export_data_sets

__all__ = ["export_data_sets"]
