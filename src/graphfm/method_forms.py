"""What a method is, and what its function may declare: good training settings, and a form.

@trains_with(lr=0.002, dropout=0.4)
@published_form(beta=(0.9,), start="zero")
def graphfm_ib(*, beta: setting.Beta = (0.1,), start: setting.Start = "fresh") -> Method: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from graphfm.estimators.base import Estimator
from graphfm.estimators.exact import Exact
from graphfm.options import Setting
from graphfm.samplers.base import Sampler

F = TypeVar("F", bound=Callable[..., Any])
AS_PUBLISHED = "as_published"
AsPublished = Annotated[
    bool,
    Setting(
        "A step as published: sets the options in which ours differs (docs/methods.md). Codes with "
        "histories also have --fill-histories and --refresh-histories."
    ),
]


@dataclass(frozen=True)
class Method:
    """What a step sees of the graph, and how a layer is computed from what it sees."""

    sampler: Sampler
    estimator: Estimator = field(default_factory=Exact)

    def __post_init__(self) -> None:
        if missing := self.estimator.views - self.sampler.views:
            raise ValueError(
                f"{type(self.estimator).__name__} reads Block.{', Block.'.join(sorted(missing))}, "
                f"which this {type(self.sampler).__name__} does not fill"
            )


def trains_with(**settings: Any) -> Callable[[F], F]:
    """Declare the network and training settings that suit a method, where they are not given."""

    def declare(function: F) -> F:
        function.trains_with = settings  # type: ignore[attr-defined]
        return function

    return declare


def published_form(**settings: Any) -> Callable[[F], F]:
    """Give a method the setting `as_published`, which stands for these settings.

    Those that are given beside it count.
    """

    def declare(function: F) -> F:
        @functools.wraps(function)
        def method(*, as_published: bool = False, **given: Any) -> Any:
            return function(**{**settings, **given} if as_published else given)

        signature = inspect.signature(function)
        kind = inspect.Parameter.KEYWORD_ONLY
        extra = inspect.Parameter(AS_PUBLISHED, kind, default=False, annotation=AsPublished)
        parameters = [*signature.parameters.values(), extra]
        method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        method.__annotations__ = {**function.__annotations__, AS_PUBLISHED: AsPublished}
        method.published_form = settings  # type: ignore[attr-defined]
        return method  # type: ignore[return-value]

    return declare


def declared(function: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The settings of `trains_with` and of `published_form`; empty where there are none."""
    return getattr(function, "trains_with", {}), getattr(function, "published_form", {})
