"""Judge: one call for each criterion of each response, its reply read strictly, every failure kept
as its own state.
"""
