"""Redaction: no credential survives, everything else does, in linear time."""

import json
import os
import re
import resource
import subprocess
import sys

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sample import ROOT
from total_recall import redact
from total_recall.redact import KINDS, redact_lines, redacted

TOKEN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
NAMES = (
    *("api_key", "API-KEY", "apikey", "apiKey", "token", "githubToken", "ACCESS_TOKEN", "secret", "client_secret"),
    *("password", "DB_PASSWORD", "passwd", "passphrase", "private_key", "credential", "credentials", "authorization"),
    *("aws_secret_access_key", "X-Api-Key"),
)
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq\n+/zQ9yAbCdEfGhIjKlMn\nQ0==\n-----END RSA PRIVATE KEY-----"


def lines(data):
    return b"".join(redact_lines(data.splitlines(keepends=True)))


# -- what each kind is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"a {PEM} b", "a [REDACTED:pem] b"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----", "[REDACTED:pem]"),
        ("Bearer abcdef.123~x/y+z==, then", "Bearer [REDACTED:bearer], then"),
        ("authorization: bEaReR abc123", "authorization: bEaReR [REDACTED:bearer]"),
        ("key sk-proj-abcdefghijkl.", "key [REDACTED:vendor-key]."),
        ("(AKIAIOSFODNN7EXAMPLE)", "([REDACTED:vendor-key])"),
        ("x—ghp_abcdefghijkl🎉", "x—[REDACTED:github-token]🎉"),
        ("eyJhbGciOiJI.eyJzdWIi.sig_-na", "[REDACTED:jwt]"),
        ("postgres://me:pa:s@s@host:5432/db", "postgres://me:[REDACTED:url-password]@host:5432/db"),
        ("redis://:pa/ss@host", "redis://:[REDACTED:url-password]@host"),
        ("export API_KEY=hunter2abc; ls", "export API_KEY=[REDACTED:secret]; ls"),
        ('{"password": "correct horse", "n": 1}', '{"password": "[REDACTED:secret]", "n": 1}'),
        ("password: hunter2 # mine", "password: [REDACTED:secret] # mine"),
        ("token = 'ab\"cd'\nnext = 1", "token = '[REDACTED:secret]'\nnext = 1"),
        ("?a=1&access_token=abcd&b=2", "?a=1&access_token=[REDACTED:secret]&b=2"),
        ("Authorization: Basic dXNlcjpw\r\n", "Authorization: Basic [REDACTED:secret]\r\n"),
        ('secret: String = String::from("hunter2");', 'secret: [REDACTED:secret] = String::from("[REDACTED:secret]");'),
        ('api_key: str = "hunter2"', 'api_key: str = "[REDACTED:secret]"'),
        (r"{\"secret\": \"a\\\"b\", \"n\": 1}", r"{\"secret\": \"[REDACTED:secret]\", \"n\": 1}"),
        ("mysql --password hunter2 db", "mysql --password [REDACTED:secret] db"),
    ],
)
def test_a_credential_becomes_a_marker_and_its_neighbours_survive(text, expected):
    assert redacted(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("the token stream is", "tokenizer = 'x'", "the password is long", "the password is hunter-two"),
        *("task-oriented-programming", "a bearer of good news", "Bearer authentication is used", "an eyJ... value"),
        *("http://localhost:3000/@vite/client", "https://example.com:8443/a?b=c@d", "user@host:path", "password="),
        *("secret = None", "token: null,", "export TOKEN=$(gh auth token)", 'curl -H "Authorization: Bearer ${T}"'),
        *("-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEA7bq\n", "ghp_short", "sk-short", "max_tokens=4000", ""),
    ],
)
def test_what_is_no_credential_is_left_alone(text):
    assert redacted(text) == text


