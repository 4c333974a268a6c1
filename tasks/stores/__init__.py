"""Stores: any file system that fsspec supports, for what is kept or published elsewhere."""

from tasks.stores.store import Folder, Store, kept_as, place, work_folder

__all__ = ["Folder", "Store", "kept_as", "place", "work_folder"]
