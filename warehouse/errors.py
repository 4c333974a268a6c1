"""What can go wrong with a warehouse, each in one line."""


class WarehouseError(Exception):
    """The warehouse cannot do what was asked; the message says what, where, and what to do."""


class WarehouseBusy(WarehouseError):
    """Another process is writing to the same warehouse."""
