"""tr-summarise: the records after the last block of a ledger become one more block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from . import prompts
from .ledger import Block, Ledger, Slice
from .prompts import Prompt, Verbatim
from .record import Record
from .stores.registry import Refused

Messages = Callable[[int], Iterable[Record]]  # the session's messages from this record id on
Ask = Callable[[Sequence[tuple[str, str]]], list[str]]


class Rest(NamedTuple):
    """What is not summarised yet: the slice, the question about it, and what the person said in it."""

    part: Slice
    prompt: Prompt
    verbatim: Verbatim


def rest(ledger: Ledger, messages: Messages, from_id: int | None = None) -> Rest:
    """The records from the first unsummarised one to the end, after the blocks before them have been checked.

    Raises Refused when `from_id` is another one than that, and when nothing is left.
    """
    tail = ledger.tail(messages(1))
    name, first = ledger.session_id, ledger.next_id
    if from_id not in (None, first):
        raise Refused(f"--from-id {from_id} is not the first unsummarised record of session {name} - pass {first}")
    if tail is None:
        state = f"ids 1..{first - 1} are summarised" if ledger.blocks else "it has no records"
        raise Refused(f"nothing is left to summarise in session {name}: {state} - tr-cache shows what there is")
    part, verbatim = Slice(first), Verbatim()
    prompt = prompts.summary(verbatim.noted(part.counted(messages(first))))
    if prompt.empty:
        raise Refused(
            f"the records of session {name} from id {first} on hold no text or call to summarise - wait for more"
        )
    return Rest(part, prompt, verbatim)


def summarise(ledger: Ledger, messages: Messages, ask: Ask, from_id: int | None = None) -> Block:
    """Have what is left summarised and add it as a block; when that fails, nothing has changed.

    Other writers are kept out meanwhile. Raises Refused, Locked, and what `ask` raises.
    """
    with ledger.locked():
        left = rest(ledger, messages, from_id)
        (answer,) = ask([(left.prompt.system, left.prompt.user)])
        said = left.verbatim.section("#### What the person typed last, verbatim")
        return ledger.append(left.part, "\n\n".join(filter(None, (answer.strip(), said.strip()))) + "\n")


def preview(prompt: Prompt) -> str:
    """What would be sent, with its figures below."""
    return (
        f"--- system\n{prompt.system}\n--- user\n{prompt.user}\n"
        f"--- {prompt.bytes} bytes, about {prompt.tokens} tokens; {prompt.records} records in full,"
        f" {prompt.dropped_records} not in full, {prompt.dropped_bytes} bytes of them dropped\n"
    )
