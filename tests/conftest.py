"""Settings of every test run."""

from hypothesis import settings

# How fast a machine is decides no test: they are shared and noisy.
settings.register_profile("zerogap", deadline=None)
settings.load_profile("zerogap")
