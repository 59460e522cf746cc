"""Settings for all tests."""

from hypothesis import settings

# No deadlines: test machines are shared, and their speed varies.
settings.register_profile("zerogap", deadline=None)
settings.load_profile("zerogap")
