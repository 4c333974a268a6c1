"""Judge: a verdict on each criterion of each response; a reply is read strictly, and every failure
is a state of its own.
"""
