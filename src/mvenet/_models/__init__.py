"""Fitted models as plain arrays: they predict, and learn nothing.

May import the engine, ``_utils``, ``distributions`` and ``predictive``; neither scikit-learn nor
``scipy.stats``, so that ``mvenet predict`` starts quickly. Start with
:mod:`mvenet._models.predictor`, what every fitted estimator does; then
:mod:`mvenet._models.ensemble` and :mod:`mvenet._models.composite`, the two kinds of model.
"""
