"""The demo, and the tables and figures of the paper. Names are imported at their first use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
