"""Fields that an operator declares: their kinds, how a declaration is read, and the ones that ship."""
