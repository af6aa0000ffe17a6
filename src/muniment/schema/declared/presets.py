"""The declarations that ship: `preset = "lei"` declares the field of that name."""

from typing import Any, Final

PRESETS: Final[dict[str, dict[str, Any]]] = {
    "lei": {
        "key": "lei",
        "label": "LEI",
        "kind": "identifier",
        "check": "lei",
        "help": "Legal Entity Identifier, 20 characters.",
    },
    "tokenContract": {
        "key": "tokenContract",
        "label": "Token contract",
        "kind": "identifier",
        "check": "contract",
        "help": "The address of the token's contract.",
    },
    "tokenChain": {
        "key": "tokenChain",
        "label": "Token chain",
        "kind": "choice",
        "choices": [
            *("Ethereum", "Arbitrum", "Avalanche", "Base", "BNB Chain", "Celo", "Cosmos", "Gnosis", "Near", "Optimism"),
            *("Polygon", "Solana", "Starknet", "other"),
        ],
        "help": "The chain on which the token's contract is.",
    },
    "github": {"key": "github", "label": "GitHub", "kind": "link", "help": "Starts with https://github.com/"},
    "discord": {"key": "discord", "label": "Discord", "kind": "link", "help": "An invitation that does not expire."},
    "telegram": {"key": "telegram", "label": "Telegram", "kind": "link", "help": "Starts with https://t.me/"},
    "foundedOn": {"key": "foundedOn", "label": "Founded", "kind": "date", "help": "The day of the foundation."},
}
SYNONYMS: Final = {
    "lei": "leicode legalentityidentifier",
    "tokenContract": "contractaddress tokenaddress contract smartcontract tokencontractaddress vertragsadresse",
    "tokenChain": "chain blockchain network tokennetwork netzwerk",
    "github": "githuburl githublink githuborganization githuborganisation githubprofile repository repo",
    "discord": "discordurl discordlink discordserver discordinvite",
    "telegram": "telegramurl telegramlink telegramgroup telegramchannel telegramgruppe",
    "foundedOn": "founded foundingdate foundationdate dateoffoundation established incorporationdate incorporated"
    " inception dateofincorporation founddate gegrundet grundung grundungsdatum gegrundetam datedefondation"
    " datedecreation",
}
"""The headings of tables over values of a preset, besides its key and its label."""
