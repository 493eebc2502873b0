"""What the tool `fetch` is made of: requests of pages, and their conversion to text in a process of their own."""
