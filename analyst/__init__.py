"""What everyone who asks runs."""
