"""The one error type for mistakes a user can mend."""


class InputError(ValueError):
    """What was got, what was expected, what to do. The command line prints it as one line."""
