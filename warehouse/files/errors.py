"""What can go wrong with a warehouse, each in one line."""


class WarehouseError(Exception):
    """The warehouse cannot do what was requested; the message says what, where, and what to do."""


class WarehouseBusy(WarehouseError):
    """Another process is at work on the same warehouse in a way that excludes this one."""


class WarehouseOutdated(WarehouseError):
    """The database was published by another version of the code; publishing renews it."""
