"""Words for what is stored as a code: states, actions, countries and months, in the language of the page."""
