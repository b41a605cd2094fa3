"""Sessions of coding agents as one stream of records; start with record.py."""

__version__ = "0.1.0"
