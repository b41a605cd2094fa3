"""The MCP server: a table of tools, each the command line of one executable; start with tools.py."""
