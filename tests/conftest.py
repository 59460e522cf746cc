"""Settings for all tests."""

import gc

from hypothesis import settings

import script_helpers  # noqa: F401

# No deadlines: test machines are shared, and their speed varies.
settings.register_profile("zerogap", deadline=None)
settings.load_profile("zerogap")

gc.enable()  # the scripts' module turns it off until a script runs
