"""Cards for other sites: pictures and frames that show a page of the registry where a link to it is shared."""
