"""Options of a run as frozen, validated classes, and the conversion of names to objects.

The public names are listed in ``__init__.pyi``. Each is imported at its first use: the command reads the sections of
its options without torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
