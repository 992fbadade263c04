"""``python -m benchmarks.studies NAME``, from the root of the repository: records, a table and figures of one study."""

import argparse
from pathlib import Path

from benchmarks.studies import STUDIES

from tacit.console import Display
from tacit.devices import find_device
from tacit.errors import InputError
from tacit.experiments.runner import run_studies, section, write_page
from tacit.experiments.study import Listener, Options

PAGE, TITLE = "STUDIES.md", "Other studies"
WORDS = (
    "Studies that are not in the paper. `python -m benchmarks.studies NAME` runs one, from the root of the repository. "
    "theta are the edge probabilities, psi the weights of the predictor."
)


def main(arguments: list[str] | None = None) -> None:
    """Run one study, print its table, and draw the page of all that have records there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies", description=__doc__)
    parser.add_argument("name", metavar="NAME", choices=STUDIES, help=", ".join(STUDIES))
    parser.add_argument("--data", help="folder of the data; dream4 and lorenz96 need it")
    parser.add_argument("--seeds", type=int, default=8, help="initialisations of each row")
    parser.add_argument("--quick", action="store_true", help="fewer pairs and epochs, to try it out")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time, each in a process of its own")
    parser.add_argument("--scheduler", help="Dask scheduler, as tcp://host:8786: its workers do the tasks")
    parser.add_argument("--out", type=Path, default=Path("results"), help="what is finished there is not done again")
    parser.add_argument("--device", default="auto")
    chosen = parser.parse_args(arguments)
    options = Options(chosen.seeds, chosen.quick, str(find_device(chosen.device)), chosen.data)
    try:
        with Display(quiet=False) as display:
            listener = Listener(display.stage, display.step)
            how = {"jobs": chosen.jobs, "scheduler": chosen.scheduler, "listener": listener}
            run_studies([study := STUDIES[chosen.name]], chosen.out, options, **how)
    except InputError as error:
        parser.error(str(error))
    write_page(chosen.out, STUDIES.values(), WORDS, TITLE, PAGE)
    print(section(study, chosen.out))


if __name__ == "__main__":
    main()