@pytest.mark.parametrize(
    "prefix",
    [
        *(
            "sk-",
            "sk_",
            "ctx7sk-",
            "tvly-",
            "xoxa-",
            "xoxb-",
            "xoxc-",
            "xoxd-",
            "xoxe-",
            "xoxo-",
            "xoxp-",
            "xoxr-",
            "xoxs-",
        ),
        *(
            "xapp-",
            "gldt-",
            "glpat-",
            "glptt-",
            "glrt-",
            "AIza",
            "AKIA",
            "ASIA",
            "hf_",
            "npm_",
            "gsk_",
            "doo_v1_",
            "dop_v1_",
        ),
        *("dor_v1_", "dckr_pat_", "lin_api_", "nvapi-", "pplx-", "pypi-AgE", "r8_", "rk_live_", "rk_test_", "shpat_"),
        *("shpca_", "shppa_", "shpss_", "whsec_", "xai-", "github_pat_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_"),
    ],
)
def test_every_known_prefix_makes_a_key_and_only_with_twelve_characters(prefix):
    kind = "github-token" if prefix.startswith(("gh", "github")) else "vendor-key"

    assert redacted(f"({prefix}abc_DEF-1234)") == f"([REDACTED:{kind}])"
    assert redacted(f"({prefix}abc_DEF-123)") == f"({prefix}abc_DEF-123)"


@pytest.mark.parametrize("name", [*NAMES, "privateKey", "secretKey", "accesskey", "Authorization", "PASSPHRASE"])
def test_every_name_of_a_secret_is_known_in_any_case(name):
    assert redacted(f"x{name}=abcd") == f"x{name}=[REDACTED:secret]"
    assert redacted(f"{name.upper()}: 'a'") == f"{name.upper()}: '[REDACTED:secret]'"
    assert redacted(f"{name}s_={name}izer") == f"{name}s_={name}izer"


@pytest.mark.parametrize("kind", KINDS)
def test_a_marker_is_left_alone_wherever_it_stands(kind):
    for form in ("{}", "password={}", 'token: "{}"', "Bearer {}", "ftp://u:{}@h", '{{"secret":"{}"}}', "{}={}"):
        text = form.format(*[f"[REDACTED:{kind}]"] * 2)
        assert redacted(text) == text
        assert lines(text.encode()) == text.encode()


@pytest.mark.parametrize(
    "before", ["\n", "\\n", "\\\\n", "\\u000a", "%3D", "\x1b[01;31m\x1b[K", "\\u001b[0m", "é", "—", "_", "/", '"']
)
def test_a_key_is_found_after_anything_but_a_letter_of_its_own_word(before):
    assert redacted(f"x{before}sk-abcdefghijklmnop") == f"x{before}[REDACTED:vendor-key]"
    assert redacted(f"x{before}ghs_abcdefghijklmnop") == f"x{before}[REDACTED:github-token]"


def test_a_block_without_end_is_redacted_as_far_as_base64_goes():
    """Numbered, quoted, escaped and in a diff too; the line after it survives."""
    for start, joint in (("", "\n"), ("     7→", "\n     8→"), ("> ", "\n> "), ("+", "\n+"), ("", "\\n"), ("", "\r\n")):
        block = PEM.split("\n")[:-1]
        text = start + joint.join([*block, "and on it goes"])
        assert redacted(text) == f"{start}[REDACTED:pem]{joint}and on it goes"
    assert redacted(PEM.split("\n")[0] + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\n" + "A" * 64) == "[REDACTED:pem]"


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ("\nMIIEvAIB\nabc\nsome words", "\nsome words"),
        (" MIIEvAIBADANBgkqhkiG abc= and words", " and words"),
        ("\nfour\nMIIEvAIBADANBgkq", "\nfour\nMIIEvAIBADANBgkq"),
        (" is where a private key begins", " is where a private key begins"),
        ("\nplaintext: not a key", "\nplaintext: not a key"),
        ("", ""),
    ],
)
def test_what_follows_a_begin_without_end_goes_if_it_is_base64(after, kept):
    assert redacted(f"-----BEGIN PRIVATE KEY-----{after}") == f"[REDACTED:pem]{kept}"


def test_base64_lines_without_end_are_taken_up_to_64_kib():
    head, line = "-----BEGIN PRIVATE KEY-----\n", "A" * 63 + "\n"
    left = redacted(head + line * 2000).removeprefix("[REDACTED:pem]")
    assert len(line) * 2000 - len(left) == pytest.approx(64 * 1024, abs=len(line))


