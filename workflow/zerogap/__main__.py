"""Run the command line as a module."""

import sys

from zerogap.cli import main

sys.exit(main())
