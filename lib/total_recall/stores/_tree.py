"""Which records of a session a rewind left behind, where records name their parents and the last one is alive."""

from __future__ import annotations

from collections.abc import Iterable


class Node:
    """A stored record of the tree: its id, its parent's, and the ids of its messages."""

    __slots__ = ("id", "messages", "parent")

    def __init__(self, id: str, parent: str | None, messages: list[int]) -> None:
        self.id = id
        self.parent = parent
        self.messages = messages


def abandoned(nodes: Iterable[Node]) -> list[list[int]]:
    """The ranges `[first id, last id]` of messages that are not on the way up from the last record.

    A parent that is not there stands for the record before; one that comes later, or a circle, likewise. An id that
    stands twice counts at its first place.
    """
    places: dict[str, int] = {}
    above: list[int] = []
    messages: list[list[int]] = []
    for node in nodes:
        if node.id in places:
            continue
        place = len(above)
        # Without a parent a record is a root of its own: what was begun before it is left behind.
        above.append(-1 if node.parent is None else places.get(node.parent, place - 1))
        places[node.id] = place
        messages.append(node.messages)
    live = set()
    place = len(above) - 1
    while place >= 0:
        live.add(place)
        place = above[place]
    return ranges(number for place, held in enumerate(messages) if place not in live for number in held)


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers in rising order as ranges `[first, last]`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number <= found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
