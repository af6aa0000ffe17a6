"""The tools of both servers, their output schemas, and truncation to fit a model's context."""
