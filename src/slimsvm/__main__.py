"""`python -m slimsvm` is the command `slimsvm`."""

from slimsvm.cli import main

if __name__ == "__main__":
    main()
