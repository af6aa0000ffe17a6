"""The pages: what people see. Server-rendered, over the published documents and the operations."""
