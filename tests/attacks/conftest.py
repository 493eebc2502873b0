"""The daemon, the models and the extensions of the end-to-end tests."""

from tests.e2e.conftest import house, look, model, process, results, shop, variables

__all__ = ["house", "look", "model", "process", "results", "shop", "variables"]
