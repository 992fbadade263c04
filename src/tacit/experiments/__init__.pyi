from .demo import Demo as Demo
from .demo import run_demo as run_demo
from .runner import STUDIES as STUDIES
from .runner import run_studies as run_studies
from .runner import section as section
from .runner import write_page as write_page
from .study import Listener as Listener
from .study import Options as Options
