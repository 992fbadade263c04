"""The page's script: its ES modules in one inline script, put together without node.

Each module becomes a function that is called once, after the modules that it imports, and returns what it exports:
``modules.text = (() => { ... return { plural }; })();``. Modules have named imports and export constants or functions.
"""

import re
from functools import cache
from importlib.resources import files

SCRIPTS = files("tacit.report") / "templates" / "scripts"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@cache
def bundled_script(entry: str = "page") -> str:
    """Return the script that runs a module of ``templates/scripts``, with all modules that it needs in front."""
    modules: dict[str, str] = {}
    _add(entry, modules)
    return "const modules = {};\n" + "".join(modules.values())


def module_function(name: str, source: str) -> str:
    """Return a module as a function that is called once.

    >>> print(module_function("b", 'import { a } from "./a.js";\\nexport const b = 2 * a;\\n'), end="")
    modules.b = (() => {
    const { a } = modules.a;
    const b = 2 * a;
    return { b };
    })();
    """
    exported = ", ".join(EXPORT.findall(source))
    body = EXPORT.sub("", IMPORT.sub(r"const {\1} = modules.\2;", source))
    left = OTHER.search(body)
    if left:
        raise ValueError(f"{name}.js must use named imports and exports, got {left[0]!r}")
    return f"modules.{name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


def _add(name: str, modules: dict[str, str]) -> None:
    """Add a module after those that it imports."""
    if name in modules:
        return
    source = (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")
    for _, needed in IMPORT.findall(source):
        _add(needed, modules)
    modules[name] = module_function(name, source)
