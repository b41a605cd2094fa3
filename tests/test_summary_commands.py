"""tr-cache, tr-cache-drop, tr-summarise and tr-recap, against a model that a server on loopback plays."""

import json
import re
import resource
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest

SESSION = "c43b9ab4-2438-44a1-855f-324659f7d1f7"
TUI = "d6213968-d16e-4cc8-94ed-6dc91dc0c568"
SECRETS = "de3f0c8b-42bd-4841-8800-bfc86f5956e6"


class Model:
    """Answers each request with what `reply` makes of it, and remembers them all."""

    def __init__(self):
        self.asked = []
        self.reply = lambda request: (200, "A summary.")
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.asked.append((dict(self.headers), request))
                status, text = model.reply(request)
                body = json.dumps({"choices": [{"message": {"content": text}}]} if status == 200 else {"error": text})
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def model():
    played = Model()
    yield played
    played.server.shutdown()
    played.server.server_close()


@pytest.fixture
def known(model):
    """The environment that names the model played here."""
    return {
        "TR_LLM_PROVIDER": "openai",
        "TR_LLM_BASE_URL": model.url,
        "TR_LLM_MODEL": "played",
        "TR_LLM_API_KEY": "key-that-is-never-shown",
    }


@pytest.fixture
def asking(tr, known):
    """Run a command whose model is the one played here."""

    def run(*words, **more):
        ran = tr(*words, env=known | more)
        assert "key-that-is-never-shown" not in ran.out.decode() + ran.err
        return ran

    return run


def test_a_summary_covers_exactly_the_records_of_the_session(asking, model, tr):
    before = tr("tr-cache", SESSION).records[0]
    records = tr("tr-extract", "--full", SESSION).records

    ran = asking("tr-summarise", SESSION)

    assert ran.status == 0
    text = ran.out.decode()
    assert text.startswith("### part 1: ")
    assert f"(ids 1..{records[-1]['id']})" in text
    assert "A summary." in text
    assert "Create a small inventory module" in text, "what was typed is kept verbatim"
    assert text.rstrip().rpartition("\n")[2].startswith("summary cache: 1 block, ids 1..")
    status = tr("tr-cache", SESSION).records[0]
    block = status["blocks"][0]
    assert status["tail"] is None
    assert (block["from_id"], block["to_id"]) == (1, records[-1]["id"])
    for key in ("user", "assistant", "tool", "thinking", "chars", "tokens_est"):
        assert block[key] == before["tail"][key]
    assert block["user"] == sum(record["role"] == "user" for record in records)
    assert len(model.asked) == 1
    headers, request = model.asked[0]
    assert headers["Authorization"] == "Bearer key-that-is-never-shown"
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("played", 0.1, 4000)


def test_a_row_tells_how_far_its_session_is_summarised(asking, tr):
    assert "summary_cache" not in tr("tr-list", SESSION).records[0]
    asking("tr-summarise", SESSION)

    through = tr("tr-list", SESSION).records[0]["summary_cache"]

    assert through["through_id"] == tr("tr-extract", "--full", SESSION).records[-1]["id"]
    assert tr("tr-list", TUI).records[0].get("summary_cache") is None


def test_what_is_summarised_is_not_summarised_again(asking, model):
    asking("tr-summarise", SESSION)
    again = asking("tr-summarise", SESSION)

    assert (again.status, again.out) == (2, b"")
    assert "nothing is left to summarise" in again.err
    assert len(model.asked) == 1


def test_a_ledger_that_cannot_be_written_stays_as_it_was_and_is_named(tr, known, tmp_path):
    """As on a full disk: no file takes a byte."""
    before = tr("tr-cache", SESSION).records

    def no_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    refused = tr("tr-summarise", SESSION, env=known | {"PYTHONDONTWRITEBYTECODE": "1"}, preexec_fn=no_room)

    assert (refused.status, refused.out) == (5, b"")
    assert re.search(
        rf"tr-summarise: cannot write .*/tr_{SESSION}_summary_parts/part_\S+\.md: File too large", refused.err
    )
    assert not list((tmp_path / "shadow").glob("*/tr_*/*"))
    assert tr("tr-cache", SESSION).records == before


