"""The executables: one module each, options and one line of flow."""

import gc

# A run is short and leaves few cycles: looking for them seldom saves a twentieth of it.
gc.set_threshold(100_000)
