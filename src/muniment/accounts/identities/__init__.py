"""Identity providers of organizations: who may sign up, which roles their groups have, and signing in only there."""
