"""The automatic search: candidates are compared out of fold, blended, mixed and trained again.

May import the rooms below (``_models``, ``_training``) and scikit-learn. Start with
:mod:`mvenet._automatic.search`, which reads like its docstring.
"""
