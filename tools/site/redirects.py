"""A hook of mkdocs: addresses of earlier pages lead to the pages that have their content now."""

import posixpath
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

PAPER = (
    "losses", "validation", "variance", "system", "num-graphs", "learned-graph", "larger-graph", "perturbed",
    "generic-gnn", "misconfigured", "counterexample", "injectivity", "air-quality",
)  # fmt: skip
OTHERS = ("sample-size", "correlated-edges", "forecast-paths", "gpvar", "dream4", "lorenz96", "edge-lags")
FOLDERS = {
    "estimators": ("sklearn", "comparison", "plots", "registry", "errors"),
    "data": ("systems",),
    "model": ("graph", "predictors", "observation", "local"),
    "training": ("losses",),
    "assessment": (
        "evidence", "uncertainty", "identification", "fit_tests", "evaluation", "situations", "regimes",
    ),
    "runs": ("config", "pipeline", "records", "report", "experiments", "shapes"),
}  # fmt: skip
MOVED = {
    "how-to/missing-values": "how-to/read-a-table.html#missing-values",
    "how-to/where": "how-to/read-a-table.html#fit-only-some-of-the-rows",
    "how-to/choosing": "concepts/losses.html",
    "how-to/save-the-answer": "how-to/python.html#take-the-edges-elsewhere",
    "how-to/load-and-compare": "how-to/python.html#compare-two-runs",
    "how-to/resume": "how-to/scale.html#resume-a-stopped-fit",
    "contributing/releasing": "contributing/testing.html#checklist-of-a-release",
    "results/cpu/RESULTS": "results/RESULTS.html",
    "results/DEFAULTS": "reference/options.html",
    **{f"reference/{old}": f"reference/{page}.html" for page, names in FOLDERS.items() for old in names},
    **{f"results/{name}/table": f"results/RESULTS.html#{name}" for name in PAPER},
    **{f"results/{name}/table": f"results/STUDIES.html#{name}" for name in OTHERS},
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title>
<meta http-equiv="refresh" content="0; url={to}"></head>
<body><h1>Moved</h1><p>This page is now <a href="{to}">here</a>.</p></body></html>
"""


def on_post_build(config: MkDocsConfig) -> None:
    """Write a page at each earlier address; the page that it leads to must exist."""
    site = Path(config.site_dir)
    if not (site / "concepts").is_dir():  # a test builds single pages with these settings
        return
    for old, new in MOVED.items():
        path = site / f"{old}.html"
        if path.exists() or not (site / new.partition("#")[0]).is_file():
            raise PluginError(f"a redirect must lead from a page that is gone to one that exists, got {old} to {new}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.format(to=posixpath.relpath(new, posixpath.dirname(old))), encoding="utf-8")
