"""Stores: any file system that fsspec supports, for what is kept or published elsewhere."""

from tasks.stores.folder import Folder
from tasks.stores.place import place
from tasks.stores.store import Store
from tasks.stores.work_folder import kept_as, work_folder

__all__ = ["Folder", "Store", "kept_as", "place", "work_folder"]
