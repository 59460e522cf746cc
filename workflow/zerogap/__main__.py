import sys

from zerogap.cli import main

sys.exit(main())
