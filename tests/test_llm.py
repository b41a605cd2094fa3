"""The guardrails of a question to a model, each against a real HTTP server on loopback."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sample import ROOT
from total_recall.llm import MAX_TOKENS, Provider, ServiceFailed, attempted, complete, provider
from total_recall.stores.registry import Refused

KEY = "Zq9-own-key-of-no-known-shape"


def answer(text="fine", status=200, **headers):
    """An answer with this text; a header's `_` stands for `-`."""
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]})
    return status, headers, body.encode()


class Model(ThreadingHTTPServer):
    """A chat endpoint that follows a script: each item is (status, headers, body) or a function of the handler."""

    daemon_threads = True

    def __init__(self, *script):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = list(script)
        self.requests = []
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def next(self):
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def handle_error(self, request, client_address):
        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.requests.append((self.path, dict(self.headers), json.loads(body)))
            step = self.server.next()
        if callable(step):
            self.question = json.loads(body)["messages"][1]["content"]
            step(self)
        else:
            reply(self, step)

    def do_CONNECT(self):
        self.server.requests.append((self.path, dict(self.headers), None))
        self.send_error(403)

    def log_message(self, *_):
        pass


def reply(handler, step):
    """Send a scripted (status, headers, body)."""
    status, headers, text = step
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(text)))
    handler.end_headers()
    handler.wfile.write(text)


@pytest.fixture
def model():
    """Start a server with a script."""
    running = []

    def start(*script):
        server = Model(*script)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


class Asked:
    """One run against a server: its pauses and what was said."""

    def __init__(self, server, key=KEY, **extras):
        self.provider = Provider("test", server.url, "a-model", key, extras)
        self.pauses = []
        self.said = []

    async def sleep(self, seconds):
        self.pauses.append(seconds)

    def __call__(self, *users, seconds=20.0):
        prompts = [("be brief", user) for user in users or ("question",)]
        return complete(self.provider, prompts, say=self.said.append, sleep=self.sleep, seconds=seconds)

    def failure(self, *users, **options):
        with pytest.raises(ServiceFailed) as failed:
            self(*users, **options)
        text = str(failed.value)
        assert KEY not in text
        assert "\n" not in text
        chain = failed.value
        while chain:
            assert KEY not in repr(chain)
            chain = chain.__cause__
        return text


# -- the request and its answer --------------------------------------------------------------------------------


def test_the_request_is_a_chat_completion(model):
    server = model(answer("  the answer\n"))

    assert Asked(server, reasoning_effort="low")() == ["the answer"]
    path, headers, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "a-model",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "question"}],
        "temperature": 0.1,
        "max_tokens": 4000,
        "reasoning_effort": "low",
    }


def test_without_a_key_no_authorization_is_sent(model):
    server = model(answer())
    Asked(server, key=None)()

    assert "Authorization" not in server.requests[0][1]


def test_what_is_sent_is_redacted_on_the_wire(model):
    server = model(answer())
    Asked(server)("say sk-abcdefghijklmnop \ud800")

    assert server.requests[0][2]["messages"][1]["content"] == "say [REDACTED:vendor-key] \ufffd"


def test_an_answer_loses_the_escapes_of_a_terminal(model):
    assert Asked(model(answer("a\x1b[31mb\x1b]0;title\x07c\u202e\x00\nd\te")))() == ["abc\nd\te"]


def test_a_chunked_answer_is_an_answer(model):
    def chunked(handler):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        body = answer("in pieces")[2]
        for start in range(0, len(body), 7):
            piece = body[start : start + 7]
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")

    assert Asked(model(chunked))() == ["in pieces"]


@pytest.mark.parametrize("content", ["", "   \n", None])
def test_an_empty_answer_is_an_error(model, content):
    assert "empty text" in Asked(model(answer(content))).failure()


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"choices":[]}', b'{"choices":[{"message":{}}]}', b"3"]
)
def test_a_malformed_answer_is_an_error_that_shows_how_it_begins(model, body):
    server = model((200, {}, body))
    text = Asked(server).failure()

    assert "without choices[0].message.content" in text
    assert body.decode() in text
    assert len(server.requests) == 1


def test_an_answer_that_is_no_text_is_an_error(model):
    assert "something else than text" in Asked(model(answer(["parts"]))).failure()


def test_an_answer_without_end_is_cut_off(model):
    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * (1 << 20))

    assert "answered more than" in Asked(model(endless)).failure()


# -- the cap on a prompt ---------------------------------------------------------------------------------------


