"""Senders: processes of Ray that make attempts, on this machine's cores or on a cluster; all else
is in the driver.
"""
