"""The operator's console at /operate: thin pages over the operations that the commands call."""
