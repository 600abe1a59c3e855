"""What a method's function may declare beside its settings: good training settings, and a form.

@trains_with(lr=0.002, dropout=0.4)
@published_form(beta=(0.9,), start="zero")
def graphfm_ib(*, beta: setting.Beta = (0.1,), start: setting.Start = "fresh") -> Method: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from graphfm.options import Setting

F = TypeVar("F", bound=Callable[..., Any])
AS_PUBLISHED = "as_published"
AsPublished = Annotated[
    bool, Setting("The method as it was published: sets the options in which ours differs.")
]


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
