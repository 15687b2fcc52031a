# SPDX-License-Identifier: MIT
"""The table that the demo ends in."""


def format_table(rows):
    """The rows as lines of text, each column as wide as what was measured."""
    head = ("run", "where", "one call", "largest difference")
    lines = [head, *((row.name, row.where, row.call, row.difference) for row in rows)]
    widths = [max(len(line[column]) for line in lines if line[2]) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
