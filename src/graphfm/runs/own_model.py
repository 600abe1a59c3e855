"""A network of PyG that the user brings: a module, or a function or class that makes one."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

from graphfm.backbones.base import Backbone
from graphfm.data.graph.edge_columns import EdgeColumns, examples
from graphfm.errors import InputError, did_you_mean
from graphfm.files import read_json
from graphfm.runs.named import MODEL, BackboneLike, Named
from graphfm.runs.own_code import import_place, is_place, place_of

if TYPE_CHECKING:
    from graphfm.pyg.certificate import Certificate

CallModel = Callable[[nn.Module, Any], Any]
ModelLike = nn.Module | str | Callable[..., nn.Module]
INPUTS = ("in_channels", "in_features", "num_features", "in_width", "in_dim")
OUTPUTS = ("out_channels", "out_features", "num_classes", "out_width", "out_dim")
log = logging.getLogger("graphfm")


class OwnNetwork:
    """The code behind the name of a model: makes networks and examines them."""

    Settings: ClassVar[Any] = dict  # its options are part of the record as they are

    def __init__(
        self, model: ModelLike, options: Mapping[str, Any], call: CallModel | None
    ) -> None:
        self.model, self.options, self.call = model, dict(options), call
        self.certificate: Certificate | None = None
        self.shapes = dict[str, list[int]]()  # of the state of its network
        self._initial: dict[str, Any] | None = None  # weights of a given module, as it came

    def make(self, in_width: int, out_width: int, edges: EdgeColumns) -> Backbone:
        """A network for graphs of these sizes; a given module itself, and copies of it later."""
        if not isinstance(self.model, nn.Module):
            return self._wrapped(self._new(in_width, out_width), in_width, out_width, edges)
        if self._initial is None:
            wrapped = self._wrapped(self.model, in_width, out_width, edges)
            self._initial = copy.deepcopy(self.model.state_dict())
            return wrapped
        again = copy.deepcopy(self.model)
        again.load_state_dict(self._initial)
        return self._wrapped(again, in_width, out_width, edges)

    def planned(self, in_width: int, out_width: int, edges: EdgeColumns) -> Backbone:
        """A network to plan with; it is not trained."""
        if isinstance(self.model, nn.Module):
            return self._wrapped(self.model, in_width, out_width, edges)
        with torch.random.fork_rng():
            return self.make(in_width, out_width, edges)

    def to_json(self) -> dict[str, Any]:
        """What a run records of its network: the shapes of its state, and its certificate."""
        assert self.certificate is not None
        return {
            "shapes": self.shapes, "torch_geometric": _pyg().VERSION, **self.certificate.to_json()
        }  # fmt: skip

    def check(self, method: str, *, told: bool) -> None:
        """Refuse a method that would train the network wrongly; warn if it is known to hurt."""
        assert self.certificate is not None  # it was made before
        self.certificate.require(method)
        if told and method in self.certificate.warnings:
            log.warning("%s: %s", method, self.certificate.warnings[method])

    def _wrapped(
        self, net: nn.Module, in_width: int, out_width: int, edges: EdgeColumns
    ) -> Backbone:
        """The network with hooks for our methods; it is examined the first time."""
        pyg = _pyg()
        with torch.device("cpu"):  # a trainer moves it to the graph's device
            pyg.check_kind(net)
            data = examples(edges)
            model = pyg.own_model(net.to("cpu"), in_width, data, self.call)
            if self.certificate is None:
                self.certificate = pyg.certify(model, in_width, data)
        self.shapes = {name: list(one.shape) for name, one in net.state_dict().items()}
        if model.findings.out_width != out_width:
            raise InputError(
                f"{type(net).__name__} has {model.findings.out_width} outputs per node; expected "
                f"{out_width}, as many as the graph has classes, labels or targets"
            )
        backbone: Backbone = model
        return backbone

    def _new(self, in_width: int, out_width: int) -> nn.Module:
        """Call the user's function or class with its options and the sizes it asks for."""
        assert not isinstance(self.model, nn.Module | str)
        name = getattr(self.model, "__name__", "the model")
        try:
            taken = inspect.signature(self.model).parameters
        except (TypeError, ValueError):
            raise InputError(f"the parameters of {name} cannot be read; give a function") from None
        anything = any(one.kind is one.VAR_KEYWORD for one in taken.values())
        for option in self.options:
            if option not in taken and not anything:
                near = did_you_mean(option, taken)
                raise InputError(f"{name} takes no {option}; it takes {', '.join(taken)}{near}")
        sizes = {n: in_width for n in INPUTS if n in taken}
        sizes |= {n: out_width for n in OUTPUTS if n in taken}
        try:
            with torch.device("cpu"):
                net = self.model(**{**sizes, **self.options})
        except TypeError as error:
            raise InputError(
                f"{name} cannot be called: {error}; give its arguments by --model-option "
                "name=value (model_options in Python)"
            ) from error
        if not isinstance(net, nn.Module):
            raise InputError(f"{name} returned a {type(net).__name__}; expected a torch.nn.Module")
        return net


