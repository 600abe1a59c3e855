"""Options in a TOML file: what is written is read back, and what is wrong is refused."""

import math
import random
import tomllib

import pytest

from graphfm import InputError
from graphfm.backbones import BACKBONES
from graphfm.methods import METHODS
from graphfm.options import Kind, Option
from graphfm.runs.config_file import (
    MOST_BYTES,
    Known,
    known_settings,
    read_config_file,
    run_as_toml,
)
from graphfm.runs.run import Run, backbone_of
from graphfm.runs.toml_text import to_toml

NAMES = {"dataset": "data", "backbone": "network", "method": "method", "device": "training"}
KNOWN = known_settings() | {
    name: Known([Option(name, Kind(str), str, None)], table) for name, table in NAMES.items()
}
LETTERS = "aZ0 .#=[]{}\",\\'\n\r\t\b\f\x00\x1f\x7f\x85é€😀\u2028"


def written(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def made(options):
    """The run of the options in a file; "auto" is also what stands for None."""
    optional = [name for name, known in KNOWN.items() if known.declared[0].kind.optional]
    return Run.make(**{n: None if v == "auto" and n in optional else v for n, v in options.items()})


@pytest.mark.parametrize("method", METHODS)
def test_a_run_is_written_and_read_back_on_every_backbone(tmp_path, method):
    own = backbone_of(method)
    for backbone in [own] if own else [name for name in BACKBONES if name not in ("sign", "sgc")]:
        run = Run.make(method=method, backbone=backbone, lr=1e-5, seed=(1 << 63) - 1)
        text = run_as_toml(run)
        assert made(read_config_file(written(tmp_path, text), KNOWN)) == run, backbone


def test_texts_of_all_kinds_are_written_as_tomllib_reads_them():
    rng = random.Random(0)

    def text():
        return "".join(rng.choice(LETTERS) for _ in range(rng.randrange(12)))

    def value():
        whole = rng.randrange(-(1 << 63), 1 << 63)
        return rng.choice(
            [text(), whole, rng.random() * 10.0 ** rng.randrange(-300, 300), rng.random() < 0.5,
             [text(), text()], [], (1.5, 2.0), math.inf, -math.inf, -0.0]
        )  # fmt: skip

    for _ in range(300):
        top = {text() or "x": value() for _ in range(3)}
        tables = {f"table {text()}": {text(): value() for _ in range(3)} for _ in range(2)}
        found = tomllib.loads(to_toml(top, tables))
        expected = {**top, **tables}
        assert repr(found) == repr(as_lists(expected))  # repr tells 1 from 1.0 and True


def as_lists(value):
    if isinstance(value, dict):
        return {key: as_lists(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def test_a_name_that_is_no_unicode_is_refused():
    with pytest.raises(InputError, match="no Unicode"):
        to_toml({"dataset": "caf\udce9.npz"}, {})


def test_keys_may_stand_flat_in_tables_and_with_hyphens(tmp_path):
    flat = 'method = "graphsage"\nbatch-size = 10\nhidden = 4\nlr = 1\ndataset = "x"\n'
    tables = (
        '[data]\ndataset = "x"\n[network]\nhidden = 4\n[training]\nlr = 1\n'
        '[method]\nmethod = "graphsage"\nbatch_size = 10\n'
    )
    found = [read_config_file(written(tmp_path, text), KNOWN) for text in (flat, tables)]
    assert found[0] == found[1]
    assert found[0]["batch_size"] == 10


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hiden = 4", r"run.toml: hiden is not an option .* \(did you mean hidden\?\)"),
        ("[training]\nhidden = 4", r"\[training\] hidden is in the wrong table; .* in \[network\]"),
        ("[trainings]\nlr = 1", r"run.toml: \[trainings\] is not .*did you mean training\?"),
        ("[network.more]\nhidden = 1", r"\[network\] more is not an option"),
        ("hidden = 4\n[network]\nhidden = 4", "hidden is given twice"),
        ("batch-size = 4\nbatch_size = 4", "batch_size is given twice"),
        ('hidden = "4"', "run.toml: hidden is '4'; expected a whole number"),
        ("hidden = 4.0", "hidden is 4.0; expected a whole number"),
        ("hidden = true", "hidden is True; expected a whole number"),
        ("hidden = [4]", "hidden is a list; expected a whole number"),
        ("hidden = 2020-01-01", "hidden is datetime.date"),
        ("positive = 1", 'positive is 1; expected a name; write it in quotes: "1"'),
        ("lr = nan", "lr is nan; expected a finite number"),
        ("batch_norm = 1", "batch_norm is 1; expected true or false"),
        ('fanout = [1, "2"]', "fanout is '2'; expected a whole number"),
        ('schedule = "linear"', "schedule is linear; expected constant, cosine, step or plateau"),
        ('method = "os:system"', "a file may not name code to run; give --method"),
        ('[network]\nbackbone = "a.b:C"', "a file may not name code to run"),
        ("lr = ", "is not a TOML file"),
        ("lr = 1\nlr = 2", "is not a TOML file"),
        ("x = " + "[" * 5000, "is not a TOML file"),
        ("#" * MOST_BYTES + "#", "larger than 1 MiB"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_refused_by_name(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read_config_file(written(tmp_path, text), KNOWN)


def test_a_mark_of_the_byte_order_is_skipped(tmp_path):
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbfhidden = 4\r\n")
    assert read_config_file(path, KNOWN) == {"hidden": 4}


def test_a_file_of_another_encoding_is_refused(tmp_path):
    path = tmp_path / "run.toml"
    path.write_bytes("dataset = 'é'".encode("latin-1"))
    with pytest.raises(InputError, match="is not a TOML file"):
        read_config_file(path, KNOWN)
