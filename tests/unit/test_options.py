"""Settings: declared in annotations, checked and parsed by them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from graphfm import InputError
from graphfm.options import Kind, Setting, check_choices, join, options_in, settle, split


def declared(
    *,
    whole: Annotated[int, Setting("A whole number.", most=10)] = 1,
    part: float = 0.5,
    name: str = "x",
    yes: bool = False,
    several: tuple[float, ...] = (0.1,),
    words: list[str] = ["a"],  # noqa: B006
    maybe: int | None = None,
    either: int | float = 1,
    one: Literal["a", "b"] = "a",
    bare=(1, 2),
):
    """For tests."""


OPTIONS = options_in(declared)


def test_kinds_come_from_annotations():
    kinds = {name: option.kind for name, option in OPTIONS.items()}
    assert kinds == {
        "whole": Kind(int), "part": Kind(float), "name": Kind(str), "yes": Kind(bool),
        "several": Kind(float, many=True), "words": Kind(str, many=True),
        "maybe": Kind(int, optional=True), "either": Kind(float),
        "one": Kind(str, choices=("a", "b")), "bare": Kind(int, many=True),
    }  # fmt: skip
    assert OPTIONS["whole"].about.help == "A whole number."


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("whole", 3, 3), ("part", 1, 1.0), ("several", 2, (2.0,)), ("several", [1, 2], (1.0, 2.0)),
        ("maybe", None, None), ("maybe", 3, 3), ("either", 2, 2.0), ("one", "b", "b"),
    ],
)  # fmt: skip
def test_values_are_taken_in_their_type(name, value, taken):
    found = OPTIONS[name].check(value)
    assert (found, type(found)) == (taken, type(taken))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("whole", 1.5, "whole is 1.5; expected a whole number"),
        ("whole", True, "whole is True; expected a whole number"),
        ("whole", 11, "whole is 11; expected at most 10"),
        ("part", "1", "part is '1'; expected a number"),
        ("part", float("nan"), "part is nan; expected a finite number"),
        ("yes", 1, "yes is 1; expected true or false"),
        ("several", ["x"], "several is 'x'; expected a number"),
        ("one", "c", "one is c; expected a or b"),
        ("part", None, "part is None; expected a number"),
    ],
)
def test_other_values_are_refused(name, value, said):
    with pytest.raises(InputError, match=said):
        OPTIONS[name].check(value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("whole", "3", 3), ("part", "0.8", 0.8), ("several", "0.5, 2", (0.5, 2.0)),
        ("words", "a,b", ("a", "b")), ("maybe", "4", 4), ("name", "y", "y"), ("yes", "no", False),
    ],
)  # fmt: skip
def test_texts_are_parsed_by_type(name, text, value):
    assert OPTIONS[name].parse(text) == value


@pytest.mark.parametrize(("name", "text"), [("whole", "x"), ("several", "1,"), ("yes", "perhaps")])
def test_other_texts_are_errors(name, text):
    with pytest.raises(ValueError, match="invalid|convert|perhaps"):
        OPTIONS[name].parse(text)


@pytest.mark.parametrize("kind", [dict, Callable, tuple[tuple[int, ...], ...], int | str, object])
def test_a_type_that_no_setting_can_have_is_refused(kind):
    def strange(*, value: kind = None):
        pass

    with pytest.raises(InputError, match="value of .*strange has the type .*; expected int, float"):
        options_in(strange)


def test_parameters_that_cannot_be_named_are_refused():
    def positional(value: int = 1, /):
        pass

    with pytest.raises(InputError, match="value of .*positional can only be given by position"):
        options_in(positional)


def test_what_has_no_default_must_be_given():
    def needy(*, level: int, **others: int):
        pass

    options = options_in(needy)
    assert settle({"level": 2}, options, "needy") == {"level": 2}
    with pytest.raises(InputError, match="needy needs a value for level, which has no default"):
        settle({}, options, "needy")


def test_fields_of_a_dataclass_are_settings_too():
    @dataclass(kw_only=True)
    class Some:
        mode: Literal["on", "off"] = "on"
        sizes: tuple[int, ...] = field(default_factory=lambda: (1, 2))
        made: int = field(default=0, init=False)

    options = options_in(Some)
    assert list(options) == ["mode", "sizes"]
    assert options["sizes"].default == (1, 2)
    check_choices(Some())
    with pytest.raises(InputError, match="mode is x; expected on or off"):
        check_choices(Some(mode="x"))


def test_auto_is_the_text_of_a_value_that_need_not_be_given():
    assert OPTIONS["maybe"].parse("auto") is None
    with pytest.raises(ValueError, match="auto"):
        OPTIONS["whole"].parse("auto")


def test_parts_with_commas_stand_in_quotes():
    words = OPTIONS["words"]
    assert words.parse('"a, b=2", c') == ("a, b=2", "c")
    assert words.parse('say "a"') == ('say "a"',)
    for parts in (["a", "b"], ["a,b", 'c "d"', "=1"], ['"'], [""]):
        assert split(join(parts)) == parts
    with pytest.raises(ValueError, match="new-line"):
        words.parse("a\nb")
    with pytest.raises(ValueError, match="invalid literal"):
        OPTIONS["bare"].parse("")
