"""The hard subset: the tasks of each field with the lowest scores of the panel's models, and its
stability.
"""
