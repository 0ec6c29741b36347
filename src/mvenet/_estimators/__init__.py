"""The estimators that users see, behind scikit-learn's interface.

May import all rooms below, the automatic search among them. Start with
:mod:`mvenet._estimators.base`, what all share; each estimator has a file of its own.
"""
