"""URLs of the pages."""

from allauth.account.decorators import reauthentication_required
from allauth.account.views import password_set
from django.urls import include, path, re_path

from muniment.accounts import adapters, identity_providers
from muniment.credits.billing import WEBHOOK
from muniment.web.public_pages import PUBLIC
from muniment.web.requests import errors
from muniment.web.views import (
    billing,
    confirming,
    mailed_codes,
    oauth,
    security_log,
    sign_in,
    visitor,
    webhooks,
)
from muniment.web.views.authoring import checking, listing_form, pasted, preview
from muniment.web.views.manage import (
    applications,
    companies,
    credits_page,
    documents,
    own_data,
    owners,
    pictures,
    profile,
    reports,
    searches,
    tokens,
)
from muniment.web.views.operate.addresses import OPERATE
from muniment.web.views.public import claims, domain, site_pages, uploads
from muniment.web.views.review import decisions, frameworks, inbox, people, replies, specifications
from muniment.web.views.setting_up import first_account, invitations
from muniment.web.wording import visitor_language

urlpatterns = [
    path("language", visitor_language.choose),
    path("accounts/menu", visitor.menu, name="account_menu"),
    path("accounts/data/", own_data.data, name="own_data"),
    path("accounts/data/archive", own_data.archive),
    path("accounts/password/set/", reauthentication_required(password_set)),
    path("accounts/reauthenticate/provider/", confirming.by_provider, name=identity_providers.PAGE),
    path("accounts/reauthenticate/email/", confirming.by_email, name=adapters.BY_EMAIL),
    path("accounts/confirm-email/", mailed_codes.of_email_address),
    path("accounts/login/code/confirm/", mailed_codes.of_sign_in),
    path("accounts/password/reset/confirm/", mailed_codes.of_password),
    path("accounts/login/", sign_in.sign_in),
    path("accounts/link/", sign_in.by_link),
    path("accounts/oidc/<str:provider_id>/login/callback/", sign_in.by_provider),
    path("accounts/", include("allauth.urls")),
    path("companies/<str:slug>/claim", claims.claim_company),
    path("companies/<str:slug>/suggest", claims.suggest_edit),
    path("companies/<str:slug>/domain", domain.domain),
    path("people/<str:slug>/claim", claims.claim_person),
    path("manage", companies.home, name="manage"),
    path("manage/profile", profile.profile, name="profile"),
    path("manage/profile/picture", profile.portrait),
    path("manage/profile/positions", profile.answer_position),
    path("manage/profile/history", profile.history),
    path("manage/profile/history/<int:entry>/revert", profile.revert),
    re_path(r"^manage/profile/(?P<step>unlist|publish)$", profile.take_step),
    path("manage/invitations/<str:token>", owners.invitation),
    path("manage/people/suggest", listing_form.suggest_people),
    path("manage/companies/new", listing_form.new),
    path("manage/companies/suggest", listing_form.suggest_slug),
    path("manage/companies/<str:slug>", companies.company, name="manage_company"),
    path("manage/companies/<str:slug>/edit/<str:step>", listing_form.edit),
    path("manage/companies/<str:slug>/preview", preview.preview),
    path("manage/companies/<str:slug>/preview/live", preview.live),
    path("manage/companies/<str:slug>/preview/<str:part>", preview.part),
    path("manage/companies/<str:slug>/check", checking.check),
    path("manage/companies/<str:slug>/paste/<str:name>", pasted.paste),
    path("manage/companies/<str:slug>/submit", listing_form.submit),
    path("manage/companies/<str:slug>/history", companies.history),
    path("manage/companies/<str:slug>/history/<int:entry>/revert", companies.revert),
    path("manage/companies/<str:slug>/funding", companies.funding),
    path("manage/companies/<str:slug>/logo", pictures.logo),
    path("manage/companies/<str:slug>/invite", owners.invite),
    path("manage/companies/<str:slug>/invitations/<int:key>/revoke", owners.revoke),
    path("manage/companies/<str:slug>/leave", owners.leave),
    path("manage/companies/<str:slug>/names", owners.change_name),
    path("manage/companies/<str:slug>/names/remove", owners.remove_name),
    re_path(
        r"^manage/companies/(?P<slug>[^/]+)/(?P<step>delete|withdraw|withdraw-change|unlist|relist)$",
        owners.take_step,
    ),
    path("review", inbox.home, name="review"),
    path("review/take", inbox.take),
    path("review/next", inbox.skip),
    path("review/reopen", inbox.reopen),
    path("review/several", inbox.several),
    path("review/several/done", inbox.results),
    path("review/replies", replies.home),
    path("review/replies/<int:number>", replies.reply),
    path("review/replies/<int:number>/text", replies.text),
    path("review/settings", replies.settings),
    path("review/companies/<str:slug>", decisions.company),
    path("review/companies/<str:slug>/decide", decisions.decide_company),
    path("review/companies/<str:slug>/scores", decisions.withdraw_score),
    path("review/companies/<str:slug>/people", people.link_position),
    path("review/changes/<int:number>", decisions.change),
    path("review/changes/<int:number>/decide", decisions.decide_change),
    path("review/requests/<int:number>", decisions.petition),
    path("review/requests/<int:number>/decide", decisions.decide_petition),
    path("review/people", people.home),
    path("review/people/<str:slug>", people.person),
    path("review/people/<str:slug>/unlist", people.unlist),
    path("review/people/<str:slug>/merge", people.merge),
    path("review/people/<str:slug>/erase", people.erase),
    path("review/frameworks", frameworks.home),
    path("review/frameworks/new", frameworks.new),
    path("review/frameworks/<str:framework_id>", frameworks.framework),
    path("review/frameworks/<str:framework_id>/specification", specifications.specification),
    path("review/frameworks/<str:framework_id>/validate", frameworks.validate),
    path("review/frameworks/<str:framework_id>/author", frameworks.author),
    re_path(r"^pictures/(?P<digest>[0-9a-f]{32})-(?P<size>144|512)\.webp$", pictures.picture),
    re_path(r"^fonts/(?P<digest>[0-9a-f]{32})\.woff2$", site_pages.font),
    # With and without a trailing slash: a redirect would turn a POST into a GET.
    # Some clients ask first by the path of the tool server, without any path, or as of a provider of OpenID.
    re_path(r"^\.well-known/oauth-authorization-server(?:/api/manage/mcp)?/?$", oauth.authorization_server),
    re_path(r"^\.well-known/openid-configuration/?$", oauth.authorization_server),
    re_path(r"^\.well-known/oauth-protected-resource(?:/api/manage/mcp)?/?$", oauth.protected_resource),
    re_path(r"^\.well-known/", oauth.no_metadata),
    re_path(r"^oauth/register/?$", oauth.register),
    re_path(r"^oauth/authorize/?$", oauth.authorize),
    re_path(r"^oauth/token/?$", oauth.token),
    re_path(r"^oauth/revoke/?$", oauth.revoke),
    path("uploads/<str:token>", uploads.upload),
    path("manage/documents", documents.home, name="documents"),
    path("manage/documents/begin", documents.begin),
    path("manage/documents/<str:document_id>/complete", documents.complete),
    path("manage/documents/<str:document_id>/delete", documents.delete),
    path("manage/documents/<str:document_id>/restore", documents.restore),
    path("manage/documents/<str:document_id>/file", documents.file),
    path("manage/credits", credits_page.entries, name="credits"),
    path("manage/credits.csv", credits_page.as_csv),
    path(WEBHOOK.removeprefix("/"), billing.stripe_webhook),
    path("manage/reports", reports.home, name="reports"),
    path("manage/reports/compare", reports.compare),
    path("manage/reports/<str:run_id>", reports.run),
    path("manage/reports/<str:run_id>/report.md", reports.as_markdown),
    path("manage/reports/<str:run_id>/publish", reports.publish),
    re_path(
        r"^manage/reports/(?P<run_id>[0-9a-z]{26})/(?P<action>execute|cancel|share|revoke|submit|withdraw-score)$",
        reports.act,
    ),
    path("manage/searches", searches.searches, name="searches"),
    path("manage/searches/new", searches.new),
    path("manage/searches/<int:number>/rename", searches.rename),
    path("manage/searches/<int:number>/delete", searches.delete),
    path("manage/applications", applications.home, name="applications"),
    path("manage/applications/<str:application_id>", applications.application),
    re_path(
        r"^manage/applications/(?P<application_id>[0-9a-z]{26})/(?P<action>withdraw|accept|decline)$", applications.act
    ),
    path("reports/shared/<str:token>", reports.shared),
    path("manage/tokens", tokens.tokens, name="tokens"),
    path("manage/tokens/<int:token_id>/regenerate", tokens.regenerate),
    path("manage/tokens/<int:token_id>/revoke", tokens.revoke),
    path("manage/tokens/apps/<int:grant_id>/disconnect", tokens.disconnect),
    *webhooks.addresses(of_registry=False),
    path("manage/security", security_log.log, name="security"),
    re_path(r"^manage/security/log\.(?P<form>csv|jsonl)$", security_log.download),
    path("review/audit", security_log.audit, name="audit"),
    re_path(r"^review/audit/log\.(?P<form>csv|jsonl)$", security_log.audit_download),
    path("invitations/<str:token>", invitations.accept),
    path("setup", first_account.first_account),
    path("setup/<str:token>", first_account.open_link),
    *OPERATE,
    *PUBLIC,  # the middleware answers reads of these
]

handler400 = errors.bad_request
handler403 = errors.forbidden
handler404 = errors.not_found
handler429 = errors.too_many  # of allauth
handler500 = errors.server_error
