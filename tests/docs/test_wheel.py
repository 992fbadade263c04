"""What is shipped: a wheel that works in an empty environment, and a source distribution whose tests run."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import tacit
from doc_blocks import ROOT, blocks_of, differences

pytestmark = pytest.mark.slow
PIP = ("-m", "pip", "--disable-pip-version-check")
SHIPPED = ("src", "pyproject.toml", "README.md", "LICENSE")
UNREACHABLE = ("NewConnectionError", "Failed to establish", "NameResolutionError", "Could not fetch URL", "ProxyError")
DATA = {"py.typed", "data/files/beijing_air.npz", "data/files/beijing_air.txt"}


def run(*command, **options):
    options = {"capture_output": True, "text": True, "check": False, **options}
    return subprocess.run([str(word) for word in command], **options)


def install(python, *arguments):
    """Call pip; skip the test where the index of packages cannot be reached, fail where anything else is wrong."""
    done = run(python, *PIP, *arguments)
    if done.returncode and any(sign in done.stderr for sign in UNREACHABLE):
        pytest.skip("the index of packages cannot be reached, so that nothing can be installed")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy: nothing that an earlier build left in the tree can get in."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "tree").mkdir()
    for name in SHIPPED:
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, folder / "tree" / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, folder / "tree" / name)
    install(sys.executable, "wheel", "--no-deps", "--quiet", "--wheel-dir", folder / "dist", folder / "tree")
    (built,) = (folder / "dist").iterdir()
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name.removeprefix("tacit/") for name in names if name.startswith("tacit/")}
    here = {
        str(path.relative_to(ROOT / "src" / "tacit"))
        for path in (ROOT / "src" / "tacit").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert package == here  # every module, template and table, and no test or stray file
    assert package >= DATA
    assert any(name.startswith("report/templates/") for name in package)
    others = {name.split("/")[0] for name in names} - {"tacit"}
    assert len(others) == 1
    assert others.pop().endswith(".dist-info")


def test_the_metadata_is_that_of_the_project(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    text = archive.read(name).decode()
    assert f"\nName: tacit\nVersion: {tacit.__version__}\n" in text
    assert "\nRequires-Python: >=3.11\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text
    assert "# tacit" in text  # the README is the description


@pytest.fixture(scope="module")
def empty(wheel, tmp_path_factory):
    """An environment with nothing but the wheel and what it needs; removed afterwards, as it is large."""
    folder = tmp_path_factory.mktemp("empty")
    assert run(sys.executable, "-m", "venv", folder / "env").returncode == 0
    try:
        install(
            folder / "env" / "bin" / "python",
            *("install", "--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt", f"{wheel}[command]"),
        )
        yield folder
    finally:
        shutil.rmtree(folder / "env", ignore_errors=True)


def test_the_demo_works_outside_of_the_repository(empty):
    """No PYTHONPATH, another folder: what ``tacit demo`` prints is what the page for beginners shows."""
    away, environment = empty / "away", {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TACIT"))}
    away.mkdir()
    call = {"cwd": away, "env": {**environment, "PATH": f"{empty / 'env' / 'bin'}:{environment['PATH']}"}}
    version = run("tacit", "--version", **call)
    assert (version.returncode, version.stdout.strip()) == (0, f"tacit {tacit.__version__}")
    where = run("python", "-c", "import tacit; print(tacit.__file__)", **call)
    assert where.stdout.startswith(str(empty / "env"))
    demo = run("tacit", "demo", "--out", "first", **call)
    assert demo.returncode == 0, demo.stderr
    shown = next(
        block.text for block in blocks_of(ROOT / "docs" / "index.md") if "tacit demo --out first" in block.text
    )
    assert not differences(shown.partition("\n")[2], demo.stdout)
    for name in ("known", "joint"):
        record = json.loads((away / "first" / name / "record.json").read_text())
        assert record["metrics"]["edge_prob_mae"] < 0.009  # the paper's
        assert (away / "first" / name / "edges.csv").is_file()
    page = (away / "first" / "report.html").read_text()
    assert "</html>" in page
    assert len(page) > 10_000
    air = "from tacit.data import load_beijing_air; print(load_beijing_air().num_nodes)"
    assert run("python", "-c", air, **call).stdout.strip() == "12"
    wrong = run("tacit", "fit", "nothing.csv", **call)
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr
    assert not (away / "runs").exists()


GENERATED = ("PKG-INFO", "setup.cfg", "src/tacit.egg-info/")
MADE = {".git", ".venv", "node_modules", "mutants", "runs", "site", "build", "dist"}  # at the root of a tree in use
# A part of every tier of the tree: formulas, files, records, benchmarks, pages, tools.
SOME_TESTS = (
    "tests/losses/test_propriety.py",
    "tests/records/test_run_files.py",
    "tests/report/test_drawing.py",
    "tests/benchmarks/test_imports.py",
    "tests/docs/test_doc_tools.py",
    "tests/docs/test_reference.py",
    "tests/docs/test_project.py",
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The source distribution, built from a copy of the tree and unpacked."""

    def left_out(place, names):
        made = MADE if place == str(ROOT) else ()
        return {
            name for name in names if name in made or name == "__pycache__" or name.endswith((".egg-info", "_cache"))
        }

    folder = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, folder / "tree", ignore=left_out)
    built = run(sys.executable, "-m", "build", "--sdist", "--outdir", folder / "dist", folder / "tree")
    if built.returncode and any(sign in built.stdout + built.stderr for sign in UNREACHABLE):
        pytest.skip("the index of packages cannot be reached, so that nothing can be built")
    assert built.returncode == 0, built.stdout + built.stderr
    (archive,) = (folder / "dist").iterdir()
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def test_the_source_distribution_is_the_repository(unpacked):
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    if listed.returncode:
        pytest.skip("this tree is not a clone")
    here = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    packed = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {name for name in packed if not name.startswith(GENERATED)} == here
    assert unpacked.name == f"tacit-{tacit.__version__}"


def test_the_tests_of_the_source_distribution_run(unpacked):
    """With the package of the unpacked tree, not with the one that is installed."""
    environment = {**os.environ, "PYTHONPATH": str(unpacked / "src"), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    call = {"cwd": unpacked, "env": environment}
    where = run(sys.executable, "-c", "import tacit; print(tacit.__file__)", **call)
    assert where.stdout.startswith(str(unpacked))
    tests = run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", *SOME_TESTS, **call)
    assert tests.returncode == 0, tests.stdout
    pages = run(sys.executable, "tools/check_pages.py", **call)
    assert pages.returncode == 0, pages.stdout + pages.stderr
