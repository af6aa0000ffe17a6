"""The code that every page shares: access, errors, security headers, pagination, the page cache, static files."""