def choose_model(
    model: ModelLike | Named,
    options: Mapping[str, Any] | None = None,
    call: CallModel | None = None,
) -> Named:
    """The backbone that a user's module, function, class or import path stands for."""
    if isinstance(model, Named):
        return model
    options = dict(options or {})
    if isinstance(model, str):
        if not is_place(model):
            raise InputError(f"model is {model!r}; expected package.module:function or a class")
        model = import_place("model", model)
    if isinstance(model, nn.Module):
        if options:
            raise InputError("model is a module that is made already; leave out model_options")
        name = type(model).__qualname__
    elif callable(model) and hasattr(model, "__qualname__"):
        name = place_of(model)
    else:
        raise InputError(
            f"model is a {type(model).__name__}; expected a torch.nn.Module, a function or class "
            "that makes one, or 'package.module:function'"
        )
    code = OwnNetwork(model, options, call)
    return Named(name=f"{MODEL}{name}", code=code, fixed={"model_options": options})


def given_network(
    backbone: BackboneLike | None,
    model: ModelLike | None,
    options: Mapping[str, Any] | None = None,
    call: CallModel | None = None,
) -> BackboneLike | None:
    """The backbone that was given, or the model, but not both."""
    if model is None:
        if options or call is not None:
            raise InputError("model_options and call belong to a model; give model as well")
        return backbone
    if backbone is not None:
        raise InputError("backbone and model were both given; give one of them")
    return choose_model(model, options, call)


def refuse_other(named: Named, recorded: Any) -> None:
    """Refuse a model whose state has other shapes than that of the run."""
    known = recorded.get("shapes") if isinstance(recorded, Mapping) else None
    if not named.is_model or not isinstance(known, Mapping) or known == named.code.shapes:
        return
    given = named.code.shapes
    name = next(n for n in sorted({*known, *given}) if known.get(n) != given.get(n))
    raise InputError(
        f"the model is not the one that the run was made with: {name} has shape {given.get(name)}, "
        f"and in the run {known.get(name)}; make it with the same arguments"
    )


@contextmanager
def modes_kept(named: Named) -> Iterator[None]:
    """Leave a module that was given in the mode that it was in, whatever happens."""
    given = named.code.model if named.is_model else None
    before = [(p, p.training) for p in given.modules()] if isinstance(given, nn.Module) else []
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


def network_again(
    path: Path,
    backbone: BackboneLike | None,
    model: ModelLike | Named | None,
    call: CallModel | None = None,
) -> BackboneLike | None:
    """The backbone or model that is given again for the run in a folder, with the run's options."""
    if model is None:
        return backbone
    if backbone is not None:
        raise InputError("backbone and model were both given; give one of them")
    options = None
    if not isinstance(model, nn.Module):
        options = recorded_options(path)
    return choose_model(model, options, call)


def recorded_options(path: Path) -> dict[str, Any]:
    """The options of the model of a run; empty if there is no such record."""
    try:
        record: Any = read_json(path / "config.json")
        return dict(record["run"]["backbone_settings"]["model_options"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}  # whoever reads the run says what is wrong with it


def _pyg() -> Any:
    try:
        from graphfm.pyg import front
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] == "torch_geometric":
            raise InputError(
                "a model of your own needs PyG; install it: pip install torch_geometric"
            ) from None
        raise
    return front