def test_a_prompt_exactly_at_the_cap_passes(model):
    server = model(answer())

    assert Asked(server)("é" * (MAX_TOKENS * 2)) == ["fine"]


def test_a_prompt_over_the_cap_is_refused_before_any_request_and_named_by_its_index(model):
    server = model(answer())
    with pytest.raises(Refused, match=r"prompt 1 is about 234001 tokens, over the cap of 234000"):
        Asked(server)("small", "é" * (MAX_TOKENS * 2) + "x", "small")

    assert server.requests == []


# -- several at once -------------------------------------------------------------------------------------------


def test_at_most_four_are_in_flight_and_the_answers_keep_the_order_of_the_prompts(model):
    lock, four, fifth = threading.Lock(), threading.Event(), threading.Event()
    running, most = [], []

    def held(handler):
        with lock:
            running.append(handler)
            most.append(len(running))
            (fifth if len(running) > 4 else four if len(running) == 4 else threading.Event()).set()
        four.wait(10)
        fifth.wait(0.05)  # room for a fifth to show itself
        with lock:
            running.remove(handler)
        reply(handler, answer(handler.question))

    server = model(held)
    users = [f"question {number}" for number in range(10)]

    assert Asked(server)(*users) == users
    assert max(most) == 4
    assert len(server.requests) == 10


def test_one_failure_fails_the_batch_and_names_its_index(model):
    def by_question(handler):
        reply(handler, answer("no", 400) if handler.question == "bad" else answer())

    text = Asked(model(by_question)).failure("good", "good", "bad")

    assert text.startswith("prompt 2: 127.0.0.1:")
    assert "answered 400" in text


def test_of_attempts_a_failure_stands_in_its_place_and_leaves_the_others(model):
    def by_question(handler):
        reply(handler, answer("no", 400) if handler.question == "bad" else answer(handler.question))

    asked = Asked(model(by_question))
    first, second, third = attempted(asked.provider, [("s", "one"), ("s", "bad"), ("s", "two")])

    assert (first, third) == ("one", "two")
    assert isinstance(second, ServiceFailed)
    assert "answered 400" in str(second)


def test_an_attempt_over_the_cap_is_refused_like_any_other(model):
    server = model(answer())
    with pytest.raises(Refused):
        attempted(Asked(server).provider, [("s", "small"), ("s", "x" * (MAX_TOKENS * 4 + 1))])

    assert server.requests == []


def test_no_prompt_is_no_request(model):
    server = model(answer())

    assert complete(Asked(server).provider, []) == []
    assert server.requests == []


# -- asking again ----------------------------------------------------------------------------------------------


def test_a_429_is_asked_again_with_growing_pauses_at_most_five_times(model):
    server = model(answer("slow down", 429))
    asked = Asked(server)
    text = asked.failure()

    assert asked.pauses == [1, 2, 4, 8, 10]
    assert len(server.requests) == 6
    assert "answered 429, also after 5 retries" in text


def test_every_429_is_logged(model):
    asked = Asked(model(answer("", 429), answer("", 429), answer()))
    asked()

    assert [said.split(" answered ")[1] for said in asked.said] == [
        "429, retry 1 of 5 in 1 s",
        "429, retry 2 of 5 in 2 s",
    ]


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("0", 0),
        ("3", 3),
        ("60", 10),
        ("9" * 400, 10),
        (" 7 ", 7),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 1),
        ("-1", 1),
        ("", 1),
        ("1.5", 1),
        ("²", 1),
        ("soon", 1),
    ],
)
def test_retry_after_in_seconds_is_honoured_up_to_ten(model, header, pause):
    asked = Asked(model(answer("", 429, Retry_After=header.encode().decode("latin-1")), answer()))

    assert asked() == ["fine"]
    assert asked.pauses == [pause]


def test_a_named_pause_uses_up_a_retry(model):
    asked = Asked(model(answer("", 429, Retry_After="0"), answer("", 429), answer()))

    assert asked() == ["fine"]
    assert asked.pauses == [0, 2]


def test_a_5xx_is_asked_again_three_times_a_second_apart(model):
    server = model(answer("down", 503))
    asked = Asked(server)
    text = asked.failure()

    assert asked.pauses == [1, 1, 1]
    assert len(server.requests) == 4
    assert "answered 503, also after 3 retries" in text


def test_the_two_budgets_are_independent(model):
    busy, broken = answer("", 429), answer("", 500)
    asked = Asked(model(busy, broken, busy, broken, busy, broken, busy, busy, answer()))

    assert asked() == ["fine"]
    assert asked.pauses == [1, 1, 2, 1, 4, 1, 8, 10]
    assert "answered 500" in Asked(model(busy, broken, broken, broken, broken)).failure()
    assert "answered 429" in Asked(model(broken, broken, broken, busy, busy, busy, busy, busy, busy)).failure()


