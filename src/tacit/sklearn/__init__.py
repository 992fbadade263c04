"""Estimators with the interface of scikit-learn: one for pairs and one for series."""

from tacit.sklearn.forecaster import LatentGraphForecaster
from tacit.sklearn.loading import load
from tacit.sklearn.regressor import LatentGraphRegressor

__all__ = ["LatentGraphForecaster", "LatentGraphRegressor", "load"]
