"""Fill this process's instance with a document, credits and exports. Run as a script, after the demo was imported."""


def main() -> None:
    import django

    django.setup()
    from make.documents import uploaded
    from make.registry import draft, owner
    from muniment import config
    from muniment.credits.operations import get_balance
    from muniment.schema.objects import registry_schema
    from muniment.store.exports.exports import Exports

    actor = owner()
    uploaded(actor, draft(actor).slug, content=b"Minutes of the harbour cooperative. " * 200)
    get_balance(actor)
    settings = config.current()
    exports = Exports(settings.data / "exports", settings.published_file, registry_schema(settings.currency))
    exports.make()
    exports.close()
    assert exports.files()


if __name__ == "__main__":
    main()
