"""Message records: which keys they have, and in which order."""

from total_recall.record import countable, message

DOCUMENTED = ["replayed", "branch", "model", "agent", "usage", "trigger", "tokens_before", "tool_result", "ref"]


def test_optional_keys_stand_in_the_documented_order():
    """Whatever the order in which an adapter names them; those that are not known are left out."""
    bare = list(message("claude", "s", 1, "system", None, "", authorship="injected"))
    for left_out in (None, *DOCUMENTED):
        known = {key: key for key in reversed(DOCUMENTED) if key != left_out}
        made = message("claude", "s", 1, "system", None, "", authorship="injected", **known)
        assert list(made) == bare + [key for key in DOCUMENTED if key != left_out]


def test_what_is_counted_is_in_a_message_too():
    """A countable record says nothing that a message would not say in the same words."""
    whole = message(
        "claude", "s", 3, "user", None, "hi", authorship="human", kind="human-text", replayed=True, agent="sidechain"
    )
    light = countable(3, "user", "hi", "human", [], "human-text", True, "sidechain")

    assert light.items() <= whole.items()
