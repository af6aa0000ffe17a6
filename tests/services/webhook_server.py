"""`muniment serve` whose worker sends webhooks to loopback, for proofs that kill it. Run: PORT CERTIFICATE OPTIONS."""

import ssl
import sys

from muniment import cli


def main() -> None:
    cli.use_django()
    from muniment.webhooks import delivering  # its tables need Django

    port, certificate = int(sys.argv[1]), sys.argv[2]
    delivering.CONNECTION.update(
        deadline_s=1.0,
        resolve=lambda *_: ["127.0.0.1"],
        is_allowed=lambda address: address == "127.0.0.1",
        port=port,
        tls=ssl.create_default_context(cafile=certificate),
    )
    # A receiver that fails is tried again after seconds instead of hours.
    delivering.PAUSES_S = (2.0,) * 400
    sys.argv = ["muniment", "serve", *sys.argv[3:]]
    cli.main()


if __name__ == "__main__":
    main()