# -- failures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 422])
def test_another_status_is_not_asked_again_and_shows_the_start_of_the_body_redacted(model, status):
    body = f"bad\nkey {KEY}, sk-abcdefghijklmnop " + "x" * 1000
    server = model((status, {}, body.encode()))
    text = Asked(server).failure()

    assert f"answered {status}: bad key [REDACTED:vendor-key], [REDACTED:vendor-key] xxx" in text
    assert len(text) < 300
    assert len(server.requests) == 1


def test_a_key_that_straddles_the_cut_is_redacted_first(model):
    text = Asked(model((400, {}, b"y" * 190 + b" sk-abcdefghijklmnopqrst"))).failure()

    assert "sk-" not in text


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_stays(model, status):
    elsewhere = model(answer())
    server = model((status, {"Location": f"{elsewhere.url}/?k={KEY}"}, b""))
    text = Asked(server).failure()

    assert f"a redirect to 127.0.0.1:{elsewhere.server_port}, which is not followed" in text
    assert elsewhere.requests == []
    assert len(server.requests) == 1


def test_a_dropped_connection_is_an_error_that_names_the_host(model):
    def drop(handler):
        handler.close_connection = True
        handler.connection.close()

    server = model(drop)

    assert f"127.0.0.1:{server.server_port} cannot be asked: " in Asked(server).failure()
    assert len(server.requests) == 1


def test_a_connection_dropped_within_the_body_is_an_error(model):
    def half(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"{")
        handler.close_connection = True

    assert "cannot be asked: RemoteProtocolError" in Asked(model(half)).failure()


def test_nobody_at_the_port_is_an_error_that_names_the_host(model):
    asked = Asked(model(answer()))
    asked.provider = asked.provider._replace(base_url="http://127.0.0.1:1/v1")

    assert asked.failure().startswith("127.0.0.1:1 cannot be asked: ConnectError")


def test_a_silent_server_and_a_slow_body_run_into_the_time_limit(model):
    done = threading.Event()

    def silent(handler):
        done.wait(10)

    def trickle(handler):
        handler.send_response(200)
        handler.end_headers()
        while not done.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    for step in (silent, trickle):
        assert "gave no whole answer within 0.2 s" in Asked(model(step)).failure(seconds=0.2)
    done.set()


def test_a_plain_connection_never_goes_through_a_proxy(model, monkeypatch):
    proxy, server = model(answer()), model(answer())
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.server_port}")

    assert Asked(server)() == ["fine"]
    assert proxy.requests == []


def test_a_proxy_of_an_encrypted_connection_never_sees_the_key(model, monkeypatch):
    proxy = model(answer())
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.server_port}")
    monkeypatch.setenv("NO_PROXY", "")
    asked = Asked(proxy)
    asked.provider = asked.provider._replace(base_url="https://model.invalid/v1")

    assert "model.invalid cannot be asked: ProxyError" in asked.failure()
    assert [path for path, _, _ in proxy.requests] == ["model.invalid:443"]
    assert KEY not in repr(proxy.requests)


def test_a_tls_failure_never_sends_the_key(monkeypatch):
    import socket

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    seen = []
    listener = socket.create_server(("127.0.0.1", 0))

    def plain():
        connection, _ = listener.accept()
        with connection:
            seen.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    thread = threading.Thread(target=plain)
    thread.start()
    asked = Asked(type("Server", (), {"url": f"https://127.0.0.1:{listener.getsockname()[1]}/v1"}))

    assert "cannot be asked: ConnectError" in asked.failure()
    thread.join()
    listener.close()
    assert seen[0][:1] == b"\x16"  # a TLS handshake
    assert KEY.encode() not in seen[0]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "nonsense://x"])
def test_proxy_settings_that_cannot_be_used_are_an_error(monkeypatch, proxy):
    monkeypatch.setenv("HTTPS_PROXY", proxy)

    text = Asked(type("Server", (), {"url": "https://model.invalid/v1"})).failure()

    assert text.startswith("no connection can be made: ")


