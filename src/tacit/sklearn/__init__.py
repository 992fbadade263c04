"""The method as an estimator of scikit-learn."""

from tacit.sklearn.regressor import LatentGraphRegressor

__all__ = ["LatentGraphRegressor"]
