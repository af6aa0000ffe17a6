"""Where answers may go, and which asked address is the registered one."""

import pytest

from muniment.oauth import redirects
from muniment.oauth.errors import Refusal


@pytest.mark.requirement("oauth.redirects")
@pytest.mark.parametrize(
    "uri",
    [
        "https://claude.ai/api/mcp/auth_callback",
        "https://app.example:8443/cb?keep=1",
        "http://127.0.0.1:33418/",
        "http://localhost/callback",
        "http://[::1]:9000/cb",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "com.example.app:/oauth2redirect",
        "vscode://vscode.github-authentication/did-authenticate",
        "vscode-insiders://vscode.mcp/callback",
        "windsurf://codeium.windsurf/oauth/callback",
        "org.example.tides.agent:/cb",
        "com.googleusercontent.apps.123-abc:/oauth2redirect",
        *(f"{scheme}://oauth/callback" for scheme in sorted(redirects.APPS)),
        "https://app.example/" + "a" * 1_980,
    ],
)
def test_addresses_that_an_app_may_be_answered_at(uri):
    assert redirects.check(uri) == uri


@pytest.mark.requirement("oauth.redirects")
@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://app.example/cb", "http outside of loopback"),
        ("http://127.0.0.1.evil.example/cb", "http outside of loopback"),
        ("http://localhost.evil.example/cb", "http outside of loopback"),
        ("http://0.0.0.0/cb", "http outside of loopback"),
        ("https://user@app.example/cb", "user name"),
        ("https://user:word@app.example/cb", "user name"),
        ("http://localhost:80@evil.example/", "user name"),
        ("https://app.example/cb#part", "fragment"),
        ("https://app.example/cb#", "fragment"),
        ("https://*.app.example/cb", "wildcard"),
        ("javascript:alert(1)//", "has the scheme .*, which is not allowed"),
        ("JavaScript:alert(1)", "has the scheme .*, which is not allowed"),
        ("data:text/html,hello", "has the scheme .*, which is not allowed"),
        ("file:///etc/passwd", "has the scheme .*, which is not allowed"),
        ("vbscript:x", "has the scheme .*, which is not allowed"),
        ("blob:https://app.example/1", "has the scheme .*, which is not allowed"),
        ("/cb", "no scheme"),
        ("//app.example/cb", "no scheme"),
        ("cb", "no scheme"),
        ("https:///cb", "no host"),
        ("https://", "no host"),
        ("https://app.example:99999/cb", "has an invalid host or port"),
        ("https://app.example:0x50/cb", "has an invalid host or port"),
        ("https://[::1/cb", "has an invalid host or port"),
        ("https://app.example\\@evil.example/", "is not a valid URI"),
        ("https://app.example/a b", "is not a valid URI"),
        ("https://app.example/\n", "is not a valid URI"),
        ("https://app.example/\0", "is not a valid URI"),
        ("https://bücher.example/cb", "is not a valid URI"),
        ("", "is not a valid URI"),
        ("com.example.app:", "nothing after its scheme"),
        ("cursor:", "nothing after its scheme"),
        ("myapp:/cb", "use https, http on loopback, or a scheme with the domain of your app"),
        (".com.example:/cb", "no scheme"),
        ("com.:/cb", "has the scheme .*, which is not allowed"),
        ("1com.example:/cb", "no scheme"),
        ("https://app.example/" + "a" * 2_000, "more than 2000"),
    ],
)
def test_addresses_that_no_app_may_be_answered_at(uri, said):
    """RFC 6749, 3.1.2; RFC 8252, 7; RFC 9700, 4.1."""
    with pytest.raises(Refusal, match=said) as refused:
        redirects.check(uri)
    assert refused.value.error == "invalid_redirect_uri"
    assert refused.value.description.isascii()


