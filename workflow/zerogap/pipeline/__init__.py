"""The workflow in Python: jobs, their files and parameters, planning and preflight."""
