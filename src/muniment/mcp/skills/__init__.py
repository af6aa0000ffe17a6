"""Skills of the tool servers: one folder each, named as the skill, with its SKILL.md."""