# -- nothing survives ------------------------------------------------------------------------------------------

body = st.text("abcXYZ019_-", min_size=12, max_size=60)
vendors = (
    "sk-",
    "sk-ant-",
    "sk-proj-",
    "sk_",
    "tvly-",
    "ctx7sk-",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxr-",
    "xoxs-",
)
vendors += ("AIza", "AKIA", "hf_", "npm_", "dop_v1_")
githubs = ("github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_")
user = st.sampled_from(("", "me", "x-oauth"))
part = st.text(TOKEN + "_-", min_size=1, max_size=30)
value = st.text(TOKEN + "!$%*+-./:@^_|~é", min_size=4, max_size=40).filter(
    lambda v: v.lower() not in ("null", "none", "true", "false", "undefined")
)
phrase = st.text(TOKEN + " !#$%&()*+,-./:;<=>?@[]^_{|}~é", min_size=4, max_size=40).filter(
    lambda v: (
        v.strip() and not v.startswith("$") and v.strip().lower() not in ("null", "none", "true", "false", "undefined")
    )
)
name = st.builds(lambda a, b: a + b, st.sampled_from(("", "my_", "X-", "db.")), st.sampled_from(NAMES))
# (text, what must not survive of it)
planted = st.one_of(
    st.builds(lambda p, b: (p + b, b), st.sampled_from(vendors + githubs), body),
    st.builds(lambda a, b, c: (f"eyJ{a}.{b}.{c}", f"{a}.{b}.{c}"), part, part, part),
    st.builds(lambda b, v: (f"{b} {v}", v), st.sampled_from(("Bearer", "bearer", "BEARER")), body),
    st.builds(
        lambda u, v: (f"https://{u}:{v}@host", v),
        st.sampled_from(("", "me", "x-oauth")),
        value.filter(lambda v: "@" not in v and "/" not in v),
    ),
    st.builds(lambda n, s, v: (f"{n}{s}{v}", v), name, st.sampled_from(("=", ": ", " = ", ":", " := ", " => ")), value),
    st.builds(
        lambda n, s, q, v: (f"{n}{s}{q}{v}{q}", v),
        name,
        st.sampled_from(("=", ": ", " = ", '": ', "'] = ")),
        st.sampled_from("\"'`"),
        phrase,
    ),
    st.builds(
        lambda label, rows, end: ("\n".join([f"-----BEGIN {label}PRIVATE KEY-----", *rows, *end]), "".join(rows)[:16]),
        st.sampled_from(("", "RSA ", "OPENSSH ", "EC ")),
        st.lists(st.text(TOKEN + "+/", min_size=16, max_size=64), min_size=1, max_size=4),
        st.sampled_from(([], ["-----END PRIVATE KEY-----"])),
    ),
)
around = st.text("。、漢字→🎉\n\t ,;)", max_size=20)


@settings(max_examples=400)
@given(around, planted, around)
def test_of_a_planted_key_no_eight_characters_in_a_row_survive(before, key, after):
    """So that no later cut can leave a piece of it."""
    text, hidden = key
    pieces = {hidden[start : start + 8] for start in range(max(1, len(hidden) - 7))}
    assume(not any(piece in f"{before} {text.replace(hidden, ' ', 1)} {after}" for piece in pieces))
    out = redacted(f"{before} {text}\n{after}")

    kept = re.sub(r"\[REDACTED:[a-z-]+\]", "", out)
    assert kept != out
    assert not any(piece in kept for piece in pieces)
    assert out.startswith(before)
    assert out.endswith(after)


