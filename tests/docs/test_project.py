"""What the files around the package repeat of it: the version, the versions of Python, the commands."""

import re
import subprocess
import tomllib

import pytest
import yaml

import tacit
from doc_blocks import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def steps(workflow):
    """Return the commands of a workflow."""
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_the_version_is_that_of_the_package_everywhere():
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", tacit.__version__)
    assert "version" not in PROJECT  # it is read from the package
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == tacit.__version__
    newest = re.search(r"^## (\S+) \((unreleased|\d{4}-\d{2}-\d{2})\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest[1] == tacit.__version__


def test_the_versions_of_python_are_those_that_are_tested():
    named = [re.search(r"Python :: (3\.\d+)", line) for line in PROJECT["classifiers"]]
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["test"]
    matrix = tests["strategy"]["matrix"]["python"]
    assert [match[1] for match in named if match] == matrix
    assert PROJECT["requires-python"] == f">={matrix[0]}"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(workflow):
    """A workflow cannot be run here; each of its commands is one of the Makefile, which can."""
    assert steps(workflow)
    for command in steps(workflow):
        program, *arguments = command.split()
        assert program == "make", f"{workflow.name}: {command} must be a target of the Makefile"
        dry = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        assert dry.returncode == 0, dry.stderr


def test_every_requirement_is_pinned():
    """A requirement without a pin would change under the tests."""
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.M))
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pinned}
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    names = {re.match(r"[\w.-]+", one)[0] for requirements in lists for one in requirements} - {"tacit"}
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in names} <= pinned