@pytest.mark.parametrize(
    "uri",
    [
        "microsoft-edge:https://evil.example/cb",
        "Microsoft-Edge:https://evil.example/cb",
        "microsoft-edge-holographic:https://evil.example/cb",
        "microsoft.windows.camera:x",
        "googlechrome://evil.example/cb",
        "googlechromes://evil.example/cb",
        "google-chrome://evil.example/cb",
        "x-safari-https://evil.example/cb",
        "x-safari-http://evil.example/cb",
        "firefox://open-url?url=https://evil.example",
        "firefox-focus://open-url?url=https://evil.example",
        "duckduckgo://evil.example",
        "search-ms:query=evil",
        "search:query=evil",
        "ms-msdt:/id",
        "ms-officecmd:x",
        "ms-word:ofe|u".replace("|", ":"),
        "ms-settings:privacy",
        "shortcuts://run-shortcut?name=evil",
        "shortcuts-production://run",
        "intent://evil.example/cb",
        "android-app://com.example/https/evil.example",
        "view-source:https://evil.example",
        "about:blank",
        "chrome://settings",
        "chrome-untrusted://x",
        "edge://settings",
        "vnd.youtube:evil",
        "vnd.example.app:/cb",
        "x-apple.systempreferences:com.apple",
        "x-apple-reminder://x",
        "itms-services://?action=download-manifest&url=https://evil.example",
        "web+evil:x",
        "svn+ssh:x",
        "facetime:x",
        "market://details?id=evil",
        "jnlp:https://evil.example",
        "steam://openurl/https://evil.example",
        "touch-https://evil.example",
        "ucbrowser://evil.example",
        "googleapp://robin?url=https://evil.example",
        "onenote:https://evil.example/x",
        "applescript://com.apple.scripteditor?action=new",
        "com.apple.tv:x",
        "windows.immersivecontrolpanel:x",
        "ms-appinstaller:?source=https://evil.example",
        "ms.example:/cb",
        "cursor-x://evil.example",
        "cursor+https://evil.example",
    ],
)
def test_no_answer_goes_to_a_scheme_that_hands_on_to_the_web_or_to_the_system(uri):
    with pytest.raises(Refusal, match=r"has the scheme .*, which is not allowed"):
        redirects.check(uri)


def test_an_address_has_at_most_two_thousand_characters():
    start = "https://app.example/"
    redirects.check(start + "a" * (2_000 - len(start)))
    with pytest.raises(Refusal, match="more than 2000"):
        redirects.check(start + "a" * (2_001 - len(start)))


@pytest.mark.parametrize(
    ("asked", "registered"),
    [
        ("http://127.0.0.1:51234/cb", "http://127.0.0.1/cb"),
        ("http://localhost:51234/cb", "http://localhost:33418/cb"),
        ("http://localhost/cb", "http://localhost:33418/cb"),
        ("http://[::1]:7/cb?a=1", "http://[::1]/cb?a=1"),
        ("https://app.example/cb", "https://app.example/cb"),
    ],
)
def test_any_port_of_loopback_is_the_registered_address(asked, registered):
    """RFC 8252, 7.3."""
    assert redirects.matches(asked, registered)


@pytest.mark.parametrize(
    ("asked", "registered"),
    [
        ("http://127.0.0.1:5/other", "http://127.0.0.1/cb"),
        ("http://127.0.0.1:5/cb/", "http://127.0.0.1/cb"),
        ("http://127.0.0.1:5/cb?x=1", "http://127.0.0.1/cb"),
        ("http://127.0.0.1:5/cb?", "http://127.0.0.1/cb"),
        ("http://127.0.0.1:5/cb#x", "http://127.0.0.1/cb"),
        ("http://localhost:5/cb", "http://127.0.0.1/cb"),
        ("https://127.0.0.1:5/cb", "http://127.0.0.1/cb"),
        ("https://app.example:444/cb", "https://app.example/cb"),
        ("https://app.example/cb/../x", "https://app.example/cb"),
        ("https://app.example/CB", "https://app.example/cb"),
        ("https://APP.example/cb", "https://app.example/cb"),
        ("https://app.example.evil.example/cb", "https://app.example/cb"),
        ("http://localhost:5@evil.example/cb", "http://localhost/cb"),
        ("http://localhost:port/cb", "http://localhost/cb"),
        ("cursor://other/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback"),
    ],
)
def test_another_path_host_scheme_or_query_is_not_the_registered_address(asked, registered):
    """RFC 9700, 4.1.3: texts are compared, nothing is normalised."""
    assert not redirects.matches(asked, registered)


def test_the_redirect_keeps_the_query_of_the_registered_address():
    assert redirects.answer("https://a.example/cb?k=1", {"code": "x y"}) == "https://a.example/cb?k=1&code=x+y"
    assert redirects.answer("https://a.example/cb", {"code": "x"}) == "https://a.example/cb?code=x"
    assert redirects.answer("cursor://a/cb?", {"code": "x"}) == "cursor://a/cb?code=x"


def test_the_person_is_told_where_the_answer_goes():
    assert redirects.host("http://127.0.0.1:33418/cb") == "this computer"
    assert redirects.host("https://claude.ai/cb") == "claude.ai"
    shown = "an app on this device (cursor://anysphere.cursor-mcp/cb)"
    assert redirects.host("cursor://anysphere.cursor-mcp/cb?window=1") == shown
