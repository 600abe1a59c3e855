"""`python -m graphfm` is `graphfm`."""

from graphfm.cli import main

if __name__ == "__main__":
    main()
