"""`python -m coreeval` is `coreeval`."""

import sys

from coreeval.cli import main

sys.exit(main())
