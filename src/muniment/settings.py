"""Django settings, derived from :mod:`muniment.config`. Nothing here reads the environment."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from muniment import config as process
from muniment.accounts.keys import key_file
from muniment.accounts.keys.key_file import is_strong, listed
from muniment.assessments.evaluation.language_model.endpoint import Endpoint
from muniment.declared_fields import declarations
from muniment.languages.catalogues import SOURCE, installed, locale_paths
from muniment.schema.declared.declarations import declare
from muniment.schema.objects import registry_schema
from muniment.web.site.folder import template_settings

config = process.current()


def database(config: process.Config) -> dict[str, Any]:
    if not config.on_postgresql:
        return {
            "ENGINE": "muniment.store.sqlite",
            "NAME": config.database_file,
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "timeout": 10,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY",
            },
        }
    parts = urlsplit(config.database_url)
    options = dict(parse_qsl(parts.query))  # beside the limits of store/postgresql/connection.py
    return {
        "ENGINE": "muniment.store.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(options.pop("host", parts.hostname or "")),
        "PORT": options.pop("port", str(parts.port or "")),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


SECRET_KEYS_TEXT = key_file.secret_text(config)
# Until the database says which of them it uses (accounts/keys/keyring.py).
SECRET_KEY, *_others = listed(SECRET_KEYS_TEXT)
SECRET_KEY_FALLBACKS = [key for key in _others if is_strong(key)]
DEBUG = False
ALLOWED_HOSTS = ["*"]  # mail and metadata use the base URL; Host affects only its sender's response
BASE_URL = config.base_url
IS_HTTPS = BASE_URL.startswith("https://")
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000
"""A framework's specification of 300 criteria is one form. Django counts the fields before it parses any."""
CURRENCY = config.currency
DECLARED_FIELDS = declarations()
SCHEMA = declare(registry_schema(config.currency), DECLARED_FIELDS, CURRENCY)
STARTING_CREDITS = config.starting_credits
RUN_COST = config.run_cost
MODEL = Endpoint(
    url=config.model_url,
    name=config.model_name,
    key=config.model_key,
    run_tokens=config.model_run_tokens,
    timeout_s=config.model_timeout_s,
)
CREDIT_PACKS = config.credit_packs
STRIPE_SECRET_KEY = config.stripe_secret_key
STRIPE_WEBHOOK_SECRET = config.stripe_webhook_secret
STRIPE_CHECKOUT_URL = config.stripe_checkout_url

INSTALLED_APPS = [
    "muniment.accounts",
    "muniment.mail",
    "muniment.jobs",
    "muniment.scrub",
    "muniment.webhooks",
    "muniment.registry",
    "muniment.credits",
    "muniment.oauth",
    "muniment.searches",
    "muniment.documents",
    "muniment.assessments",
    "muniment.backup",
    "muniment.web",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.sites",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    # Its HTTP client takes a fifth of the start-up time and 6 MB.
    *(["allauth.socialaccount.providers.openid_connect"] if config.oidc_providers else []),
    "allauth.usersessions",
]
MIDDLEWARE = [
    "muniment.web.wording.visitor_language.LanguageMiddleware",
    "muniment.web.requests.security_headers.PolicyMiddleware",
    "muniment.web.public_pages.PublicPages",
    *(["muniment.web.requests.mirrored.OnlyPublic"] if config.mirrored else []),
    "muniment.accounts.security.origin.OriginMiddleware",
    "muniment.accounts.sessions.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "muniment.accounts.identity_providers.OnlyProviders",
    "django.contrib.messages.middleware.MessageMiddleware",
    "muniment.web.requests.limits.LimitsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "muniment.web.requests.errors.ProblemMiddleware",
]
ROOT_URLCONF = "muniment.web.urls"
TEMPLATES = [
    template_settings(
        config.site,
        {
            # Every template has texts, and many have parts that are kept.
            "builtins": ["muniment.web.templatetags.texts", "muniment.web.templatetags.keeping"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "muniment.web.context.site",
                "muniment.web.context.visitor",
            ],
        },
    )
]

