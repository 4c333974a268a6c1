"""Bundles: files with a manifest, in folders and in any store that fsspec supports."""
