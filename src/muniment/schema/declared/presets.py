"""The declarations that ship: `preset = "lei"` declares the field of that name."""

from typing import Any, Final

from muniment.kernel.phrases.phrase import marked

PRESETS: Final[dict[str, dict[str, Any]]] = {
    "lei": {
        "key": "lei",
        "label": "LEI",
        "kind": "identifier",
        "check": "lei",
        "help": marked("Legal Entity Identifier, 20 characters."),
    },
    "tokenContract": {
        "key": "tokenContract",
        "label": marked("Token contract"),
        "kind": "identifier",
        "check": "contract",
        "help": marked("The address of the token's contract."),
    },
    "tokenChain": {
        "key": "tokenChain",
        "label": marked("Token chain"),
        "kind": "choice",
        "choices": [
            *("Ethereum", "Arbitrum", "Avalanche", "Base", "BNB Chain", "Celo", "Cosmos", "Gnosis", "Near", "Optimism"),
            *("Polygon", "Solana", "Starknet", "other"),
        ],
        "help": marked("The chain that the token's contract is on."),
    },
    "github": {"key": "github", "label": "GitHub", "kind": "link", "help": marked("Starts with https://github.com/")},
    "discord": {
        "key": "discord",
        "label": "Discord",
        "kind": "link",
        "help": marked("An invitation that does not expire."),
    },
    "telegram": {"key": "telegram", "label": "Telegram", "kind": "link", "help": marked("Starts with https://t.me/")},
    "foundedOn": {
        "key": "foundedOn",
        "label": marked("Founded"),
        "kind": "date",
        "help": marked("The day the organization was founded."),
    },
}
OF_COMPANIES: Final = frozenset({"lei", "tokenContract", "tokenChain", "foundedOn"})
"""Presets that are not offered for people."""
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
