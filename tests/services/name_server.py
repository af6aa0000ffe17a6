"""A DNS server on loopback that answers from a table, which a test may change between two questions."""

import socket
import threading
from typing import Self

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rrset


class NameServer:
    """
    Answers by UDP; ``records`` maps a name to its record texts by type, ``asked`` is what was asked for.

    A list of lists answers each question with the next, and the last one from then on.
    """

    def __init__(self) -> None:
        self.records: dict[str, dict[str, list[str]]] = {}
        self.turns: dict[tuple[str, str], list[list[str]]] = {}
        self.asked: list[tuple[str, str]] = []
        self.silent = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()
        return host, port

    def txt(self, name: str, *values: str) -> None:
        self.records.setdefault(name, {})["TXT"] = [f'"{value}"' for value in values]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join(5)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            data, client = self._socket.recvfrom(4_096)
            if not data:
                return
            try:
                query = dns.message.from_wire(data)
            except dns.exception.DNSException:
                continue
            if not self.silent:
                self._socket.sendto(self._answer(query).to_wire(), client)

    def _answer(self, query: dns.message.Message) -> dns.message.Message:
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        question = query.question[0]
        name, kind = question.name.to_text(omit_final_dot=True).lower(), question.rdtype.name
        self.asked.append((name, kind))
        target = self.records.get(name, {}).get("CNAME")
        if target:
            answer.answer.append(dns.rrset.from_text(question.name, 60, "IN", "CNAME", f"{target[0]}."))
            name = target[0]
        turns = self.turns.get((name, kind))
        values = (turns.pop(0) if len(turns) > 1 else turns[0]) if turns else self.records.get(name, {}).get(kind)
        if values:
            answer.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", kind, *values))
        elif name not in self.records and not any(known == name for known, _ in self.turns):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        return answer
