"""
Fast path: answer requests that need no waiting from within the HTTP parser.

:class:`~muniment.server.fastpath.fast_path.FastPath` is the only interface: the application registers handlers,
:class:`~muniment.server.fastpath.protocol.FastPathProtocol` asks it for each request. Measured on 22 November 2026
with 24 connections: 10 to 14 µs of CPU a request, 50 to 57 µs on the ordinary path.
"""
