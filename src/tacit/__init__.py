"""tacit learns the graph behind data, and how certain each edge is.

The public names are listed in ``__init__.pyi``. Each is imported at its first use, so that ``tacit --help`` does not
wait for torch.
"""

import lazy_loader

from tacit.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
