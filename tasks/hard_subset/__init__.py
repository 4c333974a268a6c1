"""The hard subset: of each field the tasks that the panel's models found hardest, and how surely they are."""