DATABASES = {"default": database(config)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.Account"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]  # each further one hashes a password
PASSWORD_HASHERS = ["muniment.accounts.adapters.PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "muniment.accounts.adapters.CommonPasswordValidator"},
]
SITE_ID = 1
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_SIGNUP_FORM_CLASS = "muniment.accounts.sign_up.SignUpForm"
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_EMAIL_VERIFICATION_BY_CODE_ENABLED = True
ACCOUNT_LOGIN_BY_CODE_ENABLED = True
ACCOUNT_PASSWORD_RESET_BY_CODE_ENABLED = True
ACCOUNT_CHANGE_EMAIL = True
# Each of these makes rows or a mail, so an address has a limit by the hour too; the others are allauth's.
ACCOUNT_RATE_LIMITS = {
    "signup": "20/m/ip,60/h/ip",
    "reset_password": "20/m/ip,60/h/ip,5/m/key",
    "request_login_code": "20/m/ip,60/h/ip,3/m/key",
}
ACCOUNT_EMAIL_NOTIFICATIONS = False  # accounts/security sends them
USERSESSIONS_ADAPTER = "muniment.accounts.security.signals.SessionsAdapter"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60  # as muniment.accounts.security.step_up has it
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]  # those of allauth's pages; the adapter adds ours
ACCOUNT_ADAPTER = "muniment.accounts.adapters.AccountAdapter"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if IS_HTTPS else "http"
MFA_ADAPTER = "muniment.accounts.adapters.TwoFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_PASSKEY_SIGNUP_ENABLED = config.signup.is_open and config.sign_in == "all"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not IS_HTTPS  # only for localhost; browsers refuse other hosts
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/manage"
ACCOUNT_LOGOUT_REDIRECT_URL = "/"
SOCIALACCOUNT_ADAPTER = "muniment.accounts.identity_providers.IdentityAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False  # an address verified by a provider is not verified here
SOCIALACCOUNT_PROVIDERS = {}
if config.oidc_providers:
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "APPS": [
            {
                "provider_id": provider.key,
                "name": provider.name,
                "client_id": provider.client_id,
                "secret": provider.client_secret,
                "settings": {"server_url": provider.issuer, "oauth_pkce_enabled": True},
            }
            for provider in config.oidc_providers
        ]
    }
CACHES = {
    # Rate limits of signing in are counted for all processes together.
    "default": {"BACKEND": "muniment.store.database.counter_cache.CounterCache", "LOCATION": "accounts_cache"},
    # Submitted forms have a table of their own, so that they cannot evict a count.
    "forms": {
        "BACKEND": "muniment.store.database.counter_cache.CounterCache",
        "LOCATION": "web_forms",
        "OPTIONS": {"MAX_ENTRIES": 2_000, "MAX_OF_A_KIND": 200},
    },
    # An entry has up to 200 KB of form, and 350 KB sealed; those of 200 accounts are kept for an hour.
    "kept_forms": {
        "BACKEND": "muniment.store.database.counter_cache.CounterCache",
        "LOCATION": "web_kept_forms",
        "OPTIONS": {"MAX_ENTRIES": 200, "MAX_OF_A_KIND": 200},
    },
}
EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
SERVER_EMAIL = config.mail_from or f"registry@{urlsplit(config.base_url).hostname or 'localhost'}"
DEFAULT_FROM_EMAIL = SERVER_EMAIL  # mail.outgoing adds the name of the registry

SESSION_ENGINE = "muniment.accounts.sessions"
SESSION_COOKIE_AGE = 30 * 24 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS

LANGUAGE_CODE = SOURCE
LOCALE_PATHS = locale_paths()
LANGUAGES = [(code, code) for code in installed()]  # which of them are offered is declared in registry.toml
DATE_FORMAT, YEAR_MONTH_FORMAT, NUMBER_GROUPING = "j F Y", "F Y", 3  # of languages that Django does not know
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
STATIC_URL = "/static/"
STATICFILES_DIRS = [found] if (found := config.site / "static").is_dir() else []
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "muniment.web.requests.static_files.HashedStorage"},
}
CSRF_FAILURE_VIEW = "muniment.web.requests.errors.csrf_refused"
APPEND_SLASH = False  # a redirect would turn a POST into a GET
FORM_RENDERER = "muniment.web.form_renderer.FormRenderer"
MESSAGE_STORAGE = "muniment.web.requests.notices.Notices"