fragments = st.sampled_from(
    (
        *(
            "sk-",
            "_sk-aaaaaaaaaaaa",
            "token",
            "password",
            "=",
            ": ",
            '"',
            "'",
            "\\",
            '\\"',
            "\n",
            "eyJ",
            ".",
            "a",
            "bearer ",
        ),
        *(
            "://",
            "u:",
            "@",
            "/",
            "[REDACTED:secret]",
            "[REDACTED:",
            "]",
            "-----BEGIN PRIVATE KEY-----",
            "é",
            "\ud800",
            "`",
        ),
        *(
            "-----END PRIVATE KEY-----",
            "A" * 20,
            "abcd",
            "ghp_abcdefghijkl",
            "[",
            "(",
            "{",
            "--",
            " ",
            "0",
            "\0",
            "%3D",
            ",",
        ),
        *("AKIAAAAAAAAAAAAA", "str", "Basic ", "=>", "${x}", "$(", "\x1b[0m", "http", "+", "~", "\r\n", "\\n", "b'"),
    )
)
messy = st.lists(fragments | st.text(max_size=5), max_size=25).map("".join)


@settings(max_examples=1000)
@given(messy)
def test_redacting_again_changes_nothing(text):
    once = redacted(text)

    assert redacted(once) == once


@given(st.text())
def test_any_text_is_safe_and_without_a_trigger_unchanged(text):
    assert redacted(text) == text or any(c.isascii() for c in text)


@given(st.text(st.characters(exclude_categories=())), st.text())
def test_a_key_between_any_unicode_is_redacted_and_the_rest_kept(before, after):
    out = redacted(f"{before}\n ghp_abcdefghijkl {after}")

    assert "ghp_abcdefghijkl" not in out.removeprefix(before).removesuffix(after)
    assert "[REDACTED:" in out


# -- the filter ------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.lists(messy | planted.map(lambda key: key[0]), max_size=6).map("\n".join), st.binary(max_size=20))
def test_the_number_of_lines_is_kept_outside_of_blocks_and_invalid_utf8_survives(text, junk):
    junk = b"\xff" + bytes(byte | 0x80 for byte in junk)
    data = text.replace("PRIVATE", "PUBLIC").encode("utf-8", "surrogatepass") + b"\n" + junk + b" sk-abcdefghijkl"
    out = lines(data)

    assert out.count(b"\n") == data.count(b"\n")
    assert out.endswith(junk + b" [REDACTED:vendor-key]")
    assert lines(out) == out


@given(st.lists(messy, max_size=8).map("\n".join))
def test_the_filter_is_idempotent_with_blocks_across_lines(text):
    once = lines(text.encode("utf-8", "surrogatepass"))

    assert lines(once) == once


def test_a_block_across_lines_goes_and_the_lines_round_it_stay():
    data = f"before\n  {PEM} tail\nafter".encode()

    assert lines(data) == b"before\n  [REDACTED:pem] tail\nafter"


def test_an_open_block_does_not_swallow_the_records_after_it():
    """A message that quotes a BEGIN line has no END; the next record of a stream must not be taken for its body."""
    record = b'{"a": "x -----END PRIVATE KEY-----"}\n'

    assert lines(b"-----BEGIN PRIVATE KEY-----\n" + record) == b"[REDACTED:pem]\n" + record
    assert lines(b"-----BEGIN PRIVATE KEY-----\nplain words here\n") == b"[REDACTED:pem]\nplain words here\n"


def test_an_open_block_holds_back_a_bounded_number_of_lines():
    given = [b"-----BEGIN PRIVATE KEY-----\n", *[b"some words " * 100 + b"\n"] * 3000]
    taken = 0

    def source():
        nonlocal taken
        for taken, line in enumerate(given, 1):  # noqa: B007
            yield line

    first = next(redact_lines(source()))
    assert first == b"[REDACTED:pem]\n"
    assert taken < 1500


