"""The version of the code that draws responses.

Raise it together with an edit that changes responses. Cells are then sampled again, and interrupted
ones start over instead of mixing responses of different code.
"""

SAMPLING_VERSION = 11
