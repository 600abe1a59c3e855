"""What DuckDB raises is a user's mistake, or the end of the command."""

import pytest

from graphfm.data.sources.tables.database import LEAST_MEMORY, Database
from graphfm.errors import InputError


@pytest.mark.parametrize(
    ("text", "raised"),
    [
        ("INTERRUPT Error: Interrupted!", KeyboardInterrupt),
        ("Traceback (most recent call last):\n  ...\nKeyboardInterrupt: ", KeyboardInterrupt),
        ("Traceback (most recent call last):\n  ...\nTerminated: ", KeyboardInterrupt),
        ("Conversion Error: KeyboardInterrupt is no number", InputError),
        ("", InputError),
    ],
)
def test_a_signal_is_told_from_a_mistake(tmp_path, text, raised):
    db = Database(tmp_path, [], LEAST_MEMORY)
    try:
        with pytest.raises(raised), db._explained():
            raise db.error(text)
    finally:
        db.close()
