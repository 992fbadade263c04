from .demo import Demo as Demo
from .demo import run_demo as run_demo
from .registry import STUDIES as STUDIES
from .runner import PAGE as PAGE
from .runner import results_page as results_page
from .runner import run_studies as run_studies
from .study import Listener as Listener
from .study import Options as Options
