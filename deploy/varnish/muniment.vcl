# Varnish 7 before one proxy or node: it answers from its cache, and keeps public pages up while everything behind it is
# down. Start it with: varnishd -a :8080 -f /etc/varnish/muniment.vcl -s malloc,256M
vcl 4.1;

import std;

backend muniment {
    .host = "127.0.0.1";
    .port = "8000";
    .probe = {
        .url = "/healthz";
        .interval = 1s;
        .timeout = 1s;
        .window = 3;
        .threshold = 2;
    }
}

sub vcl_recv {
    unset req.http.X-Varnish-Again;
    if (req.restarts > 0) {
        set req.http.X-Varnish-Again = "1";
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    # What belongs to an account, or to the browser that sets the registry up, is never stored.
    if (req.http.Authorization || req.http.Cookie ~ "(^|;\s*)(sessionid|muniment_setup)=") {
        return (pass);
    }
    if (req.url ~ "^/+(api/manage|manage|review|operate|accounts|oauth|billing|uploads|downloads|setup|language|invitations|reports|metrics|readyz)([/?]|$)") {
        return (pass);
    }
    # A visitor with a form open needs its cookie. While nothing answers, the page without it is better than none.
    if (req.http.Cookie ~ "(^|;\s*)(csrftoken|kept_form)=" && std.healthy(req.backend_hint) && req.restarts == 0) {
        return (pass);
    }
    # Public pages depend on the chosen language alone: it stays, and no other cookie divides the cache.
    if (req.http.Cookie ~ "(^|;\s*)language=[a-zA-Z-]+") {
        set req.http.Cookie = regsub(req.http.Cookie, "^(?:.*;\s*)?language=([a-zA-Z-]+).*$", "language=\1");
    } else {
        unset req.http.Cookie;
    }
    # An outdated response is used for a day, but only while there is none better. The API permits 300 s; pages do not.
    if (std.healthy(req.backend_hint) && req.restarts == 0) {
        if (req.url ~ "^/api/") {
            set req.grace = 10s;
        } else {
            set req.grace = 0s;
        }
    } else {
        set req.grace = 24h;
    }
    return (hash);
}

sub vcl_backend_response {
    set beresp.grace = 24h;
    if (beresp.status >= 500) {
        # An error must not take the place of what is stored: it is shown only if there is nothing.
        if (bereq.is_bgfetch || (!bereq.uncacheable && !bereq.http.X-Varnish-Again)) {
            return (abandon);
        }
        set beresp.ttl = 0s;
        set beresp.grace = 0s;
        set beresp.uncacheable = true;
        # Without the rules of Varnish, which would not look into the cache for two minutes.
        return (deliver);
    } else if (!beresp.http.Cache-Control || beresp.http.Set-Cookie) {
        set beresp.ttl = 0s;
        set beresp.grace = 0s;
        set beresp.uncacheable = true;
    } else if (beresp.ttl <= 0s && beresp.http.Cache-Control ~ "public") {
        # Pages for everybody: asked for again each second, and kept for the time when nothing answers.
        set beresp.ttl = 1s;
    }
}

# Nothing answered: Varnish's own error is not stored either, not even for the usual second.
sub vcl_backend_error {
    return (abandon);
}

# The backend has just failed, and its probe has not noticed yet: try again, this time with whatever is stored.
sub vcl_deliver {
    if (resp.status >= 500 && req.restarts == 0 && (req.method == "GET" || req.method == "HEAD")) {
        return (restart);
    }
}

sub vcl_synth {
    if (resp.status >= 500 && req.restarts == 0 && (req.method == "GET" || req.method == "HEAD")) {
        return (restart);
    }
}
