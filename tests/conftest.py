"""Settings for all tests."""

import gc
import os
import sys
from pathlib import Path

from hypothesis import settings

# Without a GPU, its kernels run in Triton's interpreter. Triton reads this when it is imported.
os.environ.setdefault("TRITON_INTERPRET", str(int(not Path("/dev/nvidiactl").exists())))

import script_helpers  # noqa: F401

# No deadlines: test machines are shared, and their speed varies.
settings.register_profile("zerogap", deadline=None)
settings.load_profile("zerogap")

# The scripts' module turns the collector off until a script runs, and hides scikit-learn.
gc.enable()
if sys.modules["sklearn"] is None:
    del sys.modules["sklearn"]
