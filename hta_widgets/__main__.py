"""`python -m hta_widgets`: the command line."""

import sys

from hta_widgets.cli import main

if __name__ == "__main__":
    sys.exit(main())