def test_an_interrupt_ends_the_run_while_a_question_is_out(model):
    arrived, done = threading.Event(), threading.Event()

    def silent(handler):
        arrived.set()
        done.wait(60)

    script = (
        "import sys; from total_recall.llm import *\n"
        "try: complete(Provider('test', sys.argv[1], 'm', None, {}), [('s', 'u')] * 2)\n"
        "except KeyboardInterrupt: sys.exit(130)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, model(silent).url], env={"PYTHONPATH": str(ROOT / "lib")})
    assert arrived.wait(30)
    child.send_signal(signal.SIGINT)
    status = child.wait(30)
    done.set()

    assert status == 130


# -- providers -------------------------------------------------------------------------------------------------


def test_mercury_is_the_default():
    assert provider(None, {"INCEPTION_API_KEY": "k"}) == Provider(
        "mercury", "https://api.inceptionlabs.ai/v1", "mercury-2.5", "k", {"reasoning_effort": "low"}
    )


def test_mistral_has_its_row():
    assert provider("mistral", {"MISTRAL_API_KEY": "k"}) == Provider(
        "mistral", "https://api.mistral.ai/v1", "mistral-small-latest", "k", {}
    )


def test_openai_is_whatever_the_variables_say_and_needs_no_key():
    environ = {"TR_LLM_PROVIDER": "openai", "TR_LLM_BASE_URL": "http://localhost:8080/v1/", "TR_LLM_MODEL": "m"}

    assert provider(None, environ) == Provider("openai", "http://localhost:8080/v1", "m", None, {})
    assert provider("", environ | {"TR_LLM_API_KEY": " k "}).key == "k"


@pytest.mark.parametrize("name", ["mercury", "mistral", "openai"])
def test_a_row_can_be_overridden(name):
    upper = name.upper()
    environ = {"INCEPTION_API_KEY": "k", "MISTRAL_API_KEY": "k", "TR_LLM_BASE_URL": "http://a", "TR_LLM_MODEL": "b"}
    found = provider(name, environ | {f"TR_{upper}_BASE_URL": "https://host/v9", f"TR_{upper}_MODEL": "m"})

    assert (found.base_url, found.model) == ("https://host/v9", "m")


def test_the_option_wins_over_the_variable():
    assert provider("mistral", {"TR_LLM_PROVIDER": "mercury", "MISTRAL_API_KEY": "k"}).name == "mistral"


@pytest.mark.parametrize(
    ("asked", "environ", "names"),
    [
        ("claude", {}, ("'claude'", "mercury, mistral, openai", "works without it")),
        (None, {"TR_LLM_PROVIDER": "x"}, ("'x'", "mercury, mistral, openai")),
        (None, {}, ("INCEPTION_API_KEY", "mistral, openai", "works without it")),
        ("mistral", {"MISTRAL_API_KEY": "  "}, ("MISTRAL_API_KEY", "mercury, openai")),
        ("openai", {"TR_LLM_MODEL": "m"}, ("TR_LLM_BASE_URL",)),
        ("openai", {"TR_LLM_BASE_URL": "http://h"}, ("TR_LLM_MODEL",)),
    ],
)
def test_a_provider_that_cannot_be_used_is_refused_by_name(asked, environ, names):
    with pytest.raises(Refused) as refused:
        provider(asked, environ)

    for name in names:
        assert name in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["ftp://h", "h/v1", "https://", "https://user:pass@h/v1", "https://h/v1?key=x", "https://h:port", "http://h/ x"],
)
def test_a_base_url_that_is_none_is_refused_and_never_shown(url):
    with pytest.raises(Refused, match="base URL of provider mistral") as refused:
        provider("mistral", {"MISTRAL_API_KEY": "k", "TR_MISTRAL_BASE_URL": url})

    assert "pass" not in str(refused.value).replace("password", "")


@pytest.mark.parametrize("key", ["a b", "a\nb", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_and_never_shown(key):
    with pytest.raises(Refused, match="MISTRAL_API_KEY holds characters") as refused:
        provider("mistral", {"MISTRAL_API_KEY": key})

    assert key not in str(refused.value)


def test_no_env_file_is_searched_for(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("INCEPTION_API_KEY=k\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(Refused):
        provider(None, {})


def test_httpx_is_loaded_only_when_a_model_is_asked():
    script = (
        "import sys, total_recall.llm as llm; llm.provider(None, {'INCEPTION_API_KEY': 'k'})\n"
        "print({'httpx', 'asyncio'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(ROOT / "lib")}, capture_output=True)

    assert done.stdout == b"set()\n"


def test_waiting_is_real_unless_a_way_to_wait_is_given(model, monkeypatch):
    waited = []

    async def sleep(seconds, *_):
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    server = model(answer("", 500), answer())

    assert complete(Asked(server).provider, [("s", "u")]) == ["fine"]
    assert waited == [1]
