"""Help texts that fit 80 columns, and the options that every command has."""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from graphfm.cli.output import add_verbosity

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result and errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print debug messages too.")]
NAMES = 28  # columns for the names of options
MORE, HELP_ALL = "More options", "--help-all"
DEFAULT = re.compile(
    r"\[default: \((.*)\)\]"
)  # typer puts a default given as text into parentheses


class Command(TyperCommand):
    """A command whose help lists options by panel, with room for their texts."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel, in the order of their first options."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                kind = "Arguments" if _is_argument(param) else "Options"
                title = getattr(param, "rich_help_panel", None) or kind
                text = DEFAULT.sub(r"[default: \1]", record[1])
                panels.setdefault(title, []).append((_short(param, record[0]), text))
        last = {MORE: 1, "Options": 2}
        for title in sorted(panels, key=lambda name: last.get(name, 0)):
            with formatter.section(title):
                if title == MORE and not ctx.meta.get(HELP_ALL):
                    names = ", ".join(name.split()[0] for name, _ in panels[title])
                    text, width = f"{names}. They are explained by {HELP_ALL}.", formatter.width - 2
                    for line in textwrap.wrap(text, width, break_on_hyphens=False):
                        formatter.write(f"  {line}\n")
                else:
                    formatter.write_dl(panels[title], col_max=NAMES)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write RUN where some versions of typer write {RUN}."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def with_verbosity(command: Callable[..., None]) -> Callable[..., None]:
    """Add -q and -v to a command; they may also stand before its name. Rare options: --help-all."""
    signature = inspect.signature(command, eval_str=True)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", Quiet), ("verbose", Verbose), ("help_all", HelpAll))
        if name != "help_all" or any(map(_is_rare, signature.parameters.values()))
    ]

    @functools.wraps(command)
    def run(*given: Any, quiet: bool, verbose: bool, help_all: bool = False, **named: Any) -> None:
        add_verbosity(quiet=quiet, verbose=verbose)
        command(*given, **named)

    parameters = [*signature.parameters.values(), *more]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _show_all(ctx: typer.Context, value: bool) -> None:
    if value:
        ctx.meta[HELP_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        HELP_ALL, is_eager=True, callback=_show_all, show_default=False,
        help="Show this message with all options explained, and exit.",
    ),
]  # fmt: skip


def _is_rare(parameter: inspect.Parameter) -> bool:
    about = get_args(parameter.annotation)[1:]
    return any(getattr(item, "rich_help_panel", None) == MORE for item in about)


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _short(param: Any, names: str) -> str:
    """Shorten a flag and its opposite to --[no-]batch-norm, and an argument to its name."""
    if _is_argument(param):
        return str(param.metavar or param.name)
    if not getattr(param, "secondary_opts", None):
        return names
    return f"--[no-]{param.opts[0].removeprefix('--')}"
