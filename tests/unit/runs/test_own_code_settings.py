"""The settings of a user's own code: their types, what is wrong with them, and what help shows."""

import pytest

import graphfm
from graphfm import InputError
from graphfm.runs.run import Run


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "nowhere_at_all:x"}, "no module named nowhere_at_all"),
        ({"method": "{name}.sub:x"}, "no module named {name}.sub"),
        ({"method": "{name}.py:x"}, "name the module, not its file: {name}:x"),
        ({"method": "{name}:nothing"}, "module {name} has no function or class nothing"),
        ({"method": "{name}:not_a_function"}, "method is a int; expected a name"),
        ({"method": "{name}:broken"}, "{name}:broken returned a list; expected a graphfm.Method"),
        ({"method": "{name}:needy"}, "method {name}:needy needs a value for level"),
        ({"method": "{name}:greedy"}, "{name}:greedy has a setting device, a name that train uses"),
        ({"method": "{name}:twice"}, "hidden is a setting of {name}:twice and of backbone sage"),
        ({"method": "{name}:smoothed", "decay": "x"}, "decay is 'x'; expected a number"),
        ({"method": "{name}:smoothed", "mode": "x"}, "mode is x; expected fast or slow"),
        ({"method": "{name}:smoothed", "scale": 1.0}, "scale is not a setting of backbone sage or"),
        ({"method": "{name}:Smoothed"}, "{name}:Smoothed returned a Smoothed; expected a graphfm"),
        ({"method": "{name}:smoothed", "deca": 1.0}, r"did you mean decay\?"),
        ({"method": "{name}:Scaled"}, "method is Scaled, a backbone; give it as the backbone"),
        ({"method": 7}, "method is a int; expected a name, 'package.module:function'"),
        ({"method": "not a name"}, "unknown method 'not a name'; choose one of full"),
        ({"backbone": "{name}:smoothed"}, "backbone is a function; expected a name"),
        ({"backbone": dict}, "backbone is the class dict; expected a name"),
    ],
)
def test_a_wrong_method_or_backbone_is_one_clear_error(name, options, said):
    given = {k: v.format(name=name) if isinstance(v, str) else v for k, v in options.items()}
    with pytest.raises(InputError, match=said.format(name=name)):
        Run.make(**given)


def test_a_module_that_cannot_be_imported_says_why(tmp_path, monkeypatch):
    (tmp_path / "users_broken_module.py").write_text("import nothing_like_that")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="importing module users_broken_module failed: ModuleNotF"):
        Run.make(method="users_broken_module:x")
    (tmp_path / "users_raising_module.py").write_text("\n1 / 0\n")
    with pytest.raises(InputError, match=r"ZeroDivisionError: .*users_raising_module.py, line 2\)"):
        Run.make(method="users_raising_module:x")


def test_types_come_from_annotations(mine):
    run = Run.make(
        method=mine.smoothed, decay=1, weights=[0.5, 2], limit=3, strict=True, mode="slow"
    )
    settings = run.method_settings
    assert (settings["decay"], settings["weights"]) == (1.0, (0.5, 2.0))
    assert (settings["limit"], settings["strict"], settings["mode"]) == (3, True, "slow")
    assert Run.make(method=mine.smoothed).method_settings["limit"] is None


def test_our_own_functions_are_known_by_their_names():
    from graphfm.backbones import GCN
    from graphfm.methods import graphsage, sign

    run = Run.make(method=graphsage, backbone=GCN)
    assert (run.method, run.backbone) == ("graphsage", "gcn")
    assert Run.make(method=sign).backbone == "sign"


def test_help_of_train_lists_every_setting():
    import inspect

    from graphfm.runs.options import train_options

    parameters = inspect.signature(graphfm.train).parameters
    options = train_options()
    assert len(options) > 50
    text = " ".join(graphfm.train.__doc__.split()).replace("- ", "-")  # a line may end there
    for name, option in options.items():
        assert parameters[name].annotation not in (inspect.Parameter.empty, None)
        assert f"    {name}: " in graphfm.train.__doc__
        assert f"Default: {option.default}." in text
    assert parameters["weight_decay"].default == 0.0
    assert parameters["hidden"].default == 256
    for name in ("beta", "lr", "epochs", "dropout"):
        assert parameters[name].default is None  # differs from method to method
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
