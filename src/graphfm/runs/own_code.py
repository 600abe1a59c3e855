"""The user's own code: how it is named, imported, and found again in a child process.

It runs only where the user names it, by "package.module:function" or by handing over the object
itself. Nothing here reads a name from a file.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import re
import runpy
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from graphfm.errors import InputError

log = logging.getLogger("graphfm")
PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
SCRIPT, CHILD_SCRIPT = "__main__", "__mp_main__"  # the second as in multiprocessing
_loading_script = False  # while a child executes the script of its parent
_script: ModuleType | None = None  # in a child, that script


def is_place(name: str) -> bool:
    """True for names such as "package.module:function"."""
    return PLACE.fullmatch(name) is not None


def import_place(what: str, place: str) -> Any:
    """Import "package.module:name"; `what` is its purpose in error messages."""
    module_name, _, name = place.partition(":")
    if module_name.endswith(".py"):
        module = place.replace(".py:", ":")
        raise InputError(f"{what} is {place}; name the module, not its file: {module}")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(_broken(what, module_name, error)) from error
        raise InputError(
            f"{what} is {place}, but there is no module named {error.name}; give the name that "
            "Python would import it by, from the folder that holds it"
        ) from None
    except Exception as error:
        raise InputError(_broken(what, module_name, error)) from error
    log.debug("imported %s from %s", module_name, getattr(found, "__file__", None))
    return _attribute(found, name, f"{what} is {place}, but module {module_name}")


def place_of(thing: Any) -> str:
    """The "module:name" of a function or class, a script's by the name of its file."""
    module = thing.__module__
    if module in (SCRIPT, CHILD_SCRIPT):
        main = sys.modules[module]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec is not None else Path(file).stem if file else SCRIPT
    return f"{module}:{thing.__qualname__}"


def digest_of(things: Iterable[Any]) -> str | None:
    """A hash of the files that define some functions or classes; None if there are no files."""
    modules = {thing.__module__: sys.modules.get(thing.__module__) for thing in things}
    files = [getattr(modules[name], "__file__", None) for name in sorted(modules)]
    found = [Path(file).read_bytes() for file in files if file and Path(file).is_file()]
    return hashlib.sha256(b"".join(found)).hexdigest()[:16] if found else None


def directions_to(thing: Any) -> dict[str, Any]:
    """What another process needs to import a function or class; refuses local ones."""
    if _loading_script:
        raise InputError(
            'the script compares methods while it is imported; put the call under "if __name__ == '
            "'__main__':\""
        )
    name, module = thing.__qualname__, sys.modules.get(thing.__module__)
    if module is None or "<" in name or _find(module, name) != thing:
        raise InputError(_cannot_carry(name))
    here = {"module": thing.__module__, "name": name, "folder": _current_folder()}
    if thing.__module__ != SCRIPT:
        return here
    spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
    if spec is not None:
        return {**here, "run_module": spec.name}
    if file is None or not Path(file).is_file():
        raise InputError(_cannot_carry(name))
    return {**here, "run_file": str(Path(file).resolve())}


def follow(what: str, directions: Mapping[str, Any]) -> Any:
    """Find what `directions_to` described, in another process of the same user."""
    with importable(directions["folder"]):
        if directions["module"] != SCRIPT:
            return import_place(what, f"{directions['module']}:{directions['name']}")
        script = _script or _load_script(what, directions)
    return _attribute(script, directions["name"], f"{what}: the script")


@contextmanager
def importable(folder: str | None) -> Iterator[None]:
    """Put the folder first on the import path; afterwards it stays as the last entry."""
    if folder is None:
        yield
        return
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:  # its modules may import others later
            sys.path.append(folder)


def _load_script(what: str, directions: Mapping[str, Any]) -> ModuleType:
    """Run the parent's script under another name, so that its guard for `__main__` holds."""
    global _loading_script, _script
    _loading_script = True
    try:
        if "run_module" in directions:
            name = directions["run_module"]
            content = runpy.run_module(name, run_name=CHILD_SCRIPT, alter_sys=True)
        else:
            content = runpy.run_path(directions["run_file"], run_name=CHILD_SCRIPT)
    except InputError:
        raise
    except Exception as error:
        raise InputError(_broken(what, "of the script", error)) from error
    finally:
        _loading_script = False
    _script = ModuleType(CHILD_SCRIPT)
    _script.__dict__.update(content)
    sys.modules[SCRIPT] = sys.modules[CHILD_SCRIPT] = _script
    return _script


def _attribute(owner: Any, name: str, subject: str) -> Any:
    found = _find(owner, name)
    if found is None:
        raise InputError(f"{subject} has no function or class {name}; check its spelling")
    return found


def _find(owner: Any, name: str) -> Any:
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


def _current_folder() -> str | None:
    """The current folder, if this process imports from it, else None."""
    here = os.path.realpath(os.getcwd())
    return here if any(os.path.realpath(entry) == here for entry in sys.path) else None


def _broken(what: str, module: str, error: Exception) -> str:
    reason = " ".join(str(error).split())
    return f"{what}: importing module {module} failed: {type(error).__name__}: {reason}"


def _cannot_carry(name: str) -> str:
    return (
        f"{name} cannot be found by the processes that a comparison starts: it is local to a "
        "function or belongs to an interactive session; put it at the top level of a module"
    )
