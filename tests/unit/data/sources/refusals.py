"""How published files are refused, whatever is wrong with them."""

import pytest

from graphfm import InputError
from graphfm.data.sources import build as building


def refused(published, form, folder, reason) -> None:
    """One line that names the folder, and nothing left of the attempt."""
    before = set(folder.rglob("*"))
    with pytest.raises(InputError, match=reason) as error:
        building.build(published.source(form), folder)
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)
    assert set(folder.rglob("*")) == before
