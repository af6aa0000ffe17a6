"""The versions of the settings of the registry, and how they are applied."""
