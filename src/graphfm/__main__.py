"""`python -m graphfm` is `graphfm`."""

from graphfm.cli import entry

if __name__ == "__main__":
    entry()
