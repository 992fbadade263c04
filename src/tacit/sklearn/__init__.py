"""The method with the manners of scikit-learn: an estimator for pairs and one for series."""

from tacit.sklearn.forecaster import LatentGraphForecaster
from tacit.sklearn.regressor import LatentGraphRegressor

__all__ = ["LatentGraphForecaster", "LatentGraphRegressor"]
