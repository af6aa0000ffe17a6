"""The tools of both servers, their schemas, and truncation to a size a model can read."""
