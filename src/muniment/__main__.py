"""Run ``python -m muniment`` as the ``muniment`` command."""

from muniment.cli import main

main()
