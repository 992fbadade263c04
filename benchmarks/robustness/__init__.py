"""Tables that break the assumptions of a fit, with a known graph; ``python -m benchmarks.robustness``."""
