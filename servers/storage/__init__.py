"""What one server keeps."""
