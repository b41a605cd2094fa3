"""Session stores: one adapter a harness, and the registry that finds them."""
