"""The executables: one module each, options and one line of flow."""
