"""What a file contains: inspection of its type, text extraction, virus scanning."""
