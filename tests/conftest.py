"""Settings for all tests."""

import gc
import os
from pathlib import Path

from hypothesis import settings

# Without a GPU, its kernels run in Triton's interpreter. Triton reads this when it is imported.
os.environ.setdefault("TRITON_INTERPRET", str(int(not Path("/dev/nvidiactl").exists())))

import script_helpers  # noqa: F401

# No deadlines: test machines are shared, and their speed varies.
settings.register_profile("zerogap", deadline=None)
settings.load_profile("zerogap")

gc.enable()  # the scripts' module turns it off until a script runs