def test_a_wrong_from_id_names_the_right_one(asking, model):
    ran = asking("tr-summarise", "--from-id", "7", SESSION)

    assert (ran.status, ran.out) == (2, b"")
    assert "pass 1" in ran.err
    assert asking("tr-summarise", "--from-id", "1", SESSION).status == 0
    assert len(model.asked) == 1


def test_the_newest_block_can_be_taken_back(asking, tr):
    empty = tr("tr-cache", SESSION).out
    asking("tr-summarise", SESSION)

    assert tr("tr-cache-drop", SESSION).out == empty
    assert tr("tr-cache", SESSION).out == empty
    ran = tr("tr-cache-drop", SESSION)
    assert (ran.status, ran.out) == (2, b"")
    assert "no block to drop" in ran.err


def test_a_failed_call_changes_nothing_and_is_status_4(asking, model, tr):
    before = tr("tr-cache", SESSION).out
    model.reply = lambda request: (400, "no such model")

    ran = asking("tr-summarise", SESSION)

    assert (ran.status, ran.out) == (4, b"")
    assert "400" in ran.err
    assert "no such model" in ran.err
    assert tr("tr-cache", SESSION).out == before


def test_an_unknown_provider_or_a_missing_key_says_what_works_without(tr):
    for words, why in ((("--provider", "nobody"), "mercury, mistral, openai"), ((), "INCEPTION_API_KEY")):
        ran = tr("tr-summarise", *words, SESSION)
        assert (ran.status, ran.out) == (2, b"")
        assert why in ran.err
        assert "works without it" in ran.err


def test_a_dry_run_shows_what_would_be_sent_redacted_and_asks_nobody(asking, model):
    ran = asking("tr-summarise", "--dry-run", SECRETS)

    assert ran.status == 0
    assert model.asked == []
    text = ran.out.decode()
    assert "[REDACTED:" in text
    assert "FAKEFAKE" not in text
    assert text.startswith("--- system")


def test_a_recap_needs_no_key_and_has_every_section_in_its_order(tr):
    ran = tr("tr-recap", "--no-llm", "--hours", "0", SESSION)
    text = ran.out.decode()

    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert ran.status == 0
    assert headings == [
        "Recent sessions",
        "Plan and todo files",
        "Todo log",
        "Commits",
        "Current state",
        "Goals, tasks, steers",
        "Compaction points",
        "Instructions",
        "Before you trust this",
    ]
    facts = orjson.loads(text.splitlines()[0].removeprefix("<!-- ").removesuffix(" -->"))
    assert facts["session_id"] == SESSION
    assert "feat: add remove()" in text
    assert "v0.2.0" in text


def test_a_recap_asks_two_questions_and_what_is_sent_holds_what_was_typed(asking, model):
    model.reply = lambda request: (200, f"Answer {len(json.dumps(request)) % 7}.")

    ran = asking("tr-recap", "--hours", "0", TUI)

    assert ran.status == 0
    assert len(model.asked) == 2
    sent = [request["messages"][-1]["content"] for _, request in model.asked]
    assert sum("After the compaction: which database?" in text for text in sent) == 2
    assert sum("Ask me about the storage, please." in text for text in sent) == 1, "the goals are of the whole session"
    assert ran.out.decode().count("Answer ") == 2


def test_one_answer_that_fails_keeps_everything_else_and_is_status_4(asking, model):
    model.reply = lambda request: (
        (400, "refused")
        if "Ask me about the storage" in request["messages"][-1]["content"]
        else (200, "It stands well.")
    )

    ran = asking("tr-recap", "--hours", "0", TUI)

    text = ran.out.decode()
    assert ran.status == 4
    assert "It stands well." in text
    assert "Goals, tasks, steers is missing" in ran.err
    assert "## Before you trust this" in text


@pytest.mark.parametrize("harness", ["opencode", "vibe", "claude", "codex"])
def test_every_harness_has_a_recap_and_a_tail(harness, tr):
    ended = [row for row in tr("tr-list", "-H", harness).records if not row.get("empty")]
    session = ended[0]["session_id"]

    recap = tr("tr-recap", "--no-llm", "-H", harness, session)
    status = tr("tr-cache", "-H", harness, session).records[0]

    assert recap.status == 0
    assert status["tail"]["count"] == len(tr("tr-extract", "--full", "-H", harness, session).records)
