"""--quick and --thorough: what is computed about the answer."""

import pytest
import torch

from commands import call
from own_files import learn
from tacit.assessment.uncertainty import MOST_PARAMETERS, QUICK_SANDWICH
from tacit.config import AssessmentOptions, FitConfig
from tacit.pipeline import read_source, resolve, std_errors


def chosen(path, *arguments, monkeypatch):
    """Return the options of the assessment that a command line stands for."""
    seen = []
    monkeypatch.setattr("tacit.pipeline.run_fit", lambda _source, config, *_, **__: seen.append(config))
    assert call("fit", path, *arguments, "--quiet") == 0
    return seen[0].assessment


def test_options_of_the_command_are_options_of_the_assessment(folder, tmp_path, monkeypatch):
    def options(*arguments):
        return chosen(folder / "wide.csv", *arguments, monkeypatch=monkeypatch)

    assert options() == AssessmentOptions()
    assert options("--quick") == AssessmentOptions(enabled=False)
    assert options("--thorough") == AssessmentOptions(thorough=True)
    assert options("--thorough", "--std-errors", 8) == AssessmentOptions(thorough=True, bootstrap_replicas=8)
    (tmp_path / "off.toml").write_text("[assessment]\nenabled = false\n")
    (tmp_path / "all.toml").write_text("[assessment]\nthorough = true\n")
    assert options("--config", tmp_path / "off.toml", "--thorough") == AssessmentOptions(thorough=True)
    assert options("--config", tmp_path / "all.toml", "--quick") == AssessmentOptions(enabled=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["wide.csv", "--quick", "--thorough"],
        ["wide.csv", "--quick", "--std-errors", 0],
        ["--resume", "run", "--quick"],
        ["--resume", "run", "--thorough"],
        ["wide.csv", "--set", "assessment.thorough=true", "--set", "assessment.enabled=false"],
    ],
)
def test_contradictions_are_refused_in_one_line(arguments, folder, monkeypatch, wrong_call):
    monkeypatch.chdir(folder)
    wrong_call("fit", *arguments)


def test_options_in_python_contradict_each_other_too(refused):
    refused(AssessmentOptions, thorough=True, enabled=False)


@pytest.mark.parametrize(("thorough", "counts"), [(False, (0, 0, False)), (True, (32, 8, True))])
def test_thorough_asks_for_what_takes_long(thorough, counts, folder):
    """A network is slow to train: by default no replica of it is."""
    config = FitConfig.model_validate(
        {"predictor": {"kind": "recurrent"}, "assessment": {"thorough": thorough}, "data": {"window": 3}}
    )
    source = read_source(str(folder / "wide.csv"), config.data)
    plan = resolve(source, config, seed=0, device=torch.device("cpu"), command="")
    found = plan.config.assessment
    assert (found.bootstrap_replicas, found.starts, found.controls) == counts


def test_a_block_is_no_contradiction_to_quick(folder, tmp_path):
    job, _ = learn(folder / "wide.csv", tmp_path / "run", assessment={"enabled": False, "block": 5})
    assert "std_error" not in job.run.edges
    assert job.run.record.config["assessment"]["starts"] == 0


@pytest.mark.parametrize("thorough", [False, True])
def test_starts_and_the_sandwich_reach_the_bootstrap(thorough, folder, tmp_path, monkeypatch):
    seen = {}

    def watch(*_, **options):
        seen.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(std_errors, "bootstrap", watch)
    options = {"thorough": thorough, "bootstrap_replicas": 6, "starts": 3, "controls": False}
    job, _ = learn(folder / "wide.csv", tmp_path / "run", assessment=options)
    assert not job.complete
    assert (seen["replicas"], seen["starts"]) == (6, 3)
    assert seen["sandwich_limit"] == (MOST_PARAMETERS if thorough else QUICK_SANDWICH)