plain = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300)
@given(
    documents,
    planted,
    around,
    st.booleans(),
    st.booleans(),
    st.sampled_from(("", "assistant,0,", "tool,2026-11-30T00:00:00.000Z,")),
)
def test_a_line_of_json_stays_json_and_loses_only_the_key(document, key, before, escape, slashes, head):
    text, _ = key
    line = json.dumps({"before": document, "text": f"{before} {text}", "after": document}, ensure_ascii=escape)
    line = line.replace("/", r"\/") if slashes else line
    out = lines(f"{head}{line}\n".encode()).decode()

    assert out.startswith(head)
    assert out.count("\n") == 1
    found = json.loads(out.removeprefix(head))
    assert list(found) == ["before", "text", "after"]
    assert found["text"] == redacted(f"{before} {text}")
    if lines(json.dumps([document]).encode()) == json.dumps([document]).encode():
        assert (found["before"], found["after"]) == (document, document)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"password":"a\\"b","n":1}', b'{"password":"[REDACTED:secret]","n":1}'),
        (b'{"password" : 12345678, "n":"x"}', b'{"password" : "[REDACTED:secret]", "n":"x"}'),
        (b'{"api_key":null,"token":true,"secret":{"a":"b"}}', b'{"api_key":null,"token":true,"secret":{"a":"b"}}'),
        (b'{"authorization":["Basic abcd"]}', b'{"authorization":["Basic [REDACTED:secret]"]}'),
        (
            b'{"c":"export A_TOKEN=\\"x\\\\\\"y\\" # \\u00e9"}',
            b'{"c":"export A_TOKEN=\\"[REDACTED:secret]\\" # \\u00e9"}',
        ),
        (b'{"c":"\\ud83d\\ude00 sk-abcdefghijkl \\ud800"}', b'{"c":"\\ud83d\\ude00 [REDACTED:vendor-key] \\ud800"}'),
        (b'{"c":"\\u0073k-abcdefghijkl"}', b'{"c":"[REDACTED:vendor-key]"}'),
        (b'{"c":"http:\\/\\/u:pass@h"}', b'{"c":"http:\\/\\/u:[REDACTED:url-password]@h"}'),
        (b'{"sk-abcdefghijkl":"\xff","x": 1.0e5}', b'{"[REDACTED:vendor-key]":"\xff","x": 1.0e5}'),
        (b'{"k":"' + PEM.replace("\n", "\\n").encode() + b'\\nrest"}', b'{"k":"[REDACTED:pem]\\nrest"}'),
        (b'{"torn": "sk-abcdefghijkl', b'{"torn": "[REDACTED:vendor-key]'),
        (b"[INFO] token=abcdef done", b"[INFO] token=[REDACTED:secret] done"),
    ],
)
def test_json_keeps_its_own_spelling(line, expected):
    assert lines(line) == expected


# -- linear time -----------------------------------------------------------------------------------------------

HOSTILE = [
    *("a", "eyJ", "_eyJ", "eyJa.", "sk-", "_sk-", "-----BEGIN PRIVATE KEY-----", "-----BEGIN A ", "token=", 'token="'),
    *("token='\"", 'token=\\"', "token=\\", "token= ", "token:\n", 'token="\\', "\\", '"', "://", "a://b:", "a://b:c/"),
    *("bearer ", "bearer=", "password ", "--token ", "--", "[REDACTED:secret]", "[REDACTED:", 'token=a ="', " \n", "é"),
    "-----BEGIN PRIVATE KEY-----\nA: b\n \n",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_twice_the_input_is_twice_the_steps(piece):
    """Steps of the interpreter; what the regular expressions do is bounded by the test below."""

    def steps(count):
        taken = 0

        def trace(frame, event, _):
            nonlocal taken
            taken += event == "line"
            return trace if frame.f_code.co_filename == redact.__file__ else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            redacted(piece * count)
            lines(f'{{"a":{json.dumps(piece * count)}}}'.encode())
        finally:
            sys.settrace(before)
        return taken

    assert steps(800) <= 2.2 * steps(400) + 100


def test_ten_megabytes_of_anything_hostile_take_seconds_of_cpu_not_hours():
    """A limit that a quadratic scan of a megabyte passes a hundredfold."""
    script = (
        "import sys; from total_recall.redact import redacted, redact_lines\n"
        "redacted('a' * 10_000_000)\n"
        "for piece in eval(sys.stdin.read()):\n"
        "    for head in ('', 'token=', 'a://b:'):\n"
        "        redacted(head + piece * (100_000 // len(piece)))\n"
    )

    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (120, 120))

    done = subprocess.run(
        [sys.executable, "-c", script],
        input=repr(HOSTILE).encode(),
        env=os.environ | {"PYTHONPATH": str(ROOT / "lib")},
        preexec_fn=limited,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
