"""`python -m stream_fs.cli`."""

import sys

from stream_fs.cli.main import main

sys.exit(main())
