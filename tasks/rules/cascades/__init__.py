"""Cascades of a cheap and a strong judge: rules to escalate, their cost, and their effect on
verdicts and rankings.
"""
