"""The version of the code that trains.

Raise it together with an edit that changes adapters or merged models. All trainings then run again,
and interrupted ones start over instead of mixing steps of different code.
"""

TRAINING_VERSION = 1
