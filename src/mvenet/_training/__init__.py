"""Training of networks: from the requests of a fit to what the engine or a cluster trains.

May import the rooms below (``_models``, ``recipes``), no scikit-learn. Start with
:mod:`mvenet._training.plan`, how a fit requests networks; :mod:`mvenet._training.fleet` trains.
"""
