"""Attempts made by processes of Ray, on this machine's cores or on a cluster: everything else stays in the driver."""
