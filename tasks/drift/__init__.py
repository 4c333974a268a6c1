"""Judge drift: stored verdicts are judged again every night, to find judges that decide differently than before."""
