"""The file that ``tacit fit --init`` writes."""

import re

from own_files import learn
from tacit.config import FitConfig, load_config
from tacit.pipeline import write_template
from tacit.pipeline.new_file import template

LINE = re.compile(r"^# (\w+) = (.*)$", flags=re.MULTILINE)


def test_as_it_is_it_changes_nothing(tmp_path):
    write_template(tmp_path / "a.toml")
    assert load_config(tmp_path / "a.toml", FitConfig()) == FitConfig()


def test_every_default_can_be_uncommented(tmp_path):
    """Lines with a real value, uncommented, are read and are the defaults; the others say who chooses."""
    text = template()
    real = LINE.sub(lambda line: line[0] if line[2].startswith("(") else f"{line[1]} = {line[2]}", text)
    (tmp_path / "a.toml").write_text(real)
    assert real.count("\n# ") < text.count("\n# ") / 2
    assert load_config(tmp_path / "a.toml", FitConfig()) == FitConfig()


def test_every_key_is_there_with_words():
    text = template()
    for section, field in FitConfig.model_fields.items():
        assert f"\n[{section}]  # " in text
        for key in type(field.default).model_fields:
            if section != "model":
                assert re.search(rf"^# {key} = .*  # .{{10}}", text, flags=re.MULTILINE), key
    assert 'loss = "energy"  # elbo, energy, literature_1_mae' in text


def test_a_changed_file_is_obeyed(folder, tmp_path):
    text = re.sub("# window = .*", "window = 3", template()).replace("# symmetric = false", "symmetric = true")
    (tmp_path / "a.toml").write_text(text)
    config = load_config(tmp_path / "a.toml", FitConfig())
    made, _ = learn(
        folder / "wide.csv", tmp_path / "run", data=config.data.model_dump(), graph=config.graph.model_dump()
    )
    assert made.run.record.preparation["windows"]["window"] == 3
    assert made.run.edges.matrix("probability")[0][1] == made.run.edges.matrix("probability")[1][0]


def test_a_file_that_exists_is_not_touched(tmp_path, refused):
    path = tmp_path / "mine.toml"
    path.write_text("precious")
    refused(write_template, path)
    assert path.read_text() == "precious"
    refused(write_template, tmp_path / "none" / "x.toml")
