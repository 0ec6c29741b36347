"""What any room may need and that is about no model: files, threads, words, scikit-learn's insides.

May import nothing of mvenet but the engine. Start with :mod:`mvenet._utils.machine`.
"""
