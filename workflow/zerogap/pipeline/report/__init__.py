"""The report of a run: every table and figure with what it is made of."""
