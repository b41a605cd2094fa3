"""The executables: one module each, options and one line of flow."""

import gc

# Looking for cycles seldom makes a short run shorter; more seldom than this, what is left of sessions piles up.
gc.set_threshold(10_000)
