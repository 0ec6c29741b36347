"""Training of networks: from what a fit asks for to what the engine or a cluster trains.

May import the rooms below (``_models``, ``recipes``), no scikit-learn. Start with
:mod:`mvenet._training.plan`, how a fit asks; :mod:`mvenet._training.fleet` trains.
"""
