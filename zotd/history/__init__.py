"""Going back, copying, importing, exporting and deleting sessions."""
