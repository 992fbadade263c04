"""Options of a run as frozen, validated classes, and the conversion of names to objects.

Each name is imported at its first use, from where ``__init__.pyi`` says: the command reads the sections of its options
without torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
