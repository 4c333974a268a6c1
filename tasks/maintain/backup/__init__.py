"""Backup of a warehouse while runs go on, and restoring it into an empty one."""

from tasks.maintain.backup.making import backup
from tasks.maintain.backup.restoring import restore

__all__ = ["backup", "restore"]
