"""The page's script from its modules: imports are found, nothing else is used, an unknown form is an error."""

import pytest

from tacit.report.page import EXPORT, IMPORT, SCRIPTS, bundled_script, module_function

SOURCES = {path.name.removesuffix(".js"): path.read_text(encoding="utf-8") for path in SCRIPTS.iterdir()}


def test_every_module_is_in_the_script_after_those_that_it_imports():
    script = bundled_script()
    for name, source in SOURCES.items():
        for _, needed in IMPORT.findall(source):
            assert script.index(f"modules.{needed} = ") < script.index(f"modules.{name} = ")


@pytest.mark.parametrize("name", SOURCES)
def test_imported_names_are_exported(name):
    for names, needed in IMPORT.findall(SOURCES[name]):
        imported = {one.strip() for one in names.split(",") if one.strip()}
        assert imported <= set(EXPORT.findall(SOURCES[needed]))


def test_lines_are_short():
    assert [line for source in SOURCES.values() for line in source.splitlines() if len(line) > 120] == []


@pytest.mark.parametrize(
    "line", ['import x from "./a.js";', "export default 1;", "export { b };", 'import { a } from "other";']
)
def test_other_forms_are_refused(line):
    with pytest.raises(ValueError, match=r"b\.js must use named imports and exports, got '(im|ex)port"):
        module_function("b", f"{line}\n")
