"""Import of responses and verdicts made elsewhere, human labels included, and of reviews of
rubrics.
"""
