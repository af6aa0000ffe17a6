"""
Fast path: answer from within the HTTP parser what needs no waiting.

:class:`~muniment.server.fastpath.fast_path.FastPath` is the one interface: the application installs what may answer,
:class:`~muniment.server.fastpath.protocol.FastPathProtocol` asks it for each request. Measured on 22 November 2026
with 24 connections: 10 to 14 µs of CPU a request, 50 to 57 µs on the ordinary path.
"""
