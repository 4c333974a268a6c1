"""Results as logs that Inspect View opens."""

from tasks.exports.inspect_logs.exporting import export_inspect

__all__ = ["export_inspect"]
