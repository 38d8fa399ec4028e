"""`python -m aggrevated` is the command line."""

from aggrevated.cli import main

main()
