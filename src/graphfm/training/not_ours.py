"""A checkpoint that is whole, and still not to be used."""

from graphfm.errors import InputError


class NotOurs(InputError):  # noqa: N818
    """Of another program or another training: refused, where a damaged one is passed over."""
