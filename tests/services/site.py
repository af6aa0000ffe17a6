"""Websites on loopback with prepared answers, and certificates for their names."""

import contextlib
import datetime as dt
import socket
import ssl
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muniment.kernel.ids import now


def certificate_for(name, folder):
    """Write a self-signed certificate for *name* with its key; return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now() - dt.timedelta(days=1))
        .not_valid_after(now() + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "own.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


@contextlib.contextmanager
def site(certificate, *pieces, pause_s=0.0):
    """
    A site on loopback that answers one connection with *pieces*; gives its port and what it was asked.

    Without a *certificate*, it speaks plain HTTP.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if certificate:
        context.load_cert_chain(certificate)
    asked, done = [], threading.Event()

    def answer():
        with contextlib.suppress(OSError):
            plain, _ = listener.accept()
            with plain, context.wrap_socket(plain, server_side=True) if certificate else plain as line:
                asked.append(line.recv(10_000))
                for piece in pieces:
                    line.sendall(piece)
                    if done.wait(pause_s):
                        return

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        done.set()
        listener.close()
        thread.join(5)


def head(status="200 OK", **headers):
    lines = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return (f"HTTP/1.1 {status}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode()
