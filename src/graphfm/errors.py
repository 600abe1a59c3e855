"""The error type for mistakes that a user can fix."""


class InputError(ValueError):
    """Says what was got, what was expected and what to do. The command line prints one line."""
